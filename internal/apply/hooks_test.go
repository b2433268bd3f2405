package apply

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/model/desired"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
)

// beforeDrain is a step with two hooks on the operator's machine.
func beforeDrain() plan.Step {
	s := stepOf("operator-hooks-before-drain/node-1", "1", step.OperatorHooks)
	s.Title = "hooks before drain"
	s.Intent.Params = step.OperatorHooksParams{
		Moment: step.Moment{When: desired.Before, Activity: desired.Draining},
		Hooks: []step.Command{
			{Name: "out", Command: []string{"lb", "out"}, TimeoutSeconds: 60},
			{Name: "tell", Command: []string{"tell"}, TimeoutSeconds: 30},
		},
	}
	return s
}

func TestHooksRunOneAfterTheOther(t *testing.T) {
	t.Parallel()
	l := newLab(t, "exit 0", beforeDrain())
	l.Want.Name, l.Want.Workers = "alpha", []desired.Host{{ID: "1", Role: desired.Worker, PublicAddress: "192.0.2.7"}}
	var ran []Hook
	l.RunHook = func(_ context.Context, h Hook, output io.Writer) error {
		ran = append(ran, h)
		_, err := fmt.Fprint(output, "\x1b[31mmoved\x1b]0;title\a\n")
		return err
	}
	if err := l.Do(patience(t), nil); err != nil {
		t.Fatal(err)
	}
	env := func(name string) []string {
		return []string{
			"KUBEONE_HOOK=" + name, "KUBEONE_MOMENT=before-drain", "KUBEONE_CLUSTER=alpha", "KUBEONE_NODE=node-1",
			"KUBEONE_ROLE=worker", "KUBEONE_ADDRESS=192.0.2.7",
		}
	}
	want := []Hook{
		{[]string{"lb", "out"}, env("out"), time.Minute}, {[]string{"tell"}, env("tell"), 30 * time.Second},
	}
	if diff := cmp.Diff(want, ran); diff != "" {
		t.Error(diff)
	}
	said := strings.Join(l.journal.lines(), "\n")
	if !strings.Contains(said, "moved") || strings.Contains(said, "\x1b") {
		t.Errorf("the journal has %q", said)
	}
}

func TestAHookThatFailsEndsItsHostsTurn(t *testing.T) {
	t.Parallel()
	drain := stepOf("images/node-1", "1", step.Images, "operator-hooks-before-drain/node-1")
	l := newLab(t, "exit 0", beforeDrain(), drain)
	l.RunHook = func(_ context.Context, h Hook, _ io.Writer) error {
		if h.Command[0] == "lb" {
			return errors.New("failed: lb ended with status 3")
		}
		t.Error("the hook after one that failed has run")
		return nil
	}
	err := l.Do(patience(t), nil)
	var failed *StepError
	if !errors.As(err, &failed) || !strings.Contains(err.Error(), "hook out failed: lb ended with status 3") {
		t.Errorf("got %v", err)
	}
	if lines := l.journal.lines(); !slices.Contains(lines, "step-skipped images/node-1") {
		t.Errorf("the journal has %q", lines)
	}
}

func TestHooksWithoutOperatorsMachineFail(t *testing.T) {
	t.Parallel()
	l := newLab(t, "exit 0", beforeDrain())
	if err := l.Do(patience(t), nil); err == nil || !strings.Contains(err.Error(), "hooks for the operator's machine") {
		t.Errorf("got %v", err)
	}
}

// A run stopped during the upgrade of a host runs the hooks that follow, and uncordons its Node.
func TestStoppedRunsEndUpgradesWithTheirHooks(t *testing.T) {
	t.Parallel()
	after := step.Moment{When: desired.After, Activity: desired.Upgrading}
	mine := stepOf("mine", "1", step.OperatorHooks, "upgrade")
	mine.Intent.Params = step.OperatorHooksParams{Moment: after}
	its := stepOf("its", "1", step.Hooks, "mine")
	its.Intent.Params = step.HooksParams{Moment: after}
	s := NewSchedule(plan.Plan{Steps: []plan.Step{
		stepOf("upgrade", "1", step.UpgradeWorker), mine, its, stepOf("open", "1", step.Uncordon, "upgrade", "its"),
		stepOf("next", "2", step.Check, "open"),
	}}, 0)
	s.Next()
	if left := ids(s.Stop()); !slices.Equal(left, []string{"next"}) {
		t.Fatalf("%v will never start", left)
	}
	for _, id := range []string{"upgrade", "mine", "its"} {
		s.Finish(id, true)
		if next := s.Next(); len(next) != 1 {
			t.Fatalf("after %s %v may start", id, ids(next))
		}
	}
}

// An ended run waits for its hooks, which end with it.
func TestAnEndedRunWaitsForItsHooks(t *testing.T) {
	t.Parallel()
	l := newLab(t, "exit 0", beforeDrain())
	ctx, cancel := context.WithCancel(patience(t))
	var undone atomic.Bool
	l.RunHook = func(ctx context.Context, _ Hook, _ io.Writer) error {
		cancel()
		<-ctx.Done()
		runtime.Gosched()
		undone.Store(true)
		return ctx.Err()
	}
	if err := l.Do(ctx, nil); !errors.Is(err, context.Canceled) || !undone.Load() {
		t.Errorf("the hook has ended: %t; got %v", undone.Load(), err)
	}
}

// Hooks on the operator's machine run for one host at a time, however many hosts are busy.
func TestHooksOfTheOperatorsMachineRunOneAtATime(t *testing.T) {
	t.Parallel()
	s := NewSchedule(plan.Plan{Steps: []plan.Step{
		stepOf("out-1", "1", step.OperatorHooks), stepOf("out-2", "2", step.OperatorHooks),
		stepOf("other", "3", step.Hooks),
	}}, 0)
	if got := ids(s.Next()); !slices.Equal(got, []string{"out-1", "other"}) {
		t.Fatalf("%v run", got)
	}
	s.Finish("out-1", false)
	if got := ids(s.Next()); !slices.Equal(got, []string{"out-2"}) {
		t.Fatalf("%v run", got)
	}
}

// TestFailureHooksTellOfAFailedRun checks that failure hooks run after a failure and get the failed step. They do not
// run after success or when the operator stopped the run.
func TestFailureHooksTellOfAFailedRun(t *testing.T) {
	t.Parallel()
	for script, fails := range map[string]bool{"exit 0": false, "echo a secret; exit 3": true} {
		l := newLab(t, script, stepOf("prepare/1", "1", step.Prepare))
		l.Want.Name = "alpha"
		l.Want.Hooks = []desired.Hook{
			{Name: "page", When: desired.Failed, Activity: desired.Applying, Command: []string{"page"},
				Timeout: time.Minute},
			{Name: "other", When: desired.After, Activity: desired.Applying, Command: []string{"no"},
				Timeout: time.Minute},
		}
		var ran []Hook
		l.RunHook = func(_ context.Context, h Hook, _ io.Writer) error {
			ran = append(ran, h)
			return errors.New("did not get through")
		}
		err := l.Do(patience(t), nil)
		if (err != nil) != fails {
			t.Fatalf("%s: %v", script, err)
		}
		if !fails {
			if len(ran) > 0 {
				t.Errorf("a run that went well has %v", ran)
			}
			continue
		}
		want := []Hook{{[]string{"page"}, []string{
			"KUBEONE_HOOK=page", "KUBEONE_MOMENT=failure", "KUBEONE_CLUSTER=alpha", "KUBEONE_RUN=" + l.RunID,
			"KUBEONE_FAILURE_CLASS=exit status", "KUBEONE_FAILED_STEP=prepare/1", "KUBEONE_FAILED_HOST=node-1",
		}, time.Minute}}
		if diff := cmp.Diff(want, ran); diff != "" {
			t.Error(diff)
		}
		if said := strings.Join(l.journal.lines(), "\n"); !strings.Contains(said, "hook page did not get through") {
			t.Errorf("the journal has %q", said)
		}
	}
}
