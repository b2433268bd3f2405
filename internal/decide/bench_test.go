package decide

import (
	"testing"

	"kubeone/internal/decide/fsm"
)

func BenchmarkDecide(b *testing.B) {
	in := healthyCluster(5, 1)
	b.ReportAllocs()
	for b.Loop() {
		if d := Decide(in); d.Route != fsm.Nothing {
			b.Fatal(d.Trace)
		}
	}
}

func BenchmarkDecideThousandHosts(b *testing.B) {
	in := healthyCluster(5, 995)
	for b.Loop() {
		if d := Decide(in); d.Route != fsm.Nothing {
			b.Fatal(d.Trace)
		}
	}
}
