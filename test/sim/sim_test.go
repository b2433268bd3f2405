package sim

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/testutil/short"
	"kubeone/test/sim/drive"
)

// The first schedules and states. TestMany runs as many as requested.
const (
	firstSchedules  = 500
	firstStates     = 1200
	firstOfMachines = 500
	firstOfRoles    = 500
	firstOfAddons   = 200
)

func TestRandomSchedules(t *testing.T) {
	t.Parallel()
	for seed := 1; seed <= short.Fewer(firstSchedules) && !t.Failed(); seed++ {
		mustGoWell(t, drive.Random(uint64(seed)).String()) // #nosec G115 -- from 1 on
	}
}

func TestSchedulesOfMachines(t *testing.T) {
	t.Parallel()
	for seed := 1; seed <= short.Fewer(firstOfMachines) && !t.Failed(); seed++ {
		mustGoWell(t, drive.RandomWithPool(uint64(seed)).String()) // #nosec G115 -- from 1 on
	}
}

func TestSchedulesOfRoles(t *testing.T) {
	t.Parallel()
	for seed := 1; seed <= short.Fewer(firstOfRoles) && !t.Failed(); seed++ {
		mustGoWell(t, drive.RandomRoles(uint64(seed)).String()) // #nosec G115 -- from 1 on
	}
}

func TestSchedulesOfAddons(t *testing.T) {
	t.Parallel()
	for seed := 1; seed <= short.Fewer(firstOfAddons) && !t.Failed(); seed++ {
		mustGoWell(t, drive.RandomAddons(uint64(seed)).String()) // #nosec G115 -- from 1 on
	}
}

func TestStatesOfSmallClusters(t *testing.T) {
	t.Parallel()
	n := 0
	for s := range drive.States(2) {
		if n++; n > short.Fewer(firstStates) || t.Failed() {
			break
		}
		mustGoWell(t, s.String())
	}
}

func TestParseScenario(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		for _, want := range []drive.Scenario{
			drive.Random(seed), drive.RandomWithPool(seed), drive.RandomRoles(seed), drive.RandomAddons(seed),
		} {
			got, err := drive.Parse(want.String())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		}
	}
	for _, text := range []string{"", "seed=x", "hosts=3", "seed=1 hosts=1+0 " +
		"start=bare faults=1:cut:2", "seed=1 hosts=1+0 start=bare faults=x:cut:2:3", "colour=red"} {
		if s, err := drive.Parse(text); err == nil {
			t.Errorf("%q is read as %v", text, s)
		}
	}
}

func TestScenariosAreDeterministic(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		if diff := cmp.Diff(traceCourse(t, drive.Random(seed)), traceCourse(t, drive.Random(seed))); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
	}
}

// traceCourse returns the trace of a scenario.
func traceCourse(t *testing.T, s drive.Scenario) []string {
	t.Helper()
	var out []string
	sim := drive.New(s)
	sim.Trace = func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	sim.TraceEffects()
	sim.Run(t)
	return out
}

func TestShrinkFailure(t *testing.T) {
	t.Parallel()
	s, err := drive.Parse("seed=1 hosts=3+3 start=older-patch " +
		"faults=5:slow:0:20,9:lost-after:1:3,40:stopped:5:9 off=no-drain")
	if err != nil {
		t.Fatal(err)
	}
	v := drive.Run(t, s).Violation
	if v == nil {
		t.Fatal("nothing was found")
	}
	small := drive.Shrink(t, s, v.Rule)
	if len(small.Faults) > 0 || small.ControlPlanes+small.Workers > 2 {
		t.Errorf("%v is not small", small)
	}
	if again := drive.Run(t, small).Violation; again == nil || again.Rule != v.Rule {
		t.Errorf("%v breaks %v, not %v", small, again, v.Rule)
	}
}
