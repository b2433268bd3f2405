package drive

import "kubeone/test/sim/world"

// pending is a fault that is injected not at a moment but after so many effects of steps: whoever carries out the same
// plan meets it at the same place, however fast he is.
type pending struct {
	effects int // left until then
	fault   Fault
}

// Healed is a pending fault that ends all that lasts.
const Healed Kind = "healed"

// InjectAfter injects the fault once steps have had so many effects.
func (s *Simulation) InjectAfter(effects int, f Fault) {
	s.pending = &pending{effects, f}
	watch := s.World.Watch
	s.World.Watch = func(e world.Effect) {
		if s.pending != nil && e.Verb != world.LockTaken && e.Verb != world.LeaseTaken {
			s.pending.effects--
		}
		watch(e)
	}
}

// InjectDue injects a pending fault that is due, after what was done and before the world settles. One of the operator
// is returned.
func (s *Simulation) InjectDue() (ofOperator Fault, due bool) {
	p := s.pending
	if p == nil || p.effects > 0 {
		return Fault{}, false
	}
	s.pending = nil
	switch {
	case p.fault.Kind.ofOperator():
		return p.fault, true
	case p.fault.Kind == Healed:
		s.heal()
	default:
		s.happen(p.fault)
	}
	return Fault{}, false
}

// Once lets one run of apply come to its end, and the world go on for so many moments after that. It returns how the
// run ended.
func (s *Simulation) Once(after int) Result {
	o := s.begin(false)
	for o.result == Unended {
		s.pass()
	}
	for range after {
		s.pass()
	}
	return o.result
}
