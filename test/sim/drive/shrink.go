package drive

import (
	"slices"

	"kubeone/test/sim/safety"
)

// Shrink returns a scenario that breaks the same rule with as few faults and hosts as it finds, each as early and as short
// as it can be.
func Shrink(s Scenario, rule safety.Rule) Scenario {
	breaks := func(t Scenario) bool {
		v := Run(t).Violation
		return v != nil && v.Rule == rule
	}
	for again := true; again; {
		again = false
		for _, t := range smaller(s) {
			if breaks(t) {
				s, again = t, true
				break
			}
		}
	}
	return s
}

// smaller are scenarios that are a little simpler than this one, the simplest first.
func smaller(s Scenario) []Scenario {
	var out []Scenario
	with := func(change func(*Scenario)) {
		t := s
		t.Faults = slices.Clone(s.Faults)
		change(&t)
		out = append(out, t)
	}
	for i := range s.Faults {
		with(func(t *Scenario) { t.Faults = slices.Delete(t.Faults, i, i+1) })
	}
	if s.Workers > 0 {
		with(func(t *Scenario) { t.Workers--; t.renumber(t.ControlPlanes + t.Workers) })
	}
	if s.ControlPlanes > 1 {
		with(func(t *Scenario) { t.ControlPlanes--; t.renumber(t.ControlPlanes) })
	}
	for i, f := range s.Faults {
		if f.For > 1 {
			with(func(t *Scenario) { t.Faults[i].For /= 2 })
		}
		if f.At > 1 {
			with(func(t *Scenario) { t.Faults[i].At /= 2 })
			with(func(t *Scenario) { t.Faults[i].At-- })
		}
	}
	return out
}

// renumber moves the faults of the hosts after the one that is gone.
func (s *Scenario) renumber(gone int) {
	hosts := s.ControlPlanes + s.Workers
	for i := range s.Faults {
		f := &s.Faults[i]
		if f.Host > gone || f.Host >= hosts {
			f.Host = max(0, f.Host-1)
		}
	}
}
