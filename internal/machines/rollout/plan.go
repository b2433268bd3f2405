package rollout

import (
	"slices"
	"time"
)

// Plan is the result of PlanFamily.
type Plan struct {
	// Writes are the changes to carry out now. If some are omitted or repeated, the next plan corrects this.
	Writes []Write
	// Status is the state before the writes.
	Status Status
	// Wake is when to plan again if nothing changes before; zero means never.
	Wake time.Time
}

// PlanFamily plans the next writes for the family. It does not change f.
func PlanFamily(f Family) Plan {
	p := newPlanner(f)
	plan := Plan{Status: p.statusBefore(), Wake: p.nextWake()}
	if !f.Deleting {
		p.planWrites()
		plan.Status.Held = p.held
		plan.Status.Blocked = p.blocked
		plan.Writes = p.writes
	}
	return plan
}

// planner creates one plan. Its machines include the effect of the writes planned so far.
type planner struct {
	Family
	// current is the set with the deployment's template, or the only set; nil if there is none.
	current *Set
	// alive are the machines that are not being deleted, oldest first.
	alive []*Machine
	// leaving is the number of machines being deleted.
	leaving int
	// used are the sets with a machine before the writes, including machines being deleted.
	used map[string]bool
	// created is the number of new machines by set.
	created map[string]int

	writes  []Write
	held    int
	blocked int
}

func newPlanner(f Family) *planner {
	p := &planner{Family: f, created: map[string]int{}, used: map[string]bool{}}
	// A machine without its set is garbage-collected.
	p.Machines = slices.DeleteFunc(slices.Clone(f.Machines), func(m Machine) bool { return p.setByName(m.Set) == nil })
	if f.Rollout != nil && f.Rollout.Strategy == OnDelete {
		// The replacement of a deleted machine uses the same host, so there is no surge.
		onDelete := *f.Rollout
		onDelete.MaxSurge, onDelete.MaxUnavailable = 0, f.Replicas
		p.Rollout = &onDelete
	}
	slices.SortFunc(p.Machines, byAge)
	for i := range p.Machines {
		p.used[p.Machines[i].Set] = true
		if p.Machines[i].Deleting {
			p.leaving++
		} else {
			p.alive = append(p.alive, &p.Machines[i])
		}
	}
	p.current = p.findCurrent()
	return p
}

// planWrites plans all writes. Unhealthy machines are replaced first, without waiting for a rollout.
func (p *planner) planWrites() {
	if p.Rollout != nil && !p.reviseSets() {
		return
	}
	p.remediateMachines()
	switch {
	case p.Rollout == nil:
		p.scaleTo(p.Replicas)
	case p.Rollout.Paused:
		p.scaleProportionally()
	case p.Rollout.Strategy == OnDelete:
		p.scaleTo(p.Replicas)
	default:
		p.continueRollout()
	}
	p.syncObjects()
}

// scaleTo creates or deletes machines to reach the number of replicas. Machines that are being deleted count, because
// their hosts are not free yet.
func (p *planner) scaleTo(replicas int) {
	p.createMachines(p.current.Name, replicas-len(p.alive)-p.leaving)
	p.deleteMachines(len(p.alive)-replicas, "more machines than replicas")
}

// maxCreated limits the number of new machines in one plan. An operator who mistyped the replicas can correct them
// before the next plan.
const maxCreated = 500

// createMachines plans n new machines in the set, but at most maxCreated in the whole plan. A negative n means 0.
func (p *planner) createMachines(set string, n int) {
	made := 0
	for _, count := range p.created {
		made += count
	}
	for range min(max(n, 0), max(maxCreated-made, 0)) {
		p.writes = append(p.writes, Write{Kind: CreateMachine, Name: set})
		p.created[set]++
	}
}

func (p *planner) deleteMachine(m *Machine, reason string) {
	p.writes = append(p.writes, Write{Kind: DeleteMachine, Machine: m.Name, Reason: reason})
	p.alive = slices.DeleteFunc(p.alive, func(a *Machine) bool { return a == m })
	p.leaving++
}

// deleteMachines plans the deletion of n machines, in the order of compareForDeletion. A negative n means 0.
func (p *planner) deleteMachines(n int, reason string) {
	for _, m := range slices.SortedFunc(slices.Values(p.alive), p.compareForDeletion)[:max(0, min(n, len(p.alive)))] {
		p.deleteMachine(m, reason)
	}
}

// remediateMachines deletes unhealthy machines unless too many are unhealthy or lost. Machines that are being deleted
// count too, because otherwise a whole pool could be deleted one by one. Lost machines count, because machines that
// fail together become unhealthy one after another.
func (p *planner) remediateMachines() {
	failing := 0
	for i := range p.Machines {
		if p.Machines[i].Unhealthy || p.Machines[i].Lost {
			failing++
		}
	}
	for _, m := range slices.Clone(p.alive) {
		switch {
		case !m.Unhealthy:
		case failing > p.MaxUnhealthy:
			p.held = failing
		default:
			p.deleteMachine(m, "unhealthy")
		}
	}
}

// syncObjects updates replicas and metadata of sets and machines, and deletes old sets.
func (p *planner) syncObjects() {
	for i := range p.Sets {
		s := &p.Sets[i]
		if s.Deleting || p.Rollout == nil {
			continue
		}
		if s == p.current && s.Template.Metadata != p.Rollout.Template.Metadata {
			p.writes = append(p.writes, Write{Kind: LabelSet, Name: s.Name})
			continue
		}
		if n := p.countLiving(s.Name) + p.created[s.Name]; n != s.Replicas {
			p.writes = append(p.writes, Write{Kind: ScaleSet, Name: s.Name, Replicas: n})
		}
	}
	for _, m := range p.alive {
		if s := p.setByName(m.Set); s != nil && m.Metadata != s.Template.Metadata && !p.isMoved(m) {
			p.writes = append(p.writes, Write{Kind: LabelMachine, Machine: m.Name})
		}
	}
	if p.Rollout != nil && !p.Rollout.Paused {
		p.deleteOldSets()
	}
}

// isMoved reports whether the plan moves the machine to another set. That write also sets the metadata.
func (p *planner) isMoved(m *Machine) bool {
	return slices.ContainsFunc(p.writes, func(w Write) bool { return w.Kind == MoveMachine && w.Machine == m.Name })
}

// countLiving returns the number of machines in the set that are not being deleted.
func (p *planner) countLiving(set string) int {
	n := 0
	for _, m := range p.alive {
		if m.Set == set {
			n++
		}
	}
	return n
}

// setByName returns the set with that name, or nil.
func (p *planner) setByName(name string) *Set {
	for i := range p.Sets {
		if p.Sets[i].Name == name {
			return &p.Sets[i]
		}
	}
	return nil
}

func (p *planner) countAvailable() int {
	n := 0
	for _, m := range p.alive {
		if p.isAvailable(m) {
			n++
		}
	}
	return n
}

func (p *planner) isAvailable(m *Machine) bool { return m.isAvailable(p.Now, p.MinReady) }

// isOutdated reports whether the template of the machine differs from that of the deployment. It returns false
// without a deployment.
func (p *planner) isOutdated(m *Machine) bool {
	return p.Rollout != nil && (p.current == nil || m.Set != p.current.Name)
}
