package rollout

import (
	"slices"
	"time"
)

// Plan is what is to be done now, and what is to be said of the family.
type Plan struct {
	// Writes is the changes to make; any of them may be left out or made twice, and the next plan goes on from there.
	Writes []Write
	// Status is what is so now, before the writes.
	Status Status
	// Wake is when to ask again although nothing has changed; zero for never.
	Wake time.Time
}

// PlanFamily says what to do about the family now. It changes nothing that it is given.
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

// planner is one plan in the making. Its machines are those that are left if what was written so far happens.
type planner struct {
	Family
	// current is the set that has the deployment's template, or the only set; nil where none has.
	current *Set
	// alive is the machines that are not being deleted, in the order in which they were made.
	alive []*Machine
	// leaving is how many are being deleted.
	leaving int
	// used is the sets that have a machine now, be it one that is being deleted or that another set gets.
	used map[string]bool
	// created is how many machines were written for each set.
	created map[string]int

	writes  []Write
	held    int
	blocked int
}

func newPlanner(f Family) *planner {
	p := &planner{Family: f, created: map[string]int{}, used: map[string]bool{}}
	// A machine whose set is gone goes with it.
	p.Machines = slices.DeleteFunc(slices.Clone(f.Machines), func(m Machine) bool { return p.setByName(m.Set) == nil })
	if f.Rollout != nil && f.Rollout.Strategy == OnDelete {
		// What a person deletes is replaced on the same host: nothing is made before it has gone.
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

// planWrites fills in the writes. What it does first is what does not wait: machines that are lost anyway.
func (p *planner) planWrites() {
	if p.Rollout != nil && !p.reviseSets() {
		return
	}
	p.remediateMachines()
	switch {
	case p.Rollout == nil:
		p.keepNumber(p.Replicas)
	case p.Rollout.Paused:
		p.scaleProportionally()
	case p.Rollout.Strategy == OnDelete:
		p.keepNumber(p.Replicas)
	default:
		p.continueRollout()
	}
	p.writeStatuses()
}

// keepNumber makes and deletes machines until there are as many as wanted. A machine that is being deleted counts until
// it has gone, as its host is not free before.
func (p *planner) keepNumber(replicas int) {
	p.createMachines(p.current.Name, replicas-len(p.alive)-p.leaving)
	p.deleteFirst(len(p.alive)-replicas, "more machines than replicas")
}

// mostCreated is how many machines one plan makes. The next plan makes more, of what is wanted by then: a number that
// somebody has mistyped can be corrected.
const mostCreated = 500

// createMachines writes n machines of a set, as far as one plan makes so many; none where n is negative.
func (p *planner) createMachines(set string, n int) {
	made := 0
	for _, count := range p.created {
		made += count
	}
	for range min(max(n, 0), max(mostCreated-made, 0)) {
		p.writes = append(p.writes, Write{Kind: CreateMachine, Name: set})
		p.created[set]++
	}
}

// deleteMachine writes that a machine goes.
func (p *planner) deleteMachine(m *Machine, reason string) {
	p.writes = append(p.writes, Write{Kind: DeleteMachine, Machine: m.Name, Reason: reason})
	p.alive = slices.DeleteFunc(p.alive, func(a *Machine) bool { return a == m })
	p.leaving++
}

// deleteFirst writes that n machines go, those first that are missed least.
func (p *planner) deleteFirst(n int, reason string) {
	for _, m := range slices.SortedFunc(slices.Values(p.alive), p.missedLess)[:max(0, min(n, len(p.alive)))] {
		p.deleteMachine(m, reason)
	}
}

// remediateMachines deletes the machines that are unhealthy, unless too many are broken. One that is unhealthy and
// being deleted still counts, or a whole pool would go one by one; so does one that is lost, as machines that break
// together are unhealthy one after the other.
func (p *planner) remediateMachines() {
	broken := 0
	for i := range p.Machines {
		if p.Machines[i].Unhealthy || p.Machines[i].Lost {
			broken++
		}
	}
	for _, m := range slices.Clone(p.alive) {
		switch {
		case !m.Unhealthy:
		case broken > p.MaxUnhealthy:
			p.held = broken
		default:
			p.deleteMachine(m, "unhealthy")
		}
	}
}

// writeStatuses writes what sets and machines are to say of themselves: the number of replicas, and the template's
// metadata.
func (p *planner) writeStatuses() {
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
		p.forgetSets()
	}
}

// isMoved says whether the machine is given to another set, and its metadata with it.
func (p *planner) isMoved(m *Machine) bool {
	return slices.ContainsFunc(p.writes, func(w Write) bool { return w.Kind == MoveMachine && w.Machine == m.Name })
}

// countLiving is how many machines the set has that are not being deleted.
func (p *planner) countLiving(set string) int {
	n := 0
	for _, m := range p.alive {
		if m.Set == set {
			n++
		}
	}
	return n
}

// setByName is the set of that name; nil where there is none.
func (p *planner) setByName(name string) *Set {
	for i := range p.Sets {
		if p.Sets[i].Name == name {
			return &p.Sets[i]
		}
	}
	return nil
}

// countAvailable counts the machines that do their work.
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

// isOutdated says whether the machine is not of the deployment's template. Of a set without deployment none is.
func (p *planner) isOutdated(m *Machine) bool {
	return p.Rollout != nil && (p.current == nil || m.Set != p.current.Name)
}
