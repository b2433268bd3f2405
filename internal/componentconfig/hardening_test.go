package componentconfig

import (
	"github.com/google/go-cmp/cmp"
	"kubeone/internal/model/desired"
	"strings"
	"testing"
)

// A cluster whose hardening was never set keeps its former digests. So does one with hardening "none".
func TestDigestsOfAClusterThatIsNotHardenedStay(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"cp-1", "w-1"} {
		silent, none := digestsOf(input(name)), digestsOf(hardened(name, desired.HardeningNone))
		if _, noted := silent[desired.HardeningDigest]; noted {
			t.Errorf("%s notes a value that was never set", name)
		}
		if got := desired.HardeningNoted(none); got != desired.HardeningNone {
			t.Errorf("%s notes %q", name, got)
		}
		delete(none, desired.HardeningDigest)
		if diff := cmp.Diff(silent, none); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// The baseline restarts kubelet and API server, and leaves the container runtime, the kernel and the networks alone.
func TestTheBaselineIsDriftOfWhatItChanges(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"cp-1": "components hardening kubelet", "w-1": "hardening kubelet",
	} {
		none := digestsOf(hardened(name, desired.HardeningNone))
		var differ []string
		for _, of := range []string{"components", "containerd", "hardening", "kernel", "kubelet",
			"network"} {
			if none[of] != digestsOf(hardened(name, desired.HardeningBaseline))[of] {
				differ = append(differ, of)
			}
		}
		if got := strings.Join(differ, " "); got != want {
			t.Errorf("%s: %q differ, want %q", name, got, want)
		}
	}
}

func TestTheManifestsKubeletWins(t *testing.T) {
	t.Parallel()
	in := input("w-1")
	in.Want.Kubelet.PodPidsLimit, in.Want.TLSCipherSuites.Kubelet = ptr[int64](77), []string{"MINE"}
	in.Want = in.Want.Harden(desired.HardeningBaseline)
	if got := kubeletConfiguration(in.Want); got["podPidsLimit"] != int64(77) || got["seccompDefault"] != true ||
		cmp.Diff([]string{"MINE"}, got["tlsCipherSuites"]) != "" {
		t.Errorf("got %v", got)
	}
	in.Host.Kubelet.PodPidsLimit = ptr[int64](88)
	if patch := kubeletPatch(in); !strings.Contains(patch, "path: /podPidsLimit\n  value: 88\n") {
		t.Errorf("the host's own does not win:\n%s", patch)
	}
}
