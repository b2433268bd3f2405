package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"kubeone/internal/plan/step"
	"kubeone/internal/testutil/decidetest"
)

// What a host had before is named in the step that moves it aside or switches it off.
func TestPrepareNamesWhatTheHostHadBefore(t *testing.T) {
	t.Parallel()
	in := healthyCluster(1, 1)
	worker := in.Want.Workers[0]
	is := decidetest.Bare(worker)
	is.CNIFiles, is.Swaps = []string{"10-containerd-net.conflist"}, []string{"/dev/zram0", "/swapfile"}
	in.Is.Hosts[worker.ID] = is
	in.Is.API.Nodes = in.Is.API.Nodes[:1]
	for _, external := range []bool{false, true} {
		if external {
			in.Want.Network.CNI.Name = desired.ExternalCNI
			in.Is.API.Addons = map[string]string{}
		}
		p, _ := Build(Input{Decide: in})
		i := slices.IndexFunc(p.Steps, func(s Step) bool { return s.Intent.Kind == step.Prepare })
		if i < 0 {
			t.Fatalf("no such step:\n%s", planText(p))
		}
		const moved = "moves other CNI configuration in /etc/cni/net.d aside until a reset: 10-containerd-net.confl"
		if s := p.Steps[i]; strings.Contains(s.Reason, moved) == external ||
			!slices.Contains(s.Changes, "swap off, until a reset: /dev/zram0, /swapfile") {
			t.Errorf("external %t: %q %q", external, s.Reason, s.Changes)
		}
	}
}

func TestSwapThatCameBackIsSwitchedOff(t *testing.T) {
	t.Parallel()
	in := healthyCluster(1, 1)
	worker := in.Want.Workers[0].ID
	is := in.Is.Hosts[worker]
	is.Swaps = []string{"/dev/zram0"}
	in.Is.Hosts[worker] = is
	p, _ := Build(Input{Decide: in})
	i := slices.IndexFunc(p.Steps, func(s Step) bool { return s.Host == worker })
	if i < 0 || !p.Complete() {
		t.Fatalf("it is left on:\n%s", planText(p))
	}
	s := p.Steps[i]
	if s.Intent.Kind != step.Reconfigure || !slices.Equal(s.Changes, []string{"swap off, until a reset: /dev/zram0"}) {
		t.Errorf("%s: %q", s.Title, s.Changes)
	}

	// After its next boot the kubelet does not run with it.
	is.Kubelet.Active, is.Kubelet.State, is.Healthz = false, "activating/auto-restart", observed.No
	in.Is.Hosts[worker] = is
	p, _ = Build(Input{Decide: in})
	i = slices.IndexFunc(p.Steps, func(s Step) bool { return s.Intent.Kind == step.RestartUnits })
	if i < 0 || !step.ParamsOf[step.RestartUnitsParams](p.Steps[i].Intent).SwapOff {
		t.Errorf("the kubelet is restarted with swap:\n%s", planText(p))
	}
}

// The cluster does not match the manifest while pods are outside the pod network.
func TestPodsOutsideThePodNetworkAreAnException(t *testing.T) {
	t.Parallel()
	in := healthyCluster(1, 1)
	in.Want.Network.PodSubnet = "10.244.0.0/16"
	in.Is.API.Pods = append(in.Is.API.Pods, observed.Pod{
		Name: "coredns-1", Node: "w-1", App: "kube-dns", Ready: observed.Yes, Address: "10.88.0.3",
	})
	p, d := Build(Input{Decide: in})
	want := []string{"clusterNetwork.podSubnet (pods have other addresses: coredns-1 on w-1 (10.88.0.3))"}
	named := problem.Has(d[len(d)-1].Warnings, problem.PodsOutsideNetwork)
	if diff := cmp.Diff(want, p.Exceptions()); diff != "" || !named {
		t.Errorf("%s%s", diff, planText(p))
	}
}
