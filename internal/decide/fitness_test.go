package decide

import (
	"slices"
	"testing"

	"kubeone/internal/model/desired"
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

// A kubelet asks for the cloud's controller manager only when it creates its Node.
func TestAnExternalCloudIsForNewHosts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		noted, wanted string
		interrupted   bool
		refused       bool
	}{
		"none":                        {},
		"as noted":                    {noted: "hetzner", wanted: "hetzner"},
		"added":                       {wanted: "hetzner", refused: true},
		"removed":                     {noted: "hetzner", refused: true},
		"another":                     {noted: "aws", wanted: "hetzner", refused: true},
		"added while the host joined": {wanted: "hetzner", interrupted: true},
	} {
		in := healthyCluster(1, 1)
		in.Config = map[string]map[string]string{}
		for id, is := range in.Is.Hosts {
			is.Digests, in.Config[id] = map[string]string{"kubelet": "a"}, map[string]string{"kubelet": "a"}
			if c.noted != "" {
				is.Digests[desired.CloudDigest] = desired.Cluster{ExternalCloud: c.noted}.CloudNote()
			}
			if c.wanted != "" {
				in.Config[id][desired.CloudDigest] = desired.Cluster{ExternalCloud: c.wanted}.CloudNote()
			}
			if c.interrupted {
				is.Digests = nil
			}
			in.Is.Hosts[id] = is
		}
		refused := slices.ContainsFunc(Decide(in).Problems, func(p problem.Problem) bool {
			return p.Code == problem.CloudImmutable
		})
		if refused != c.refused {
			t.Errorf("%s: refused: %t", name, refused)
		}
	}
}
