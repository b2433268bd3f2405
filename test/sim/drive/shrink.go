package drive

import (
	"slices"
	"testing"

	"kubeone/test/sim/safety"
)

// Shrink returns a scenario that breaks the same rule with as few faults and hosts as it finds, each as early and as
// short as it can be.
func Shrink(t *testing.T, s Scenario, rule safety.Rule) Scenario {
	t.Helper()
	breaks := func(smaller Scenario) bool {
		v := Run(t, smaller).Violation
		return v != nil && v.Rule == rule
	}
	for again := true; again; {
		again = false
		for _, one := range smaller(s) {
			if breaks(one) {
				s, again = one, true
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
	// Not only one host less: with fewer hosts steps come at other times, and another rule may be broken first.
	for hosts := 1; hosts < s.ControlPlanes+s.Workers; hosts++ {
		for workers := max(0, hosts-s.ControlPlanes); workers <= min(s.Workers, hosts-1); workers++ {
			with(func(t *Scenario) { t.leave(hosts-workers, workers) })
		}
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

// leave takes hosts away until only so many are there.
func (s *Scenario) leave(controlPlanes, workers int) {
	for s.Workers > workers {
		s.Workers--
		s.renumber(s.ControlPlanes + s.Workers)
	}
	for s.ControlPlanes > controlPlanes {
		s.ControlPlanes--
		s.renumber(s.ControlPlanes)
	}
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
