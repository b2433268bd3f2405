package engine

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/componentconfig"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
	"kubeone/internal/probe"
)

// A new cluster is hardened unless its manifest opts out. Its scripts record the choice.
func TestANewClusterIsHardened(t *testing.T) {
	t.Parallel()
	for manifest, want := range map[string]string{"": "baseline", "baseline": "baseline", "none": "none"} {
		t.Run("manifest says "+manifest, func(t *testing.T) {
			t.Parallel()
			p, err := play(t, func(c *Config) { c.Want.Hardening = manifest }).Propose(t.Context(), Apply{})
			if err != nil || p.Decision().Route != fsm.Install {
				t.Fatalf("%v, route %s", err, p.Decision().Route)
			}
			for id, text := range p.Scripts {
				api := id == "192.0.2.11" && want == "baseline"
				if !strings.Contains(text, "HARDENING='"+want+"'\n") ||
					strings.Contains(text, "value: VersionTLS12") != (want == "baseline") ||
					strings.Contains(text, "kind: AuthenticationConfiguration") != api {
					t.Errorf("the script of %s does not make it %q:\n%s", id, want, text)
				}
			}
		})
	}
}

// made is the observation of a joined cluster with that hardening: its digests, and the value in its record.
func made(want desired.Cluster, value, recorded string) probe.Result {
	is := observed.World{Hosts: map[string]observed.Host{}, API: observed.API{
		Reached: observed.Yes,
		Record:  &observed.Record{Cluster: want.Name, ManifestDigest: want.Digest, Hardening: recorded},
	}}
	digests := componentconfig.Digests(want.Harden(value), want.Hosts()...)
	for _, h := range want.Hosts() {
		is.Hosts[h.ID] = observed.Host{
			ID: h.ID, Reach: observed.Reached, Digests: digests[h.ID],
			Marker: &observed.Marker{Cluster: want.Name, Role: string(h.Role), Complete: true, ID: h.ID},
		}
	}
	return probe.Result{World: is}
}

// A newer kubeone with a manifest that does not set hardening changes no cluster: neither one from before the setting,
// nor a hardened one, nor one created without hardening.
func TestASilentManifestLeavesAClusterAsItIs(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"", desired.HardeningNone, desired.HardeningBaseline} {
		t.Run("made with "+value, func(t *testing.T) {
			t.Parallel()
			s := play(t)
			seen := made(s.Want(), value, value)
			p := s.recognizeHosts(Apply{}, seen)
			if p.Want.Hardening != value {
				t.Errorf("it becomes %q", p.Want.Hardening)
			}
			configs := s.configDigests(p.who)
			for id, h := range seen.World.Hosts {
				if diff := cmp.Diff(h.Digests, configs[id]); diff != "" {
					t.Errorf("%s: other settings than it has (-has +wants):\n%s", id, diff)
				}
			}
		})
	}
}

func TestAManifestThatWantsTheBaselineChangesACluster(t *testing.T) {
	t.Parallel()
	for from, to := range map[string]string{"": "baseline", "none": "baseline", "baseline": "none"} {
		s := play(t, func(c *Config) { c.Want.Hardening = to })
		seen := made(s.Want(), from, from)
		configs := s.configDigests(s.recognizeHosts(Apply{}, seen).who)
		for id, h := range seen.World.Hosts {
			if h.Digests["kubelet"] == configs[id]["kubelet"] || h.Digests["kernel"] != configs[id]["kernel"] {
				t.Errorf("from %q to %q: %s has %v, is to have %v", from, to, id, h.Digests, configs[id])
			}
			const components = desired.ComponentsDigest
			if has := h.Digests[components]; has != "" && has == configs[id][components] {
				t.Errorf("from %q to %q: the components of %s stay as they are", from, to, id)
			}
		}
	}
}

// If a cluster has what its manifest asks for, nothing changes.
func TestAClusterThatIsHardenedAsItsManifestSaysStays(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"none", "baseline"} {
		s := play(t, func(c *Config) { c.Want.Hardening = value })
		seen := made(s.Want(), value, value)
		configs := s.configDigests(s.recognizeHosts(Apply{}, seen).who)
		for id, h := range seen.World.Hosts {
			if diff := cmp.Diff(h.Digests, configs[id]); diff != "" {
				t.Errorf("%q: %s: other settings than it has (-has +wants):\n%s", value, id, diff)
			}
		}
	}
}

// A cluster recovered on bare hosts gets the hardening that its backup states.
func TestARecoveredClusterIsHardenedAsItWas(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"", "none", "baseline"} {
		s := play(t)
		is := observed.World{Hosts: map[string]observed.Host{}}
		want := s.Want()
		for _, h := range want.Hosts() {
			is.Hosts[h.ID] = observed.Host{ID: h.ID, Reach: observed.Reached}
		}
		p := s.recognizeHosts(Recover{About: plan.Copy{Hardening: value}}, probe.Result{World: is})
		if p.Want.Hardening != value {
			t.Errorf("the backup says %q, it becomes %q", value, p.Want.Hardening)
		}
	}
}
