package decide

import (
	"slices"
	"testing"

	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
)

func TestAnUnguardedHostIsNamed(t *testing.T) {
	t.Parallel()
	in := healthyCluster(3, 1)
	for _, h := range in.Want.Hosts() {
		in.changeObserved(h.ID, func(is *observed.Host) { is.Unguarded = []string{"nft"} })
	}
	var named []string
	for _, p := range Decide(in).Warnings {
		if p.Code == problem.GuardMissing {
			named = append(named, p.Host)
		}
	}
	if want := []string{"192.0.0.1", "192.0.0.2", "192.0.0.3"}; !slices.Equal(named, want) {
		t.Errorf("%v, want %v", named, want)
	}
}

func TestWhoAnswersForAComponentIsNamed(t *testing.T) {
	t.Parallel()
	in := healthyCluster(1, 1)
	in.changeObserved("192.0.1.1", func(is *observed.Host) {
		is.Healthz = observed.No
		is.Impostors = []observed.Port{{Number: 10248, Process: "kubelet", User: 1000}}
	})
	d := Decide(in)
	i := slices.IndexFunc(d.Warnings, func(p problem.Problem) bool { return p.Code == problem.HealthPortTaken })
	if i < 0 || d.Warnings[i].Host != "192.0.1.1" ||
		!slices.Equal(d.Warnings[i].Parameters["ports"].([]string), []string{"10248 (kubelet, user 1000)"}) {
		t.Errorf("warnings %+v", d.Warnings)
	}
}
