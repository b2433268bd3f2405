package engine

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/apply"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/host"
	"kubeone/internal/observed"
	"kubeone/internal/plan"
)

const (
	playedControlPlane = "192.0.2.11"
	playedWorker       = "192.0.2.21"
)

// carrying is a stage whose hosts carry out steps.
func carrying(t *testing.T) stage {
	t.Helper()
	s := play(t)
	for _, h := range s.hosts {
		h.works = true
	}
	return s
}

// restarted is another engine for the same hosts, in the place of one that was killed.
func (s stage) restarted(t *testing.T, change ...func(*Config)) stage {
	t.Helper()
	c := Config{
		Want: wanted("demo"), Hosts: map[string]host.Host{}, Releases: s.releases, Approver: s.approver,
		Holder:   "me@desk",
		Manifest: "name: demo\n",
	}
	for id, h := range s.hosts {
		c.Hosts[id] = h
	}
	for _, f := range change {
		f(&c)
	}
	var err error
	if s.Engine, err = New(c); err != nil {
		t.Fatal(err)
	}
	return s
}

// started is a progress of an installation that is about to begin.
func (s stage) started(t *testing.T) (Proposal, Progress) {
	t.Helper()
	p, err := s.Propose(t.Context(), Apply{})
	if err != nil {
		t.Fatal(err)
	}
	return p, s.Start(p)
}

// advanced is how far a run is after one call.
func (s stage) advanced(t *testing.T) Progress {
	t.Helper()
	_, at := s.started(t)
	at, err := s.Advance(t.Context(), Apply{}, at, RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// written is a progress as its caller reads it after a restart.
func written(t *testing.T, p Progress) Progress {
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

// stepsOn are the IDs of the plan's steps on a host, up to the first that runs on it after a step through the API.
func stepsOn(p plan.Plan, id string) []string {
	var out []string
	for _, s := range p.Steps {
		if s.Host == id && s.Intent.Kind.OnHost() {
			out = append(out, s.ID)
		}
	}
	return out
}

func TestEachCallGoesOnWithWhatAnEarlierProcessBegan(t *testing.T) {
	t.Parallel()
	s := carrying(t)
	p, at := s.started(t)
	want := stepsOn(p.Plan, playedControlPlane)
	for n := 1; n < len(want); n++ {
		for range 2 { // a step that runs is looked at, and not begun again
			var err error
			if at, err = s.restarted(t).Advance(t.Context(), Apply{}, written(t, at), RunOptions{}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want[:n], s.hosts[playedControlPlane].begun()); diff != "" {
				t.Fatal(diff)
			}
			if at.Over() || at.Step(want[n-1]) != apply.Running {
				t.Fatalf("%s is %s", want[n-1], at.Step(want[n-1]))
			}
		}
		s.hosts[playedControlPlane].end("0")
	}
	if s.releases.verified != 1 {
		t.Errorf("what is uploaded was verified %d times", s.releases.verified)
	}
	if locks := at.Locks; locks[playedControlPlane] != 1 || locks[playedWorker] != 1 {
		t.Errorf("the locks were not kept on: %v", locks)
	}
}

func TestAStepOfACallThatNobodyHeardOfIsFoundAgain(t *testing.T) {
	t.Parallel()
	s := carrying(t)
	p, at := s.started(t)
	if _, err := s.Advance(t.Context(), Apply{}, at, RunOptions{}); err != nil {
		t.Fatal(err)
	}
	first := stepsOn(p.Plan, playedControlPlane)[0]
	s.hosts[playedControlPlane].end("0")
	// What the first call returned was lost.
	again, err := s.restarted(t).Advance(t.Context(), Apply{}, at, RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	begun := s.hosts[playedControlPlane].begun()
	if len(begun) != 2 || begun[0] != first || begun[1] == first || again.Step(first) != apply.Done {
		t.Errorf("begun were %v; %s is %s", begun, first, again.Step(first))
	}
}

func TestARunEndsWhereAnotherHasHadALockSince(t *testing.T) {
	t.Parallel()
	s := carrying(t)
	at := s.advanced(t)
	first := s.hosts[playedControlPlane]
	first.lock("0") // another run's
	before := len(first.begun())
	first.end("0")
	_, err := s.restarted(t).Advance(t.Context(), Apply{}, at, RunOptions{})
	var taken *TakenError
	if !errors.As(err, &taken) || taken.By.RunID != "another" ||
		!errors.Is(err, apply.ErrLockLost) && taken.Err == nil {
		t.Errorf("got %v", err)
	}
	if len(first.begun()) != before {
		t.Errorf("it has begun %v", first.begun())
	}
}

// A worker that says that it is another run's is left alone, and stops nobody who has the control plane.
func TestARunGoesOnWithoutAWorkerThatAnotherHas(t *testing.T) {
	t.Parallel()
	s := carrying(t)
	at := s.advanced(t)
	worker := s.hosts[playedWorker]
	worker.lock("0") // another run's
	before := len(worker.begun())
	worker.end("0")
	s.hosts[playedControlPlane].end("0")
	begun := len(s.hosts[playedControlPlane].begun())
	_, err := s.restarted(t).Advance(t.Context(), Apply{}, at, RunOptions{})
	var failed *apply.StepError
	var held *apply.HeldError
	if !errors.As(err, &failed) || failed.Step.Host != playedWorker || !errors.As(err, &held) {
		t.Errorf("got %v", err)
	}
	if len(worker.begun()) != before || len(s.hosts[playedControlPlane].begun()) == begun {
		t.Errorf("begun on the worker: %v, elsewhere: %v", worker.begun(), s.hosts[playedControlPlane].begun())
	}
}

func TestAStepThatFailsEndsWhatNeedsIt(t *testing.T) {
	t.Parallel()
	s := carrying(t)
	p, at := s.started(t)
	at, err := s.Advance(t.Context(), Apply{}, at, RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.hosts[playedControlPlane].end("3")
	at, err = s.Advance(t.Context(), Apply{}, at, RunOptions{})
	var failed *apply.StepError
	if !errors.As(err, &failed) || !at.Over() || len(at.Failures()) != 1 {
		t.Fatalf("over: %v, failures %q, %v", at.Over(), at.Failures(), err)
	}
	for _, step := range p.Plan.Steps {
		if state := at.Step(step.ID); state != apply.Failed && state != apply.Skipped {
			t.Errorf("%s is %s", step.ID, state)
		}
	}
	if again, err := s.Advance(t.Context(), Apply{}, at, RunOptions{}); err != nil || cmp.Diff(at, again) != "" {
		t.Errorf("a run that is over was gone on with: %v", err)
	}
}

func TestAStoppedRunBeginsNothingElse(t *testing.T) {
	t.Parallel()
	s := carrying(t)
	at := s.advanced(t)
	stop := make(chan struct{})
	close(stop)
	for _, h := range s.hosts {
		h.end("0")
	}
	before := len(s.hosts[playedControlPlane].begun())
	at, err := s.Advance(t.Context(), Apply{}, at, RunOptions{Stop: stop})
	if err != nil || !at.Over() || len(s.hosts[playedControlPlane].begun()) != before {
		t.Errorf("over: %v, begun %v, %v", at.Over(), s.hosts[playedControlPlane].begun(), err)
	}
}

func TestOnlyWhatWasApprovedIsGoneOnWith(t *testing.T) {
	t.Parallel()
	s := carrying(t)
	p, at := s.started(t)
	other := s.restarted(t, func(c *Config) { c.Want.KubernetesVersion = "1.35.4" })
	if _, err := other.Advance(t.Context(), Apply{}, at, RunOptions{}); !errors.Is(err, ErrWorldChanged) {
		t.Errorf("before the first step: %v", err)
	}
	at, err := s.Advance(t.Context(), Apply{}, at, RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Advance(t.Context(), Apply{}, at, RunOptions{}); !errors.Is(err, ErrWorldChanged) {
		t.Errorf("in the middle: %v", err)
	}
	at.Plan.Format--
	var wrong *ConfigError
	if _, err := s.Advance(t.Context(), Apply{}, at, RunOptions{}); !errors.As(err, &wrong) {
		t.Errorf("a plan of another format: %v", err)
	}
	var blocked *ConfigError
	limited := Apply{Routes: []fsm.Route{fsm.Upgrade}}
	if _, err := s.Advance(t.Context(), limited, s.Start(p), RunOptions{}); !errors.As(err, &blocked) {
		t.Errorf("a route that is not allowed: %v", err)
	}
}

func TestAllThatHappensIsRecorded(t *testing.T) {
	t.Parallel()
	s := carrying(t)
	var mu sync.Mutex
	var recorded, emitted []string
	note := func(to *[]string) func(apply.Event) {
		return func(e apply.Event) {
			mu.Lock()
			defer mu.Unlock()
			*to = append(*to, string(e.Type)+" "+e.Step)
		}
	}
	s = s.restarted(t, func(c *Config) { c.Record = note(&recorded) })
	_, at := s.started(t)
	if _, err := s.Advance(t.Context(), Apply{}, at, RunOptions{Emit: note(&emitted)}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(recorded)
	slices.Sort(emitted)
	all := strings.Join(recorded, "\n")
	if diff := cmp.Diff(emitted, recorded); diff != "" || !strings.Contains(all, "step-started prepare/") {
		t.Errorf("%q\n%s", recorded, diff)
	}
}

func TestWhatDoesNotAnswerIsNotLocked(t *testing.T) {
	t.Parallel()
	var p Proposal
	p.Observed.World.Hosts = map[string]observed.Host{
		"1": {Reach: observed.Reached}, "2": {Reach: observed.Unreachable},
	}
	whole := plan.Scope{Cluster: true, Hosts: []string{"1", "2"}, Complete: true}
	if got := answering(whole, p); len(got.Hosts) != 1 || got.Complete || len(whole.Hosts) != 2 {
		t.Errorf("got %+v of %+v", got, whole)
	}
}
