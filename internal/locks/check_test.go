package locks

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/locks/leaselock"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
)

// A run must check its Lease and its hosts well before another run may take them.
func TestWaitsFitTogether(t *testing.T) {
	t.Parallel()
	if LeaseTrust+BeatEvery >= leaselock.Duration || 3*BeatEvery >= StaleAfter {
		t.Error("a run that is alive could lose its locks")
	}
	if LeaseTimeout <= leaselock.Duration {
		t.Error("a run gives up before a silent Lease may be taken")
	}
	if FlockTimeout >= GrantTimeout {
		t.Error("a run gives a host up before the host says which process it waits for")
	}
}

func TestWhoConfirmsAStep(t *testing.T) {
	t.Parallel()
	workers, cluster := plan.Scope{}, plan.Scope{Cluster: true}
	end := plan.Scope{Cluster: true, Ends: true}
	for place, want := range map[step.Place]map[string]confirmer{
		step.OnHost:      {"workers": noneNeeded, "cluster": leaseIfHeld, "end": noneNeeded},
		step.OnOperator:  {"workers": everyHost, "cluster": leaseIfHeld, "end": noneNeeded},
		step.ThroughAPI:  {"workers": everyHost, "cluster": leaseRequired, "end": leaseRequired},
		step.ThroughEtcd: {"workers": everyHost, "cluster": leaseRequired, "end": leaseRequired},
	} {
		got := map[string]confirmer{
			"workers": whoConfirms(workers, place), "cluster": whoConfirms(cluster, place),
			"end": whoConfirms(end, place),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", place, diff)
		}
	}
}
