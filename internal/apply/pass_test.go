package apply

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/cluster/drain"
	"kubeone/internal/cluster/record"
	"kubeone/internal/host"
	"kubeone/internal/plan"
	"kubeone/internal/step"
)

// passTo makes passes, each by a Run of its own that knows no more than what the caller has kept, until the step is
// in the state.
func (l *lab) passTo(at Progress, id string, want State) (Progress, error) {
	l.t.Helper()
	ctx := patience(l.t)
	for {
		now, err := l.anew().Pass(ctx, kept(l.t, at), false)
		if err != nil || now.State(id) == want {
			return now, err
		}
		if at = now; now.Over {
			l.t.Fatalf("it is over, and %s is %s", id, now.State(id))
		}
	}
}

// anew is the run as another process makes it.
func (l *lab) anew() *Run {
	r := l.Run
	return &Run{
		Plan: r.Plan, Want: r.Want, World: r.World, Hosts: r.Hosts, Unreachable: r.Unreachable, Scripts: r.Scripts,
		Blobs: r.Blobs, Access: r.Access, Etcd: r.Etcd,
		Connect: r.Connect, Lock: r.Lock, RunID: r.RunID, Holder: r.Holder, Emit: r.Emit, Now: r.Now, pause: r.pause,
	}
}

// kept is a progress as it is read after a restart.
func kept(t *testing.T, p Progress) Progress {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var out Progress
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAPassDoesNotWaitForAStepAndALaterOneFindsIt(t *testing.T) {
	t.Parallel()
	l := newLab(t, "", prepare())
	wait, open := l.gate()
	l.Scripts["1"] = "echo first; " + wait + "; echo second"
	at, err := l.passTo(Progress{}, "prepare/node-1", Running)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if at, err = l.passTo(at, "prepare/node-1", Running); err != nil {
			t.Fatal(err)
		}
	}
	open()
	if at, err = l.passTo(at, "prepare/node-1", Done); err != nil || !at.Over {
		t.Fatalf("over: %v, %v", at.Over, err)
	}
	want := []string{
		"run-started", "step-started prepare/node-1", "step-output prepare/node-1: first",
		"step-output prepare/node-1: second",
		"step-done prepare/node-1", "run-finished",
	}
	if diff := cmp.Diff(want, l.journal.lines()); diff != "" {
		t.Error(diff)
	}
	if n := strings.Count(l.read("units"), "\n"); n != 1 {
		t.Errorf("%d units were started", n)
	}
	if at.Entry.Result != record.Done || len(at.Entry.Steps) != 1 || at.Entry.Finished.IsZero() {
		t.Errorf("its entry in the history: %+v", at.Entry)
	}
}

func TestAPassTellsOfAFailureWhatTheHostPrintedLast(t *testing.T) {
	t.Parallel()
	l := newLab(t, "", prepare(), stepOf("images/node-1", "1", step.Images, "prepare/node-1"))
	wait, open := l.gate()
	l.Scripts["1"] = "echo first; " + wait + "; exit 3"
	at, err := l.passTo(Progress{}, "prepare/node-1", Running)
	for err == nil && at.Printed["prepare/node-1"] == 0 {
		at, err = l.passTo(at, "prepare/node-1", Running)
	}
	if err != nil {
		t.Fatal(err)
	}
	open()
	at, err = l.passTo(at, "prepare/node-1", Failed)
	var failed *StepError
	var exit *host.ExitError
	if !errors.As(err, &failed) || !errors.As(err, &exit) || exit.Code != 3 ||
		!slices.Equal(failed.Tail, []string{"first"}) {
		t.Errorf("got %v", err)
	}
	if at.State("images/node-1") != Skipped || !at.Over || len(at.Failures) != 1 || at.Entry.Result != record.Failed {
		t.Errorf("got %+v", at)
	}
}

func TestAStepWhoseSuccessorWasBegunIsDone(t *testing.T) {
	t.Parallel()
	l := newLab(t, "echo $1 >>"+"$ROOT/stages", prepare(), stepOf("images/node-1", "1", step.Images, "prepare/node-1"))
	at, err := l.passTo(Progress{}, "prepare/node-1", Running)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.passTo(at, "images/node-1", Done); err != nil { // what it returns is lost
		t.Fatal(err)
	}
	if at, err = l.passTo(at, "images/node-1", Done); err != nil || !at.Over {
		t.Errorf("over: %v, %v", at.Over, err)
	}
	if stages := l.read("stages"); stages != "prepare\nimages\n" {
		t.Errorf("stages ran: %q", stages)
	}
}

func TestAPassWaitsForAnotherRunsStep(t *testing.T) {
	t.Parallel()
	l := newLab(t, "", prepare())
	wait, open := l.gate()
	l.Scripts["1"] = "echo begun; " + wait
	// A step that was started and has not begun yet is none of the run that loses its lock to another one meanwhile.
	begun, err := l.passTo(Progress{}, "prepare/node-1", Running)
	for err == nil && begun.Printed["prepare/node-1"] == 0 {
		begun, err = l.passTo(begun, "prepare/node-1", Running)
	}
	if err != nil {
		t.Fatal(err)
	}
	other := newLab(t, "", prepare())
	other.machine, other.Hosts, other.RunID = l.machine, l.Hosts, "run-2"
	other.Lock = l.lock("run-2", true)
	at, err := other.passTo(Progress{}, "prepare/node-1", Running)
	if err != nil || strings.Count(l.read("units"), "\n") != 1 {
		t.Fatalf("%v, units: %s", err, l.read("units"))
	}
	open()
	if _, err := other.passTo(at, "prepare/node-1", Done); err != nil {
		t.Error(err)
	}
}

func TestAHostThatIsAwayKeepsItsStep(t *testing.T) {
	t.Parallel()
	l := newLab(t, "", prepare())
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	l.Now = func() time.Time { return now }
	l.onRun = func(host.Cmd) error {
		return &host.Error{Class: host.Unreachable, Host: "node-1", Err: errors.New("no route")}
	}
	at, err := l.passTo(Progress{}, "prepare/node-1", Running)
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(StepTimeout + time.Minute)
	at, err = l.passTo(at, "prepare/node-1", Failed)
	if err == nil || !strings.Contains(err.Error(), "no route") || !at.Over {
		t.Errorf("over: %v, %v", at.Over, err)
	}
}

// passer is an API of which only passes ask.
type passer struct {
	upgradeFake
	passes func(s *drain.State) (bool, error)
}

func (p *passer) DrainPass(_ context.Context, _ string, s *drain.State, o drain.Options) ([]drain.PodRef, bool, error) {
	p.drained = o
	done, err := p.passes(s)
	return s.Left, done, err
}

func TestADrainIsOnePassOfEvictionsEachTime(t *testing.T) {
	t.Parallel()
	s := upgradeStep(step.DrainNode, step.DrainNodeParams{TimeoutSeconds: 60})
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	n := 0
	f := &passer{passes: func(s *drain.State) (bool, error) {
		if n++; n == 1 {
			s.Started = began
		} else if !s.Started.Equal(began) {
			return true, errors.New("it began anew")
		}
		return n == 3, nil
	}}
	at := Progress{}.clone()
	for range 2 {
		r := upgrading(&f.upgradeFake)
		r.at = &at
		if err := r.carryOut(t.Context(), f, s); !unfinished(err) || f.uncordoned != 0 {
			t.Fatalf("got %v, opened %d times", err, f.uncordoned)
		}
		at = kept(t, at).clone()
	}
	r := upgrading(&f.upgradeFake)
	r.at = &at
	if err := r.carryOut(t.Context(), f, s); err != nil {
		t.Error(err)
	}
	f.passes = func(*drain.State) (bool, error) {
		return true, &drain.BlockedError{Node: "cp-a", Err: errors.New("too late")}
	}
	blocked := (*drain.BlockedError)(nil)
	if err := r.carryOut(t.Context(), f, s); !errors.As(err, &blocked) || f.uncordoned != 1 ||
		f.drained.Mark != "run-1" {
		t.Errorf("got %v, opened %d times, drained with %+v", err, f.uncordoned, f.drained)
	}
}

func TestWhatGoesIsFoundDeadByOneLookEachPass(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := upgradeStep(step.RemoveEtcd, step.RemoveEtcdParams{Member: "c", Death: step.Death{Confirm: true}})
	at := Progress{}.clone()
	var looks int
	look := func() error {
		r := upgrading(&upgradeFake{})
		r.at, r.Now = &at, func() time.Time { return now }
		err := r.confirm(t.Context(), s, step.Death{}, func(context.Context, step.RemoveEtcdParams) error {
			looks++
			return nil
		})
		at = kept(t, at).clone()
		return err
	}
	const most = int(DeathWithin/DeathEvery) + 1
	for n := 1; n < most; n++ {
		for range 2 { // too early for another look
			if err := look(); !unfinished(err) || looks != n {
				t.Fatalf("%d looks, %v", looks, err)
			}
		}
		now = now.Add(DeathEvery)
	}
	if err := look(); err != nil || looks != most {
		t.Errorf("%d looks, %v", looks, err)
	}
}

func TestAPassSendsFilesForALimitedTime(t *testing.T) {
	t.Parallel()
	sums := []string{strings.Repeat("a", 64), strings.Repeat("b", 64)}
	blobs := &content{blobs: map[string]string{sums[0]: "first", sums[1]: "second"}}
	var b strings.Builder
	for limit, want := range map[bool][]string{true: sums[:1], false: sums} {
		b.Reset()
		more, err := writeTar(&b, blobs, sums, func() bool { return limit })
		sent := slices.DeleteFunc(slices.Clone(sums), func(s string) bool { return !strings.Contains(b.String(), s) })
		if err != nil || more != limit || cmp.Diff(want, sent) != "" {
			t.Errorf("more: %v, sent %v, %v", more, sent, err)
		}
	}
}

func TestALockIsTakenOnOnlyIfNobodyHadItSince(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "node-1")
	hosts := map[string]host.Host{"1": m}
	take := func(run string, was map[string]int64) (*Lock, error) {
		return TakeLock(patience(t), hosts, Claim{Holder: "me@here", Run: run, Kept: was})
	}
	first, err := take("run-1", nil)
	if err != nil {
		t.Fatal(err)
	}
	was := first.Generations()
	first.Release()
	again, err := take("run-1", was)
	if err != nil || cmp.Diff(was, again.Generations()) != "" {
		t.Fatalf("%v, was %v", err, was)
	}
	again.Release()
	other, err := take("run-2", nil)
	if err != nil {
		t.Fatal(err)
	}
	other.Release()
	held := (*HeldError)(nil)
	if _, err := take("run-1", was); !errors.As(err, &held) {
		t.Errorf("got %v", err)
	}
}

func TestAScheduleGoesOnWhereItWasLeft(t *testing.T) {
	t.Parallel()
	steps := []plan.Step{
		stepOf("a", "1", step.Prepare), stepOf("b", "1", step.Images, "a"),
		stepOf("c", "2", step.Prepare), stepOf("d", "2", step.Images, "c"),
	}
	s := NewSchedule(plan.Plan{Steps: steps}, 0)
	s.Restore(func(id string) State {
		return map[string]State{"a": Done, "b": Waiting, "c": Running, "d": Waiting}[id]
	})
	ids := func(steps []plan.Step) string {
		var out string
		for _, s := range steps {
			out += s.ID
		}
		return out
	}
	if running, next := ids(s.Running()), ids(s.Next()); running != "c" || next != "b" || !s.Busy() {
		t.Errorf("running %q, next %q", running, next)
	}
}
