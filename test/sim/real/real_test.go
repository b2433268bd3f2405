package real

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/apply"
	"kubeone/internal/short"
	"kubeone/test/sim/drive"
)

// maxRuns is how many runs the cluster may take to be as wanted, once nothing goes wrong any more. A run that was
// forced and goes on meanwhile keeps the others out for minutes.
const maxRuns = 24

// course lets a scenario happen with the real apply, and returns the ends of its runs.
func course(t *testing.T, text string) []string {
	t.Helper()
	s, err := drive.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		defer end()
		sim := drive.New(s)
		c := &stage{sim: sim, w: NewWorld(sim), t: t}
		c.sim.Checker.State()
		go c.w.Live(ctx, c.second)
		c.play(ctx)
		c.others.Wait()
		out = c.ends
		if v := sim.Checker.Found(); v != nil {
			t.Errorf("%v\n\t%s\n\t%s", v, text, strings.Join(out, "\n\t"))
		}
	})
	return out
}

// stage is where one scenario happens.
type stage struct {
	t       *testing.T
	sim     *drive.Simulation
	w       *World
	current string         // the operator that runs
	others  sync.WaitGroup // operators beside it
	runs    int
	healed  bool
	ends    []string
}

// second is told of every second, with the world locked.
func (c *stage) second(n int) {
	if n > c.sim.Ends() {
		if !c.healed {
			c.sim.Heal()
			c.healed = true
		}
		return
	}
	for _, f := range c.sim.Befall(n) {
		switch f.Kind {
		case drive.Killed:
			c.w.dead[c.current] = true
		case drive.Second, drive.Forced:
			o := c.operator(f.Kind == drive.Forced)
			c.others.Go(func() { _ = c.run(c.t.Context(), o) })
		}
	}
}

func (c *stage) operator(force bool) *Operator {
	c.runs++
	want, config, addons := c.sim.Wanted()
	return &Operator{
		W: c.w, Name: fmt.Sprintf("operator-%d", c.runs), Want: want, Config: config, Addons: addons, Force: force,
	}
}

func (c *stage) run(ctx context.Context, o *Operator) error {
	err := o.Apply(ctx, "run-of-"+o.Name)
	said := "done"
	if err != nil {
		said, _, _ = strings.Cut(err.Error(), "\n")
	}
	c.w.do(func() {
		c.ends = append(c.ends, fmt.Sprintf("%v %s: %s", time.Since(c.w.began).Round(time.Second), o.Name, said))
	})
	return err
}

// play runs apply after apply until the cluster is as wanted.
func (c *stage) play(ctx context.Context) {
	for left := maxRuns; left > 0; {
		var o *Operator
		c.w.do(func() {
			o = c.operator(false)
			c.current = o.Name
		})
		err := c.run(ctx, o)
		var over, healed bool
		c.w.do(func() { over, healed = c.sim.Gone() || c.sim.Checker.Found() != nil, c.healed })
		switch {
		case over:
			return
		case errors.Is(err, ErrNothing) && healed:
			c.w.do(c.sim.AsWanted)
			return
		case healed:
			left--
			if p, _, _ := o.look(); len(p.Operator) > 0 || p.Blocked != "" {
				c.w.do(func() { c.sim.Assist(p) })
			}
		}
		if sleep(ctx, 25*time.Second) != nil {
			return
		}
	}
	c.t.Errorf("%s: %d runs, and the cluster is not as wanted:\n\t%s", c.sim.Scenario, maxRuns,
		strings.Join(c.ends, "\n\t"))
}

func TestTheRealApply(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"seed=1 hosts=1+0 start=bare faults=",
		"seed=1 hosts=3+2 start=bare faults=",
		"seed=1 hosts=3+2 start=older-minor faults=",
		"seed=1 hosts=3+2 start=missing faults=",
		"seed=1 hosts=3+0 start=surplus faults=1:dead:3:300",
		"seed=1 hosts=3+1 start=healthy faults=3:replaced:1:0",
		"seed=1 hosts=3+1 start=healthy faults=1:data-lost:2:0",
		"seed=1 hosts=3+1 start=healthy faults=1:expired:0:0,1:manifest:1:0,1:conf-lost:3:0",
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			course(t, text)
		})
	}
}

func TestTheRealApplyTakesEqualCourses(t *testing.T) {
	t.Parallel()
	const text = "seed=1 hosts=3+2 start=older-minor faults=30:lost-during:0:0,70:killed:0:0,90:dead:1:30"
	if diff := cmp.Diff(course(t, text), course(t, text)); diff != "" {
		t.Error(diff)
	}
}

func TestALockIsNotTakenFromALivingRun(t *testing.T) {
	t.Parallel()
	ends := course(t, "seed=1 hosts=3+1 start=bare faults=10:second:0:0")
	held := false
	for _, e := range ends {
		held = held || strings.Contains(e, "works on this cluster")
	}
	if !held {
		t.Errorf("nobody was refused: %q", ends)
	}
}

func TestEventsAreTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		defer end()
		s, err := drive.Parse("seed=1 hosts=1+0 start=bare faults=")
		if err != nil {
			t.Fatal(err)
		}
		c := &stage{sim: drive.New(s), t: t}
		c.w = NewWorld(c.sim)
		go c.w.Live(ctx, c.second)
		o := c.operator(false)
		told := map[apply.EventType]int{}
		o.Events = func(_ string, e apply.Event) { c.w.do(func() { told[e.Type]++ }) }
		if err := o.Apply(ctx, "run-1"); err != nil {
			t.Fatal(err)
		}
		if told[apply.RunStarted] != 1 || told[apply.RunFinished] != 1 || told[apply.StepDone] == 0 ||
			told[apply.StepFailed] > 0 {
			t.Errorf("told %v", told)
		}
	})
}

// Random schedules go well with the real apply, too.
func TestTheRealApplyUnderRandomFaults(t *testing.T) {
	t.Parallel()
	for seed := 1; seed <= short.Fewer(150) && !t.Failed(); seed++ {
		course(t, drive.Random(uint64(seed)).String()) // #nosec G115 -- from 1 on
	}
}
