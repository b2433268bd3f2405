package rollout

import "slices"

// continueRollout plans the next part of a rollout. It deletes machines beyond the surge, updates or deletes outdated
// machines while enough others are available, creates new machines within the surge, and finally deletes the surge.
func (p *planner) continueRollout() {
	p.deleteMachines(len(p.alive)-p.Replicas-p.Rollout.MaxSurge, "more machines than replicas")
	p.updateOutdated()
	p.fillCurrentSet()
	p.endSurge()
}

// updateOutdated moves outdated machines to the current set or deletes them, within MaxUnavailable.
func (p *planner) updateOutdated() {
	minAvailable := p.Replicas - p.Rollout.MaxUnavailable
	room := len(p.alive) - p.countUnavailableCurrent() - minAvailable
	spare := p.countAvailable() - minAvailable
	for _, m := range p.outdatedInOrder() {
		change := p.setByName(m.Set).Change
		if change == Unsupported {
			p.blocked++
			continue
		}
		available := p.isAvailable(m)
		if room <= 0 || available && spare <= 0 {
			continue
		}
		room--
		if available {
			spare--
		}
		if change == InPlace {
			p.moveMachine(m)
		} else {
			p.deleteMachine(m, outdatedTemplate)
		}
	}
}

// outdatedTemplate is the reason of a deletion by a rollout.
const outdatedTemplate = "outdated template"

// outdatedInOrder returns the outdated machines in the order of their update.
func (p *planner) outdatedInOrder() []*Machine {
	var outdated []*Machine
	for _, m := range p.alive {
		if p.isOutdated(m) {
			outdated = append(outdated, m)
		}
	}
	slices.SortFunc(outdated, p.compareForUpdate)
	return outdated
}

// countUnavailableCurrent returns the number of unavailable machines in the current set. They count against
// MaxUnavailable.
func (p *planner) countUnavailableCurrent() int {
	n := 0
	for _, m := range p.alive {
		if !p.isOutdated(m) && !p.isAvailable(m) {
			n++
		}
	}
	return n
}

// moveMachine moves a machine to the current set to be updated in place.
func (p *planner) moveMachine(m *Machine) {
	p.writes = append(p.writes, Write{
		Kind: MoveMachine, Machine: m.Name, Name: p.current.Name, Reason: "in place",
	})
	m.Set, m.Updating = p.current.Name, true
}

// fillCurrentSet creates missing machines in the current set, and a surge if the rollout needs one. An update in place
// needs a surge, of one machine, only if MaxUnavailable is 0.
func (p *planner) fillCurrentSet() {
	surge, replaced, inPlace := p.Rollout.MaxSurge, 0, 0
	for _, m := range p.outdatedInOrder() {
		switch p.setByName(m.Set).Change {
		case InPlace:
			inPlace++
		case Replace:
			replaced++
		}
	}
	switch {
	case replaced > 0:
		surge = min(surge, replaced+inPlace)
	case inPlace > 0 && p.Rollout.MaxUnavailable == 0:
		surge = min(surge, 1)
	default:
		surge = 0
	}
	room := p.Replicas + p.Rollout.MaxSurge - len(p.alive) - p.leaving
	p.createMachines(p.current.Name, min(p.Replicas+surge-len(p.alive), room))
}

// endSurge deletes machines beyond the replicas once none is outdated or updating. It deletes an available machine only
// while enough others are available.
func (p *planner) endSurge() {
	for _, m := range p.alive {
		if m.Updating || p.isOutdated(m) && p.setByName(m.Set).Change != Unsupported {
			return
		}
	}
	excess := len(p.alive) - p.Replicas
	if excess <= 0 {
		return
	}
	spare := p.countAvailable() - (p.Replicas - p.Rollout.MaxUnavailable)
	for _, m := range slices.SortedFunc(slices.Values(p.alive), p.compareForDeletion) {
		available := p.isAvailable(m)
		if excess == 0 || available && spare <= 0 {
			break
		}
		excess--
		if available {
			spare--
		}
		p.deleteMachine(m, "more machines than replicas")
	}
}

// scaleProportionally keeps the number of machines at the desired value while the rollout is paused. It scales each set
// in proportion to its machines, so that the ratio of old to new machines stays the same. When it must delete machines,
// it deletes unavailable ones first, in any set.
func (p *planner) scaleProportionally() {
	maxMachines := p.Replicas
	if len(p.divideReplicas(0)) > 1 && p.Replicas > 0 {
		maxMachines += p.Rollout.MaxSurge
	}
	if excess := len(p.alive) - maxMachines; excess > 0 {
		unavailable := min(excess, len(p.alive)-p.countAvailable())
		p.deleteMachines(unavailable, "more machines than replicas")
		for _, s := range p.divideReplicas(excess - unavailable) {
			p.deleteShare(s)
		}
		return
	}
	missing := min(p.Replicas, p.Replicas+p.Rollout.MaxSurge-p.leaving) - len(p.alive)
	if len(p.alive) == 0 {
		p.createMachines(p.current.Name, missing)
		return
	}
	for _, s := range p.divideReplicas(max(0, missing)) {
		p.createMachines(s.set, s.n)
	}
}

// deleteShare deletes s.n machines of the set, in the order of compareForDeletion.
func (p *planner) deleteShare(s share) {
	for _, m := range slices.SortedFunc(slices.Values(p.alive), p.compareForDeletion) {
		if s.n > 0 && m.Set == s.set {
			p.deleteMachine(m, "more machines than replicas")
			s.n--
		}
	}
}
