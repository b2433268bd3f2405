package rollout

import "time"

// Status is the state of a family.
type Status struct {
	// Replicas is the number of machines, without those being deleted.
	Replicas int
	// Updated is the number of machines that match the template of the deployment.
	Updated int
	// Ready is the number of machines with a ready Node.
	Ready int
	// Available is the number of machines that have been ready for at least Family.MinReady.
	Available int
	// Unavailable is the number of desired machines that are missing or not available.
	Unavailable int
	// Complete says that exactly the desired machines exist, and all are updated and available.
	Complete bool
	// Stalled says that the rollout made no progress within its deadline.
	Stalled bool
	// Held is the number of unhealthy and lost machines if it exceeds MaxUnhealthy, so that none of them is replaced.
	Held int
	// Blocked is the number of outdated machines whose change is Unsupported.
	Blocked int
}

// statusBefore returns the status before any write.
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

// progressDeadline returns when the rollout counts as stalled if it makes no more progress; zero means never.
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

// nextWake returns when the plan or the status may change without any other event, because a machine becomes available
// or the rollout stalls; zero means never.
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
