package plan

import (
	"fmt"
	"runtime"
	"testing"

	"kubeone/internal/decide"
	"kubeone/internal/decide/fsm"
)

// atScale returns worlds for which a plan's cost must not grow faster than the number of hosts.
func atScale() map[string]func(hosts int) decide.Input {
	return map[string]func(int) decide.Input{
		"install": func(hosts int) decide.Input { return bareCluster(5, hosts-5) },
		"nothing": func(hosts int) decide.Input { return healthyCluster(5, hosts-5) },
		"silent": func(hosts int) decide.Input { // all workers, which the manifest gives no names
			in := healthyCluster(5, hosts-5)
			for i := range in.Want.Workers {
				in.Want.Workers[i].Hostname = ""
				in.Is.Hosts[in.Want.Workers[i].ID] = silentHost(in.Want.Workers[i])
			}
			return in
		},
	}
}

func BenchmarkBuild(b *testing.B) {
	for name, world := range atScale() {
		for _, hosts := range []int{1000, 5000} {
			b.Run(fmt.Sprintf("%s/%d", name, hosts), func(b *testing.B) {
				in := world(hosts)
				b.ReportAllocs()
				for b.Loop() {
					Build(Input{Decide: in})
				}
			})
		}
	}
}

// Four times the hosts cost five times the memory at most: nothing is made or copied for each pair of hosts.
func TestAPlanGrowsAsItsHosts(t *testing.T) { //nolint:paralleltest // it reads how much the whole process allocates
	for name, world := range atScale() {
		few, many := allocatedBytes(world(200)), allocatedBytes(world(800))
		t.Logf("%s: %d bytes for 200 hosts, %d for 800", name, few, many)
		if many > 5*few {
			t.Errorf("%s: %d bytes for 200 hosts, %d for 800: %.1f times", name, few, many, float64(many)/float64(few))
		}
	}
}

// allocatedBytes returns how many bytes are allocated for a plan.
func allocatedBytes(in decide.Input) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, decisions := Build(Input{Decide: in})
	runtime.ReadMemStats(&after)
	if decisions[0].Route == fsm.Error {
		panic(decisions[0].Problems)
	}
	return after.TotalAlloc - before.TotalAlloc
}
