package decide

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
)

// runOlderVersion makes the cluster's hosts run Kubernetes 1.34, with 1.35 desired.
func runOlderVersion(in *Input) {
	in.Want.KubernetesVersion = "1.35.4"
	for id := range in.Is.Hosts {
		in.changeObserved(id, func(h *observed.Host) {
			h.Kubelet.Version, h.Cgroups = "1.34.2", 2
			if h.APIServerVersion != "" {
				h.APIServerVersion = "1.34.2"
			}
		})
	}
	for i := range in.Is.API.Nodes {
		in.Is.API.Nodes[i].KubeletVersion = "1.34.2"
	}
	in.Is.API.Version = "1.34.2"
}

// A kubelet that would not start is refused before any drain: the plan says on which host, and what to do.
func TestNoUpgradeToAKubeletThatRefusesTheControlGroups(t *testing.T) {
	t.Parallel()
	in := healthyCluster(3, 2)
	runOlderVersion(&in)
	cp, worker := in.Want.ControlPlane[1].ID, in.Want.Workers[0].ID
	if d := Decide(in); d.Route != fsm.Upgrade {
		t.Fatalf("%s %v", d.Route, problemTexts(d.Problems))
	}
	in.changeObserved(cp, func(h *observed.Host) { h.Cgroups = 1 })
	d := Decide(in)
	want := []string{"CgroupV1Refused(kubelet=1.35.4)"}
	if diff := cmp.Diff(want, problemTexts(d.Problems)); diff != "" || d.Route != fsm.Error {
		t.Errorf("%s %s", d.Route, diff)
	}
	if len(d.Problems) != 1 || d.Problems[0].Host != cp {
		t.Errorf("it is not said of the host: %v", d.Problems)
	}
	in.changeObserved(cp, func(h *observed.Host) { h.CgroupV1Allowed = true })
	if d := Decide(in); d.Route != fsm.Upgrade {
		t.Errorf("allowed: %s %v", d.Route, problemTexts(d.Problems))
	}

	in.changeObserved(worker, func(h *observed.Host) { h.Cgroups = 1 })
	d = Decide(in)
	if is := d.Hosts[worker]; d.Route != fsm.Instruct || len(d.Upgrades) > 0 || is.Condition != condition.Unclear ||
		len(is.Reasons) != 1 || is.Reasons[0].String() != "CgroupV1Refused(kubelet=1.35.4)" {
		t.Errorf("a worker: %s %s %v", d.Route, is.Condition, problemTexts(is.Reasons))
	}
}

// A kubelet that runs with cgroup v1 was allowed to.
func TestAMemberThatRunsWithControlGroupsV1IsLeftAlone(t *testing.T) {
	t.Parallel()
	in := healthyCluster(1, 1)
	for _, h := range in.Want.Hosts() {
		in.changeObserved(h.ID, func(h *observed.Host) { h.Cgroups = 1 })
	}
	if d := Decide(in); d.Route != fsm.Nothing || len(d.Warnings) > 0 {
		t.Errorf("%s %v %v", d.Route, problemTexts(d.Problems), problemTexts(d.Warnings))
	}
}

func TestSwapThatComesBackIsDrift(t *testing.T) {
	t.Parallel()
	in := healthyCluster(1, 1)
	worker := in.Want.Workers[0].ID
	in.changeObserved(worker, func(h *observed.Host) { h.Swaps = []string{"/dev/zram0"} })
	d := Decide(in)
	want := map[string][]string{worker: {desired.SwapConfiguration}}
	if diff := cmp.Diff(want, d.Drift); diff != "" || d.Route != fsm.Reconfigure {
		t.Errorf("%s %s", d.Route, diff)
	}
	in.changeObserved(worker, func(h *observed.Host) { h.SwapAllowed = true })
	if d := Decide(in); d.Route != fsm.Nothing {
		t.Errorf("swap that is allowed: %s %v", d.Route, d.Drift)
	}
}

// It may be that of a plugin that calls the cluster's, such as Multus.
func TestOtherCNIConfigurationOfAMemberIsNamed(t *testing.T) {
	t.Parallel()
	in := healthyCluster(1, 1)
	in.Want.Network.CNI.Files = []string{"10-flannel.conflist"}
	worker := in.Want.Workers[0].ID
	for _, c := range []struct{ files, want []string }{
		{[]string{"10-containerd-net.conflist", "10-flannel.conflist", "87-podman.conflist"}, []string{
			"ForeignCNIFirst(files=10-containerd-net.conflist, own=10-flannel.conflist)",
		}},
		{[]string{"10-flannel.conflist", "87-podman.conflist"}, nil},
		{[]string{"10-containerd-net.conflist"}, nil}, // the plugin's comes when it works
	} {
		in.changeObserved(worker, func(h *observed.Host) { h.CNIFiles = c.files })
		d := Decide(in)
		if diff := cmp.Diff(c.want, problemTexts(d.Warnings)); diff != "" || d.Route != fsm.Nothing {
			t.Errorf("%v: %s %s", c.files, d.Route, diff)
		}
	}
}

func TestPodsOutsideThePodNetworkAreNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		address string
		ready   observed.Tri
		cni     string
		want    []string
	}{
		"within":          {"10.244.1.2", observed.Yes, "flannel", nil},
		"within, of IPv6": {"fd01::5", observed.Yes, "flannel", nil},
		"the host's":      {"", observed.Yes, "flannel", nil},
		"not ready":       {"10.88.0.3", observed.No, "flannel", nil},
		"an external plugin": {"10.88.0.3", observed.Yes, desired.ExternalCNI, []string{
			"NetworkPluginChanged(deployed=flannel, wanted=external)", // and nothing of addresses
		}},
		"outside": {"10.88.0.3", observed.Yes, "flannel", []string{
			"PodsOutsideNetwork(pods=coredns-1 on w-1 (10.88.0.3), subnets=10.244.0.0/16+fd01::/48)",
		}},
	} {
		in := healthyCluster(1, 1)
		in.Want.Network.PodSubnet, in.Want.Network.PodSubnetIPv6 = "10.244.0.0/16", "fd01::/48"
		in.Want.Network.CNI.Name = c.cni
		in.Is.API.Pods = append(in.Is.API.Pods, observed.Pod{
			Name: "coredns-1", Node: "w-1", App: "kube-dns", Ready: c.ready, Address: c.address,
		})
		if diff := cmp.Diff(c.want, problemTexts(Decide(in).Warnings)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
