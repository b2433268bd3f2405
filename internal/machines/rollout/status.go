package rollout

import "time"

// Status is what is so of a family.
type Status struct {
	// Replicas is how many machines there are; those that are being deleted are not counted.
	Replicas int
	// Updated is how many of them have the deployment's template, and are what it says.
	Updated int
	// Ready is how many have a ready Node.
	Ready int
	// Available is how many have had one for as long as they must.
	Available int
	// Unavailable is how many of the wanted ones are missing or not available.
	Unavailable int
	// Complete says that all machines are available and of the deployment's template, and none too many.
	Complete bool
	// Stalled says that nothing has come further for as long as the roll-out may take.
	Stalled bool
	// Held is how many machines are unhealthy and are not replaced, as they are too many.
	Held int
	// Blocked is how many machines are of a former template and cannot become one of the new one.
	Blocked int
}

// statusBefore is what is so before anything is written.
func (p *planner) statusBefore() Status {
	s := Status{Replicas: len(p.alive), Available: p.countAvailable()}
	for _, m := range p.alive {
		if !p.isOutdated(m) && !m.Updating {
			s.Updated++
		}
		if !m.ReadySince.IsZero() {
			s.Ready++
		}
	}
	s.Unavailable = max(0, p.Replicas-s.Available)
	s.Complete = s.Updated == p.Replicas && s.Available == p.Replicas && s.Replicas == p.Replicas && p.leaving == 0
	if deadline := p.progressDeadline(); !s.Complete && !deadline.IsZero() {
		s.Stalled = !p.Now.Before(deadline)
	}
	return s
}

// progressDeadline is when the roll-out counts as failed if nothing comes further; zero for never.
func (p *planner) progressDeadline() time.Time {
	if p.Rollout == nil || p.Rollout.Paused || p.Rollout.ProgressDeadline <= 0 {
		return time.Time{}
	}
	var last time.Time
	for i := range p.Machines {
		for _, at := range []time.Time{p.Machines[i].Created, p.Machines[i].ReadySince, p.Machines[i].Changed} {
			if at.After(last) {
				last = at
			}
		}
	}
	if p.current != nil && p.current.Created.After(last) {
		last = p.current.Created
	}
	if last.IsZero() {
		return last
	}
	return last.Add(p.Rollout.ProgressDeadline)
}

// nextWake is when time alone changes the plan or the status: a machine has been ready for long enough, or the roll-out
// has taken too long.
func (p *planner) nextWake() time.Time {
	var wake time.Time
	sooner := func(at time.Time) {
		if at.After(p.Now) && (wake.IsZero() || at.Before(wake)) {
			wake = at
		}
	}
	for _, m := range p.alive {
		if !m.ReadySince.IsZero() {
			sooner(m.ReadySince.Add(p.MinReady))
		}
	}
	if s := p.statusBefore(); !s.Complete {
		sooner(p.progressDeadline())
	}
	return wake
}
