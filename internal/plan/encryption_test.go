package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/decide/atrest"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan/step"
)

// A host that has lost its keys for Secrets gets those of hosts that have theirs. It does not get those of a host that
// has lost its own: that may have started with a lost key, or without encryption.
func TestLostKeysComeFromHostsThatHaveThem(t *testing.T) {
	t.Parallel()
	losing := func(names ...string) *observed.Encryption {
		e := observed.Encryption{Lost: true, Next: observed.EncryptionConfig{Digest: "d"}}
		for _, name := range names {
			e.Next.Providers = append(e.Next.Providers, observed.EncryptedBy{Name: name, Key: name})
		}
		return &e
	}
	for name, second := range map[string]*observed.Encryption{
		"nobody else has lost any":                   encryptedBy([]string{"kubeone-1"}),
		"another host has lost them too":             losing("kubeone-1"),
		"another one wrote Secrets as they are":      losing(observed.Identity, "kubeone-1"),
		"another one had a key that nobody else has": losing("kubeone-9", "kubeone-1"),
		"nobody knows what another one had":          losing(),
		"another one has somebody else's":            {Foreign: "/etc/kubernetes/pki/enc.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := healthyCluster(3, 0)
			in.Want.EncryptSecrets = second.Foreign == "" // else nothing is done at all
			for host, e := range map[string]*observed.Encryption{
				"cp-1": losing(), "cp-2": second, "cp-3": encryptedBy([]string{"kubeone-1"}),
			} {
				changeHost(in, host, func(h *observed.Host) { h.Encryption = e })
			}
			p, _ := Build(Input{Decide: in})
			given, found := p.Step("encrypt-give/cp-1")
			if !found {
				t.Fatalf("cp-1 gets no keys\n%s", planText(p))
			}
			params := step.ParamsOf[step.EncryptParams](given.Intent)
			if diff := cmp.Diff([]string{"kubeone-1"}, params.Providers); diff != "" || params.Phase != atrest.Give {
				t.Error(diff)
			}
		})
	}
}
