package decide

import (
	"slices"
	"testing"

	"kubeone/internal/decide/fsm"
	"kubeone/internal/testutil/decidetest"
)

// routeDanger ranks routes by what they may destroy. Those that change nothing on a healthy cluster, or only start
// units that must run, are 0.
func routeDanger(d Decision) int {
	switch d.Route {
	case fsm.Repair:
		return boolValue(len(d.Removals) > 0) * 2
	case fsm.Resources, fsm.MoveEndpoint:
		return 1
	case fsm.Join:
		return 3
	case fsm.Reconfigure:
		return 4
	case fsm.Upgrade:
		return 5
	case fsm.Install:
		return 6
	}
	return 0
}

// Whatever a host, the API or etcd would have said: missing answers never lead to a more dangerous route than the most
// harmless answer. Foreign data is left out, because it stops everything.
func TestUnknownIsNeverMoreDangerousThanKnown(t *testing.T) {
	t.Parallel()
	cps, workers := hostKinds(), workerKinds()
	at := func(name string) int { return slices.IndexFunc(cps, func(k kind) bool { return k.name == name }) }
	decide := func(c combination) Decision {
		return Decide(c.buildWorld(decidetest.Wanted(len(c.cps), boolValue(c.worker > 0)), cps, workers))
	}
	compared, most := 0, 2
	if *exhaustive {
		most = 3
	}
	compare := func(unknown, known combination) {
		compared++
		if u, k := decide(unknown), decide(known); routeDanger(u) > routeDanger(k) {
			t.Errorf("%v\n\tis %s, but knowing more\n%v\n\tis %s", unknown, u.Route, known, k.Route)
		}
	}
	for n := 1; n <= most; n++ {
		forEachMultiset(n, len(cps), func(set []int) {
			if slices.Contains(set, at("foreign")) {
				return
			}
			for tail := range tailCount() {
				full := combination{cps: set, worker: tail % 3, api: true, members: true}.withTail(tail)
				for _, blind := range blindChanges(set, at("wiped")) {
					blind.cps, blind.worker = set, full.worker
					compare(blind.withTail(tail), full)
				}
				for _, silent := range []string{"stranger", "dead", "unclear"} {
					unknown := full
					unknown.cps = append([]int{at(silent)}, set[1:]...)
					compare(unknown, full)
				}
			}
		})
	}
	t.Logf("%d pairs compared", compared)
}

// blindChanges returns the ways in which the API and etcd may not have been asked. If no host of the set joined, they
// cannot have answered.
func blindChanges(set []int, lastJoined int) []combination {
	if set[0] > lastJoined {
		return nil
	}
	return []combination{{}, {api: true}, {members: true}}
}
