package drive

import (
	"iter"
	"testing"
)

// lasting is the duration of lasting faults in the enumerations. It is longer than an operator waits for an unreachable
// host.
const lasting = 120

// kindsOf returns the kinds of faults of hosts only, or of operators only.
func kindsOf(operators bool) []Kind {
	var out []Kind
	for _, k := range Kinds() {
		if k.ofOperator() == operators {
			out = append(out, k)
		}
	}
	return out
}

// singleFaults returns all faults of a cluster of that size at a moment.
func singleFaults(hosts, at int) []Fault {
	var out []Fault
	for _, k := range kindsOf(false) {
		for h := range hosts {
			out = append(out, Fault{At: at, Kind: k, Host: h, For: lasting})
		}
	}
	for _, k := range kindsOf(true) {
		out = append(out, Fault{At: at, Kind: k, For: lasting})
	}
	return out
}

// States returns all clusters of up to that many control-plane hosts, with and without a worker, in every start, with
// every pair of faults that exists when apply begins.
func States(controlPlanes int) iter.Seq[Scenario] {
	return func(yield func(Scenario) bool) {
		for s := range clusterShapes(controlPlanes) {
			faults := singleFaults(s.ControlPlanes+s.Workers, 1)
			for i := range faults {
				for j := range i + 1 { // i with itself is a single fault
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

// Boundaries returns the same clusters, with every single fault at every second of an otherwise successful run.
func Boundaries(t *testing.T, controlPlanes int) iter.Seq[Scenario] {
	t.Helper()
	return func(yield func(Scenario) bool) {
		for s := range clusterShapes(controlPlanes) {
			for at := range Run(t, s).Moments + 1 {
				for _, f := range singleFaults(s.ControlPlanes+s.Workers, at+1) {
					s.Faults = []Fault{f}
					if !yield(s) {
						return
					}
				}
			}
		}
	}
}

// Pairs returns one cluster in one start, with every pair of simultaneous faults, every stride seconds of a run.
func Pairs(t *testing.T, s Scenario, stride int) iter.Seq[Scenario] {
	t.Helper()
	return func(yield func(Scenario) bool) {
		end := Run(t, s).Moments
		for at := 1; at <= end; at += stride {
			faults := singleFaults(s.ControlPlanes+s.Workers, at)
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

// clusterShapes returns the clusters without faults.
func clusterShapes(controlPlanes int) iter.Seq[Scenario] {
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
