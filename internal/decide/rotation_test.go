package decide

import (
	"slices"
	"testing"

	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
)

func TestARotationThatHasBegunIsSaid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		trusted []string
		begun   string
		said    bool
	}{
		"one key, the same everywhere":   {[]string{"a"}, "", false},
		"another one":                    {[]string{"b"}, "", true},
		"two, one of them custom":        {[]string{"a", "b"}, "", false},
		"two, one of them to be dropped": {[]string{"a", "b"}, observed.Used, true},
		"cut off":                        {[]string{"a"}, "forget", true},
		"not known":                      {nil, "", false},
	} {
		in := healthyCluster(3, 1)
		for i, h := range in.Want.ControlPlane {
			seen := in.Is.Hosts[h.ID]
			seen.Authorities = map[string]observed.Authority{observed.EtcdCA: {Trusted: []string{"a"}}}
			for _, of := range []string{observed.FrontProxyCA, observed.ServiceAccounts} {
				seen.Authorities[of] = observed.Authority{Trusted: []string{"x"}}
			}
			if i == 1 {
				seen.Authorities[observed.EtcdCA] = observed.Authority{Trusted: c.trusted, BegunPhase: c.begun}
			}
			in.Is.Hosts[h.ID] = seen
		}
		warnings := Decide(in).Warnings
		i := slices.IndexFunc(warnings, func(p problem.Problem) bool { return p.Code == problem.RotationBegun })
		if (i >= 0) != c.said {
			t.Errorf("%s: %+v", name, warnings)
		}
		if i >= 0 && warnings[i].Text() != "the rotation of etcd is unfinished" {
			t.Errorf("%s: %s", name, warnings[i].Text())
		}
	}
}
