package drive

import (
	"iter"
	"testing"
)

// lasting is how long faults last that have an end, in the enumerations: longer than an operator waits for a
// host that is away.
const lasting = 120

// on are the kinds of faults of hosts and operators alone.
func on(operators bool) []Kind {
	var out []Kind
	for _, k := range Kinds() {
		if k.ofOperator() == operators {
			out = append(out, k)
		}
	}
	return out
}

// single are all faults that can happen to a cluster of that many hosts at a moment.
func single(hosts, at int) []Fault {
	var out []Fault
	for _, k := range on(false) {
		for h := range hosts {
			out = append(out, Fault{At: at, Kind: k, Host: h, For: lasting})
		}
	}
	for _, k := range on(true) {
		out = append(out, Fault{At: at, Kind: k, For: lasting})
	}
	return out
}

// States are all clusters of one to so many control-plane hosts, with and without a worker, in every start, with every
// pair of faults that is there when apply begins.
func States(controlPlanes int) iter.Seq[Scenario] {
	return func(yield func(Scenario) bool) {
		for s := range shapes(controlPlanes) {
			faults := single(s.ControlPlanes+s.Workers, 1)
			for i := range faults {
				for j := range i + 1 { // i with itself is that fault alone
					s.Faults = []Fault{faults[j], faults[i]}
					if i == j {
						s.Faults = s.Faults[:1]
					}
					if !yield(s) {
						return
					}
				}
			}
		}
	}
}

// Boundaries are the same clusters, with every single fault at every second of a run that would otherwise go well.
func Boundaries(t *testing.T, controlPlanes int) iter.Seq[Scenario] {
	t.Helper()
	return func(yield func(Scenario) bool) {
		for s := range shapes(controlPlanes) {
			for at := range Run(t, s).Moments + 1 {
				for _, f := range single(s.ControlPlanes+s.Workers, at+1) {
					s.Faults = []Fault{f}
					if !yield(s) {
						return
					}
				}
			}
		}
	}
}

// Pairs are one cluster in one start, with every pair of faults at the same moment, every so many seconds of a run.
func Pairs(t *testing.T, s Scenario, stride int) iter.Seq[Scenario] {
	t.Helper()
	return func(yield func(Scenario) bool) {
		end := Run(t, s).Moments
		for at := 1; at <= end; at += stride {
			faults := single(s.ControlPlanes+s.Workers, at)
			for i := range faults {
				for j := range i {
					s.Faults = []Fault{faults[j], faults[i]}
					if !yield(s) {
						return
					}
				}
			}
		}
	}
}

// shapes are the clusters without a fault.
func shapes(controlPlanes int) iter.Seq[Scenario] {
	return func(yield func(Scenario) bool) {
		for n := range controlPlanes {
			for workers := range 2 {
				for _, start := range Starts() {
					if !yield(Scenario{Seed: 1, ControlPlanes: n + 1, Workers: workers, Start: start}) {
						return
					}
				}
			}
		}
	}
}
