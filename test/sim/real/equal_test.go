package real

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/apply"
	"kubeone/internal/plan"
	"kubeone/internal/short"
	"kubeone/test/sim/drive"
	"kubeone/test/sim/world"
)

// trial is one run of apply, over which a fault comes after so many effects of its steps.
type trial struct {
	scenario drive.Scenario // whose faults are there before the run
	effects  int
	fault    drive.Fault
	ordered  bool // the steps run one at a time
	closed   int  // of which host an earlier run has left the Node closed, counted from 1; 0 for none
}

// Faults of a trial last either for a moment that every wait outlasts, or for longer than any of them.
const (
	briefly = 8
	forGood = 1 << 20
	// calm is how long the world goes on after a run: until whatever runs on hosts has ended.
	calm = 420
)

// String is the trial as a test's message has it.
func (c trial) String() string {
	return fmt.Sprintf("%s; closed %d; after %d effects %s", c.scenario, c.closed, c.effects, c.fault)
}

// outcome is what becomes of a trial.
type outcome struct {
	Steps map[string]apply.State
	World []string
	Rule  string // that was broken
	// Silent: no API answers in the end. How long a run then goes on is a question of seconds: for as long as it
	// trusts its Lease.
	Silent bool
}

// ofDrive is what becomes of a trial with the simulator's executor.
func (c trial) ofDrive() outcome {
	sim := c.begin()
	out := outcome{Steps: map[string]apply.State{}}
	sim.Ended = func(_, step string, how apply.State) { out.Steps[step] = how }
	sim.Arrange = c.arrange()
	sim.Once(calm)
	return out.with(sim, c.ordered)
}

// ofApply is what becomes of it with the real one.
func (c trial) ofApply(t *testing.T) outcome {
	t.Helper()
	out := outcome{Steps: map[string]apply.State{}}
	synctest.Test(t, func(t *testing.T) {
		sim := c.begin()
		w := NewWorld(sim)
		go w.Live(t.Context(), func(second int) { sim.Befall(second) })
		want, config, addons := sim.Wanted()
		o := &Operator{W: w, Name: "operator", Want: want, Config: config, Addons: addons, Arrange: c.arrange()}
		o.Events = func(_ string, e apply.Event) {
			states := map[apply.EventType]apply.State{
				apply.StepDone: apply.Done, apply.StepFailed: apply.Failed, apply.StepSkipped: apply.Skipped,
			}
			if how, ended := states[e.Type]; ended {
				w.look(func() { out.Steps[e.Step] = how })
			}
		}
		_ = o.Apply(t.Context(), "run-1")
		_ = sleep(t.Context(), calm*time.Second)
		w.look(func() { out = out.with(sim, c.ordered) })
	})
	return out
}

func (c trial) begin() *drive.Simulation {
	s := c.scenario
	before := s.Faults
	s.Faults = nil
	sim := drive.New(s)
	for _, f := range before {
		sim.Inject(f)
	}
	sim.World.Settle()
	if r := sim.World.EtcdCluster(); r != nil && c.closed > 0 {
		if n := r.Objects.Node(sim.World.Hosts[c.closed-1].Name); n != nil {
			n.Cordoned, n.CordonedBy = true, "run-0"
		}
	}
	if r := sim.World.EtcdCluster(); r != nil && c.movesPods() {
		r.Objects.Apps = nil
	}
	if c.fault.Kind != "" {
		sim.InjectAfter(c.effects, c.fault)
	}
	return sim
}

// movesPods reports whether a worker falls silent: when its pods come to others is a question of minutes, and
// whether a budget lets another one be drained then is too.
func (c trial) movesPods() bool {
	return slices.ContainsFunc(append(slices.Clone(c.scenario.Faults), c.fault), func(f drive.Fault) bool {
		return f.Host >= c.scenario.ControlPlanes && f.Kind != drive.ByHand
	})
}

// arrange has one step follow the other, so that both executors make the same effects in the same order.
func (c trial) arrange() func(plan.Plan) plan.Plan {
	if !c.ordered {
		return nil
	}
	return func(p plan.Plan) plan.Plan {
		left := slices.Clone(p.Steps)
		p.Steps = nil
		placed := map[string]bool{}
		for len(left) > 0 {
			i := slices.IndexFunc(left, func(s plan.Step) bool {
				return !slices.ContainsFunc(slices.Concat(s.Needs, s.After), func(id string) bool {
					return !placed[id]
				})
			})
			s := left[i]
			s.After = nil
			for _, before := range p.Steps { // not only the last one, which is over when it is skipped
				s.After = append(s.After, before.ID)
			}
			left, p.Steps, placed[s.ID] = slices.Delete(left, i, i+1), append(p.Steps, s), true
		}
		return p
	}
}

// with adds the world as it has become, without what only tells of time, and where pods are.
func (o outcome) with(sim *drive.Simulation, ordered bool) outcome {
	w := sim.World
	if v := sim.Checker.Found(); v != nil {
		o.Rule = string(v.Rule)
	}
	o.Silent = w.EtcdCluster() != nil && !w.APIReached()
	if !ordered {
		return o // who joins first has the lower number
	}
	for _, h := range w.Hosts {
		d := h.Disk
		d.Generation, d.Result = 0, nil
		if d.Data != nil {
			d.Data = &world.Data{EtcdCluster: d.Data.EtcdCluster, Member: d.Data.Member}
		}
		o.World = append(o.World, fmt.Sprintf(
			"%s machine %d up %v disk %s run %s", h.Name, h.Machine, h.Up, disk(d), running(h.Run)))
	}
	if r := w.EtcdCluster(); r != nil {
		o.World = append(o.World, fmt.Sprintf(
			"etcd cluster %d members %+v addons %v record %q", r.ID, r.Members, r.Objects.Addons, r.Objects.Record))
		for _, n := range r.Objects.Nodes {
			o.World = append(o.World, fmt.Sprintf("Node %s %s ready %v closed %v by a run %v labels %v",
				n.Name, n.Kubelet, n.Ready, n.Cordoned, n.CordonedBy != "", n.Labels))
		}
	}
	slices.Sort(o.World)
	return o
}

func disk(d world.Disk) string {
	data := world.Data{}
	if d.Data != nil {
		data = *d.Data
	}
	marker := "none"
	if d.Marker != nil {
		marker = fmt.Sprint(*d.Marker)
	}
	slices.Sort(d.Fetched)
	text := []string{
		marker, fmt.Sprint(d.CA, d.KubeletCA, d.AdminCA, d.Local, data, len(d.Aside)), d.Kubelet,
		fmt.Sprint(d.Fetched, d.Enabled, d.Etcd), d.API, fmt.Sprint(d.Controllers, d.Expired), d.Upgrading, d.Digest,
	}
	return strings.Join(text, " ")
}

func running(r world.Running) string {
	return fmt.Sprint(r.Containerd, r.Kubelet, r.KubeletVersion, r.Etcd, r.API, r.Unit != nil)
}

// pick is one of them.
func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// random is the trial of a seed.
func random(seed uint64) trial {
	r := rand.New(rand.NewPCG(seed, 1))
	c := trial{effects: 1 + r.IntN(pick(r, 8, 30, 90))}
	c.scenario = drive.Scenario{
		Seed: seed, ControlPlanes: pick(r, 1, 2, 3, 3, 4, 5), Workers: pick(r, 0, 1, 2, 3),
		Start: pick(r, drive.Starts()...),
	}
	hosts := c.scenario.ControlPlanes + c.scenario.Workers
	if c.scenario.Start == drive.Surplus {
		hosts++
	}
	for range pick(r, 0, 1, 1, 2) {
		kind := pick(r,
			drive.Stopped, drive.Crashed, drive.DataLost, drive.Manifest, drive.Expired, drive.ConfLost, drive.Edited,
			drive.Replaced,
			drive.Dead, drive.Split, drive.ByHand)
		c.scenario.Faults = append(c.scenario.Faults, drive.Fault{Kind: kind, Host: r.IntN(hosts), For: forGood})
	}
	if r.IntN(4) == 0 {
		c.closed = 1 + r.IntN(hosts)
	}
	if r.IntN(8) > 0 {
		kind := pick(r,
			drive.LostBefore, drive.LostDuring, drive.LostAfter, drive.Cut, drive.Split, drive.Dead, drive.Replaced,
			drive.Full, drive.FailOnce, drive.FailAlways, drive.Stopped, drive.Crashed, drive.DataLost, drive.Manifest,
			drive.Expired, drive.ConfLost, drive.Edited, drive.Collected, drive.ByHand, drive.Stop, drive.Healed)
		c.fault = drive.Fault{Kind: kind, Host: r.IntN(hosts), For: pick(r, briefly, forGood)}
		// perhaps: and that waits for nothing
		removes := len(c.scenario.Faults) > 0 || c.scenario.Start == drive.Surplus
		if kind == drive.FailAlways || kind == drive.Full || removes {
			c.fault.For = forGood // what fails at once would depend on what comes in these very seconds
		}
	}
	c.ordered = c.fault.Kind != "" || len(c.scenario.Faults) > 0 || r.IntN(2) == 0
	return c
}

// The simulator's own executor and the real one carry the same plan out alike: every step ends as it does with
// the other, and the world is left the same.
func TestBothExecutorsAreEqual(t *testing.T) {
	t.Parallel()
	trials := short.Fewer(2000)
	states, silent := map[apply.State]int{}, 0
	for seed := 1; seed <= trials && !t.Failed(); seed++ {
		c := random(uint64(seed)) // #nosec G115 -- from 1 on
		simulated, actual := c.ofDrive(), c.ofApply(t)
		if simulated.Silent && actual.Silent {
			silent++
			continue
		}
		if diff := cmp.Diff(actual, simulated); diff != "" {
			t.Errorf("seed %d, %s (-real, +simulated):\n%s", seed, c, diff)
		}
		for how := range maps.Values(actual.Steps) {
			states[how]++
		}
	}
	failed, skipped := states[apply.Failed], states[apply.Skipped]
	if silent > trials/3 || states[apply.Done] < trials || failed < trials/20 || skipped < trials/20 {
		t.Errorf("the trials show too little: %v, and in %d no API was left", states, silent)
	}
}
