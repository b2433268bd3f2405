package rollout

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kubeone/internal/testutil/short"
)

// families is the number of random families.
var families = flag.Int("families", 3000, "how many random families are tried")

// Mistyped replicas can be corrected before all machines are created.
func TestOnePlanMakesSoManyAtMost(t *testing.T) {
	t.Parallel()
	for _, rollout := range []*Rollout{nil, {MaxSurge: 1, Template: Template{Machine: "a"}}} {
		w := newWorld()
		w.Replicas, w.Rollout = 2_000_000_000, rollout
		if rollout == nil {
			w.Sets = []Set{{Name: "a", Replicas: w.Replicas}}
		}
		most := 0
		for range 4 {
			before := len(w.Machines)
			for _, write := range PlanFamily(w.look()).Writes {
				w.do(write)
			}
			most = max(most, len(w.Machines)-before)
		}
		if most != maxCreated {
			t.Errorf("%d machines are made at once, want %d at most", most, maxCreated)
		}
	}
}

// TestRandomFamilies applies random events to families: changes of the spec, machines that start, fail or disappear,
// and writes that are reordered or lost. Each plan keeps the invariants of package rollout. Without further events,
// each family reaches its desired state.
func TestRandomFamilies(t *testing.T) {
	t.Parallel()
	for seed := range short.Fewer(*families) {
		if err := life(uint64(seed)); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// life is one family with random events.
func life(seed uint64) error {
	r := rand.New(rand.NewPCG(seed, 1))
	w := newWorld()
	w.Replicas, w.MaxUnhealthy = r.IntN(8), 1+r.IntN(3)
	w.DeletePolicy = []DeletePolicy{Random, Newest, Oldest}[r.IntN(3)]
	if r.IntN(5) == 0 {
		w.Sets = []Set{{Name: "pool", Template: Template{Machine: "v0"}, Created: w.Now}}
	} else {
		w.Rollout = &Rollout{Strategy: RollingUpdate, RevisionHistoryLimit: r.IntN(3)}
		w.Rollout.Template.Machine = "v0"
		w.chooseLimits(r)
		if r.IntN(8) == 0 {
			w.Rollout.Strategy = OnDelete
		}
	}
	answers := []Change{Replace, InPlace, Replace, InPlace, Unsupported}
	for from := range 4 {
		for to := range 4 {
			w.changes[[2]string{fmt.Sprint("v", from), fmt.Sprint("v", to)}] = answers[r.IntN(len(answers))]
		}
	}
	for range 60 {
		if err := w.anything(r); err != nil {
			return err
		}
	}
	return w.calm(r)
}

func (w *world) chooseLimits(r *rand.Rand) {
	w.Rollout.MaxSurge, w.Rollout.MaxUnavailable = r.IntN(3), r.IntN(3)
	if w.Rollout.MaxSurge+w.Rollout.MaxUnavailable == 0 {
		w.Rollout.MaxSurge = 1
	}
}

// anything applies a random event to the family, most often one of its controller or machines.
func (w *world) anything(r *rand.Rand) error {
	w.Now = w.Now.Add(time.Duration(1+r.IntN(5)) * time.Second)
	switch n := r.IntN(20); {
	case n < 8:
		return w.planSome(r, false)
	case n < 15:
		if len(w.Machines) > 0 {
			w.progress(w.Machines[r.IntN(len(w.Machines))].Name)
		}
	case n < 17:
		w.somethingBreaks(r)
	default:
		w.somebodyWants(r)
	}
	return nil
}

func (w *world) somethingBreaks(r *rand.Rand) {
	if len(w.Machines) == 0 {
		return
	}
	m := &w.Machines[r.IntN(len(w.Machines))]
	switch r.IntN(5) {
	case 0:
		m.Unhealthy, m.ReadySince = true, time.Time{}
	case 4:
		m.DeleteFirst = true
	case 1:
		m.ReadySince, m.Lost = time.Time{}, r.IntN(2) == 0
	case 2:
		m.Unhealthy, m.Lost = false, false
	case 3:
		m.Deleting = true
	}
}

func (w *world) somebodyWants(r *rand.Rand) {
	if w.Rollout == nil || r.IntN(2) == 0 {
		w.Replicas = r.IntN(8)
		return
	}
	switch r.IntN(6) {
	case 0, 1:
		w.Rollout.Template.Machine = fmt.Sprint("v", r.IntN(4))
	case 2:
		w.Rollout.Template.Metadata = fmt.Sprint("metadata ", r.IntN(3))
	case 3:
		w.Rollout.Paused = !w.Rollout.Paused
	case 4:
		w.chooseLimits(r)
	case 5:
		w.Rollout.RollbackTo = int64(r.IntN(4))
	}
}

// planSome plans, checks the plan, and makes a part of its writes in any order; all of them where whole is true.
func (w *world) planSome(r *rand.Rand, whole bool) error {
	f := w.look()
	writes := PlanFamily(f).Writes
	if err := kept(f, writes); err != nil {
		return fmt.Errorf("%w\n%s%+v\n%v", err, w, w.Rollout, writes)
	}
	made := slices.Clone(writes)
	r.Shuffle(len(made), func(i, j int) { made[i], made[j] = made[j], made[i] })
	if !whole && len(made) > 0 {
		made = made[:r.IntN(len(made)+1)]
	}
	for _, write := range made {
		w.do(write)
	}
	return nil
}

// kept returns the invariant that the writes break, or "".
func kept(f Family, writes []Write) error {
	c := counts{}
	if f.Rollout != nil && f.Rollout.Strategy != OnDelete {
		c.surge, c.least = f.Rollout.MaxSurge, f.Replicas-f.Rollout.MaxUnavailable
	}
	machines := map[string]Machine{}
	for _, m := range f.Machines {
		machines[m.Name] = m
		c.add(f, m)
	}
	touched := map[string]bool{}
	for _, write := range writes {
		if write.Reason == "unhealthy" && c.broken > f.MaxUnhealthy {
			return fmt.Errorf("%s: %d machines are unhealthy or lost, and %d may be", write, c.broken, f.MaxUnhealthy)
		}
		m, known := machines[write.Machine]
		switch write.Kind {
		case CreateMachine:
			c.created++
		case DeleteMachine, MoveMachine, LabelMachine:
			if !known || m.Deleting || touched[m.Name] {
				return fmt.Errorf("%s: it is unknown, going, or written twice", write)
			}
			touched[m.Name] = true
			if write.Kind != LabelMachine {
				c.take(f, m, write)
			}
		}
	}
	return c.exceeded(f)
}

// counts summarizes a plan.
type counts struct {
	surge, least     int
	alive, available int
	// mayWork is the number of machines that are available or outdated. Outdated ones may become available at any time.
	mayWork int
	created int
	// broken is the number of unhealthy or lost machines.
	broken int
	// taken is the number of available machines taken. Named counts those that an operator chose.
	taken, named int
	// converted is the number of machines taken because they are outdated. mayNotWork is the number taken of mayWork.
	converted, mayNotWork int
}

func (c *counts) add(f Family, m Machine) {
	if m.Unhealthy || m.Lost {
		c.broken++
	}
	if m.Deleting {
		return
	}
	c.alive++
	if m.isAvailable(f.Now, f.MinReady) {
		c.available++
	}
	if c.works(f, m) {
		c.mayWork++
	}
}

// works reports whether the machine is available or outdated.
func (c *counts) works(f Family, m Machine) bool {
	return m.isAvailable(f.Now, f.MinReady) || newPlanner(f).isOutdated(&m)
}

func (c *counts) take(f Family, m Machine, write Write) {
	if m.isAvailable(f.Now, f.MinReady) {
		c.taken++
		if m.DeleteFirst {
			c.named++
		}
	}
	if c.works(f, m) {
		c.mayNotWork++
	}
	if write.Kind == MoveMachine || write.Reason == outdatedTemplate {
		c.converted++
	}
}

func (c *counts) exceeded(f Family) error {
	tooMany := max(0, c.alive-f.Replicas-c.surge)
	if f.Rollout != nil && f.Rollout.Paused {
		tooMany = max(0, c.alive-f.Replicas)
	}
	switch {
	case c.created > 0 && len(f.Machines)+c.created > f.Replicas+c.surge:
		return fmt.Errorf("%d machines and %d new ones are more than %d and %d",
			len(f.Machines), c.created, f.Replicas, c.surge)
	case c.taken-min(c.named, tooMany) > 0 && c.available-c.taken < c.least-min(c.named, tooMany):
		return fmt.Errorf("%d of %d available machines are taken, and %d must stay", c.taken, c.available, c.least)
	case c.converted > 0 && c.mayWork-c.mayNotWork < c.least-min(c.named, tooMany):
		return fmt.Errorf("%d machines are converted, and %d of %d that may work go: %d must stay",
			c.converted, c.mayNotWork, c.mayWork, c.least)
	}
	return nil
}

// calm runs the family without further events until nothing changes. It returns what differs from the desired state.
func (w *world) calm(r *rand.Rand) error {
	if w.Rollout != nil {
		w.Rollout.Paused, w.Rollout.RollbackTo = false, 0
	}
	for way, change := range w.changes {
		if change == Unsupported {
			w.changes[way] = Replace
		}
	}
	for range 400 {
		for i := range w.Machines {
			w.Machines[i].Unhealthy, w.Machines[i].Lost = false, false
		}
		if err := w.planSome(r, r.IntN(3) > 0); err != nil {
			return err
		}
		w.step()
		w.Now = w.Now.Add(time.Second)
	}
	plan := PlanFamily(w.look())
	switch {
	case len(plan.Writes) > 0:
		return fmt.Errorf("there is no end: %v\n%s", plan.Writes, w)
	case len(w.Machines) != w.Replicas:
		return fmt.Errorf("%d machines in the end, want %d\n%s", len(w.Machines), w.Replicas, w)
	case w.Rollout != nil && w.Rollout.Strategy == RollingUpdate && !plan.Status.Complete:
		return fmt.Errorf("the roll-out does not end: %+v\n%s", plan.Status, w)
	}
	return w.noted()
}

// noted returns what is wrong in the final sets and machines.
func (w *world) noted() error {
	if w.Rollout == nil {
		return nil
	}
	current := newPlanner(w.look()).current
	for _, s := range w.Sets {
		if s.Revision > current.Revision {
			return fmt.Errorf("revision %d is not the deployment's\n%s", s.Revision, w)
		}
		n := 0
		for _, m := range w.Machines {
			if m.Set == s.Name {
				n++
			}
			if m.Set == s.Name && m.Metadata != s.Template.Metadata {
				return fmt.Errorf("%s has other metadata than its set\n%s", m.Name, w)
			}
		}
		if n != s.Replicas {
			return fmt.Errorf("%s says %d replicas and has %d\n%s", s.Name, s.Replicas, n, w)
		}
	}
	if len(w.Sets) > 1+w.Rollout.RevisionHistoryLimit && w.Rollout.Strategy == RollingUpdate {
		return fmt.Errorf("%d sets are kept\n%s", len(w.Sets), w)
	}
	return nil
}
