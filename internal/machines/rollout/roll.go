package rollout

import "slices"

// continueRollout goes on with a roll-out: machines that are too many go, outdated ones are changed or deleted as far
// as enough others work, new ones are made as far as there is room, and the surge goes when it is not needed any more.
func (p *planner) continueRollout() {
	p.deleteFirst(len(p.alive)-p.Replicas-p.Rollout.MaxSurge, "more machines than replicas")
	p.convertMachines()
	p.fillCurrentSet()
	p.endSurge()
}

// convertMachines gives outdated machines to the current set, or deletes them, as many as may be unavailable at the
// same time.
func (p *planner) convertMachines() {
	least := p.Replicas - p.Rollout.MaxUnavailable
	room := len(p.alive) - p.unavailableNow() - least
	spare := p.countAvailable() - least
	for _, m := range p.outdatedByTurn() {
		change := p.setByName(m.Set).Change
		if change == Unsupported {
			p.blocked++
			continue
		}
		works := p.isAvailable(m)
		if room <= 0 || works && spare <= 0 {
			continue
		}
		room--
		if works {
			spare--
		}
		if change == InPlace {
			p.moveMachine(m)
		} else {
			p.deleteMachine(m, "of a former template")
		}
	}
}

// outdatedByTurn is the outdated machines in the order in which they are converted.
func (p *planner) outdatedByTurn() []*Machine {
	var outdated []*Machine
	for _, m := range p.alive {
		if p.isOutdated(m) {
			outdated = append(outdated, m)
		}
	}
	slices.SortFunc(outdated, p.convertedFirst)
	return outdated
}

// unavailableNow counts the machines of the current set that do not work yet. Each of them is one of those that the
// roll-out may have taken.
func (p *planner) unavailableNow() int {
	n := 0
	for _, m := range p.alive {
		if !p.isOutdated(m) && !p.isAvailable(m) {
			n++
		}
	}
	return n
}

// moveMachine gives a machine to the current set, which says what becomes of it.
func (p *planner) moveMachine(m *Machine) {
	p.writes = append(p.writes, Write{
		Kind: MoveMachine, Machine: m.Name, Name: p.current.Name, Reason: "in place",
	})
	m.Set, m.Updating = p.current.Name, true
}

// fillCurrentSet makes machines of the current set: what is missing, and a surge where the roll-out needs one. A change
// in place needs one machine more only where none may be unavailable.
func (p *planner) fillCurrentSet() {
	surge, replaced, inPlace := p.Rollout.MaxSurge, 0, 0
	for _, m := range p.outdatedByTurn() {
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

// endSurge deletes what is beyond the replicas once no machine waits for its change or is in the middle of it. One that
// works goes only while enough others do.
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
	for _, m := range slices.SortedFunc(slices.Values(p.alive), p.missedLess) {
		works := p.isAvailable(m)
		if excess == 0 || works && spare <= 0 {
			break
		}
		excess--
		if works {
			spare--
		}
		p.deleteMachine(m, "more machines than replicas")
	}
}

// scaleProportionally keeps the number of machines while the roll-out is paused: each set grows or shrinks by its
// share, so that a pause changes nothing in how much of the deployment is new. Machines that do not work go first,
// whatever their set.
func (p *planner) scaleProportionally() {
	most := p.Replicas
	if len(p.divideReplicas(0)) > 1 && p.Replicas > 0 {
		most += p.Rollout.MaxSurge
	}
	if excess := len(p.alive) - most; excess > 0 {
		broken := min(excess, len(p.alive)-p.countAvailable())
		p.deleteFirst(broken, "more machines than replicas")
		for _, s := range p.divideReplicas(excess - broken) {
			p.deleteOf(s)
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

// deleteOf deletes as many of a set's machines as its share says, those first that are missed least.
func (p *planner) deleteOf(s share) {
	for _, m := range slices.SortedFunc(slices.Values(p.alive), p.missedLess) {
		if s.n > 0 && m.Set == s.set {
			p.deleteMachine(m, "more machines than replicas")
			s.n--
		}
	}
}
