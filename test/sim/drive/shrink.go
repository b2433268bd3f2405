package drive

import (
	"slices"
	"testing"

	"kubeone/test/sim/safety"
)

// Shrink returns a scenario that breaks the same rule with as few faults and hosts as it finds, and with faults as
// early and short as possible.
func Shrink(t *testing.T, s Scenario, rule safety.Rule) Scenario {
	t.Helper()
	breaks := func(smaller Scenario) bool {
		v := Run(t, smaller).Violation
		return v != nil && v.Rule == rule
	}
	for again := true; again; {
		again = false
		for _, one := range smallerScenarios(s) {
			if breaks(one) {
				s, again = one, true
				break
			}
		}
	}
	return s
}

// smallerScenarios returns slightly simpler scenarios, the simplest first.
func smallerScenarios(s Scenario) []Scenario {
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
	// More than one host less, because with fewer hosts steps come at other times and may break another rule first.
	for hosts := 1; hosts < s.ControlPlanes+s.Workers; hosts++ {
		for workers := max(0, hosts-s.ControlPlanes); workers <= min(s.Workers, hosts-1); workers++ {
			with(func(t *Scenario) { t.removeHosts(hosts-workers, workers) })
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

// removeHosts removes hosts down to the given numbers.
func (s *Scenario) removeHosts(controlPlanes, workers int) {
	for s.Workers > workers {
		s.Workers--
		s.renumberFaults(s.ControlPlanes + s.Workers)
	}
	for s.ControlPlanes > controlPlanes {
		s.ControlPlanes--
		s.renumberFaults(s.ControlPlanes)
	}
}

// renumberFaults moves the faults of the hosts after a removed one.
func (s *Scenario) renumberFaults(gone int) {
	hosts := s.ControlPlanes + s.Workers
	for i := range s.Faults {
		f := &s.Faults[i]
		if f.Host > gone || f.Host >= hosts {
			f.Host = max(0, f.Host-1)
		}
	}
}
