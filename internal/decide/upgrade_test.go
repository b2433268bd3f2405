package decide

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"kubeone/internal/testutil/decidetest"
)

// setOlderVersion makes a host run another version.
func (in *Input) setOlderVersion(id, name, version string) {
	in.changeObserved(id, func(h *observed.Host) {
		h.Kubelet.Version = version
		if h.APIServerVersion != "" {
			h.APIServerVersion = version
		}
	})
	in.nodeNamed(name).KubeletVersion = version
}

func (in *Input) allOlder(version string) {
	for _, h := range in.Want.Hosts() {
		in.setOlderVersion(h.ID, h.Hostname, version)
	}
}

// oldMemberElsewhere adds a member of etcd, and its Node, outside the manifest.
func (in *Input) oldMemberElsewhere() {
	in.Is.API.Nodes = append(in.Is.API.Nodes,
		observed.Node{Name: "theirs", ControlPlane: true, KubeletVersion: "1.35.4"})
	in.Is.Etcd.Members = append(in.Is.Etcd.Members, observed.Member{ID: "9", Name: "theirs", Healthy: observed.Yes})
}

// upgradeCase is a decision about three control-plane hosts and two workers.
type upgradeCase struct {
	world func(*Input)
	route fsm.Route
	hosts []string // to upgrade
	says  string   // in the reason of the last question
}

func (c upgradeCase) checkDecision(t *testing.T) {
	t.Helper()
	in := healthyCluster(3, 2)
	c.world(&in)
	d := Decide(in)
	if d.Route != c.route {
		t.Fatalf("route %s, want %s: %+v", d.Route, c.route, d.Trace)
	}
	if diff := cmp.Diff(c.hosts, d.Upgrades); diff != "" {
		t.Error(diff)
	}
	if why := d.Trace[len(d.Trace)-1].Why; !strings.Contains(why, c.says) {
		t.Errorf("because %q, want %q in it", why, c.says)
	}
}

func TestWhatIsUpgraded(t *testing.T) {
	t.Parallel()
	all := []string{"192.0.0.1", "192.0.0.2", "192.0.0.3", "192.0.1.1", "192.0.1.2"}
	for name, c := range map[string]upgradeCase{
		"everything": {func(in *Input) { in.allOlder("1.36.1") }, fsm.Upgrade, all, "1.36.3 is desired"},
		"a minor":    {func(in *Input) { in.allOlder("1.35.4") }, fsm.Upgrade, all, "1.36.3 is desired"},
		"what is left of it": {func(in *Input) { in.setOlderVersion("192.0.1.2", "w-2", "1.35.4") }, fsm.Upgrade,
			all[4:],
			"1.35.4"},
		"a kubelet that is older": {func(in *Input) { in.setOlderVersion("192.0.1.2", "w-2", "1.33.0") }, fsm.Upgrade,
			all[4:],
			"1.33.0"},
		"a kubelet that was not restarted": {func(in *Input) {
			in.nodeNamed("w-2").KubeletVersion = "1.36.1"
		}, fsm.Upgrade, all[4:], "1.36.1"},
		"what has begun and has not ended": {func(in *Input) {
			in.changeObserved("192.0.0.2", func(h *observed.Host) { h.Upgrading = decidetest.Version })
		}, fsm.Upgrade, all[1:2], "cp-2 has started but not ended"},
		"a kubelet too old for the API server": {func(in *Input) { in.setOlderVersion("192.0.1.2", "w-2", "1.32.9") },
			fsm.Instruct, nil, "w-2 not healthy"},
		"a foreign node, too old": {func(in *Input) {
			in.allOlder("1.35.4")
			in.Is.API.Nodes = append(in.Is.API.Nodes,
				observed.Node{Name: "theirs", Ready: observed.Yes, KubeletVersion: "1.32.0"})
		}, fsm.Error, nil, "node theirs: kubelet 1.32.0"},
		"a foreign control plane, too old": {func(in *Input) {
			in.allOlder("1.35.4")
			in.Is.API.Nodes = append(in.Is.API.Nodes,
				observed.Node{Name: "theirs", Ready: observed.Yes, ControlPlane: true, KubeletVersion: "1.35.4"})
		}, fsm.Error, nil, "Node theirs (kubelet 1.35.4) is not in the manifest"},
		"a foreign member, too old": {func(in *Input) {
			in.allOlder("1.35.4")
			in.oldMemberElsewhere()
		}, fsm.Error, nil, "Node theirs (kubelet 1.35.4) is not in the manifest"},
		"a foreign member, too old, and a worker is to join": {func(in *Input) {
			in.oldMemberElsewhere()
			in.emptyHosts("192.0.1.2")
		}, fsm.Error, nil, "Node theirs (kubelet 1.35.4) is not in the manifest"},
		"a foreign member, too old, and nothing is to change": {func(in *Input) { in.oldMemberElsewhere() },
			fsm.Nothing, nil, "as desired"},
		"a foreign member, too old, but a rollout is forced": {func(in *Input) {
			in.oldMemberElsewhere()
			in.ForceUpgrade = true
		}, fsm.Error, nil, "Node theirs (kubelet 1.35.4) is not in the manifest"},
		"a foreign control plane, gone": {func(in *Input) {
			in.allOlder("1.35.4")
			in.Is.API.Nodes = append(in.Is.API.Nodes,
				observed.Node{Name: "theirs", Ready: observed.No, ControlPlane: true, KubeletVersion: "1.35.4"})
		}, fsm.Upgrade, all, "1.36.3 is desired"},
		"two minors": {func(in *Input) { in.allOlder("1.34.4") }, fsm.Error, nil,
			"minor versions cannot be skipped"},
		"downwards": {func(in *Input) { in.setOlderVersion("192.0.0.2", "cp-2", "1.36.4") }, fsm.Error, nil,
			"cannot be downgraded"},
		"within a limit": {func(in *Input) { in.allOlder("1.35.4"); in.Limit = map[string]bool{"192.0.0.1": true} },
			fsm.Upgrade, all[:1], "1.35.4"},
		"a limit that is done": {func(in *Input) {
			in.allOlder("1.35.4")
			in.setOlderVersion("192.0.0.1", "cp-1", decidetest.Version)
			in.Limit = map[string]bool{"192.0.0.1": true}
		}, fsm.Nothing, nil, "as desired"},
		"a limit to workers of an old control plane": {func(in *Input) {
			in.allOlder("1.35.4")
			in.Limit = map[string]bool{"192.0.1.1": true}
		}, fsm.Error, nil, "outside the limit"},
		"a limit to workers, a patch release": {func(in *Input) {
			in.allOlder("1.36.1")
			in.Limit = map[string]bool{"192.0.1.1": true}
		}, fsm.Upgrade, all[3:4], "1.36.1"},
		"all of it, by force": {func(in *Input) { in.ForceUpgrade = true }, fsm.Upgrade, all, "forced"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.checkDecision(t)
		})
	}
}

func TestWhatARunLeftCordonedIsOpened(t *testing.T) {
	t.Parallel()
	closed := func(in *Input, name, by string) {
		n := in.nodeNamed(name)
		n.Unschedulable = true
		if by != "" {
			n.Annotations = map[string]string{observed.CordonAnnotation: by}
		}
	}
	in := healthyCluster(3, 2)
	closed(&in, "cp-2", "run-1")
	closed(&in, "w-1", "") // by an operator
	d := Decide(in)
	if diff := cmp.Diff([]string{"192.0.0.2"}, d.Uncordon); diff != "" || d.Route != fsm.Resources {
		t.Errorf("route %s, %s", d.Route, diff)
	}
	in.setOlderVersion("192.0.1.2", "w-2", "1.36.1")
	closed(&in, "w-2", "run-1") // its upgrade is repeated
	d = Decide(in)
	if diff := cmp.Diff([]string{"192.0.0.2"}, d.Uncordon); diff != "" || d.Route != fsm.Upgrade {
		t.Errorf("route %s, %s", d.Route, diff)
	}
}

func TestATurnThatHasBegunGoesOn(t *testing.T) {
	t.Parallel()
	stopKubelet := func(h *observed.Host) { h.Kubelet.Active, h.Healthz = false, observed.No }
	nothingRuns := func(in *Input, h *observed.Host) {
		stopKubelet(h)
		h.APIServer, h.EtcdHealth, h.ControllerManager, h.Scheduler = observed.No, observed.No, observed.No, observed.No
		in.killMembers("cp-2")
	}
	for name, c := range map[string]struct {
		host, id string
		world    func(*Input, *observed.Host)
		route    fsm.Route
		first    string // of the hosts to upgrade
	}{
		"a worker's new kubelet does not start": {"w-2", "192.0.1.2",
			func(_ *Input, h *observed.Host) { stopKubelet(h) }, fsm.Upgrade, "192.0.0.1"},
		"a worker's had begun for another version": {"w-2", "192.0.1.2",
			func(_ *Input, h *observed.Host) { stopKubelet(h); h.Upgrading = "1.36.2" }, fsm.Upgrade, "192.0.0.1"},
		"a control-plane host's does not": {"cp-2", "192.0.0.2", func(_ *Input, h *observed.Host) { stopKubelet(h) },
			fsm.Upgrade, "192.0.0.2"},
		"its API server does not": {"cp-2", "192.0.0.2", func(_ *Input, h *observed.Host) { h.APIServer = observed.No },
			fsm.Upgrade, "192.0.0.2"},
		"its API server's manifest is gone": {"cp-2", "192.0.0.2", func(_ *Input, h *observed.Host) {
			h.APIServer, h.APIServerVersion, h.Kubelet.Version = observed.No, "", "1.36.1"
		}, fsm.Upgrade, "192.0.0.2"},
		"nothing runs there, and the others are a quorum": {"cp-2", "192.0.0.2", func(in *Input, h *observed.Host) {
			nothingRuns(in, h)
		}, fsm.Upgrade, "192.0.0.2"},
		"nothing runs there, and the others are none": {"cp-2", "192.0.0.2", func(in *Input, h *observed.Host) {
			nothingRuns(in, h)
			in.loseHosts("192.0.0.3")
		}, fsm.Repair, ""},
		"nothing runs there, and its credentials are gone": {"cp-2", "192.0.0.2", func(in *Input, h *observed.Host) {
			nothingRuns(in, h)
			h.KubeletCert = observed.No
		}, fsm.Repair, ""},
		"its upgrade has not begun": {"cp-2", "192.0.0.2",
			func(_ *Input, h *observed.Host) { stopKubelet(h); h.Upgrading = "" }, fsm.Repair, ""},
		"it had begun for another version": {"cp-2", "192.0.0.2",
			func(_ *Input, h *observed.Host) { stopKubelet(h); h.Upgrading = "1.36.2" }, fsm.Repair, ""},
		"its container runtime does not run": {"cp-2", "192.0.0.2",
			func(_ *Input, h *observed.Host) { stopKubelet(h); h.Containerd.Active = false }, fsm.Repair, ""},
		"etcd does not run there": {"cp-2", "192.0.0.2",
			func(_ *Input, h *observed.Host) { h.EtcdHealth, h.APIServer = observed.No, observed.No }, fsm.Instruct,
			""},
		"it is outside the limit": {"w-2", "192.0.1.2",
			func(in *Input, h *observed.Host) { stopKubelet(h); in.Limit = map[string]bool{"192.0.0.1": true} },
			fsm.Upgrade, "192.0.0.1"},
		"the API does not answer, so that it is unknown": {"w-2", "192.0.1.2",
			func(in *Input, h *observed.Host) { stopKubelet(h); in.Is.API = observed.API{} }, fsm.Instruct, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := healthyCluster(3, 2)
			in.allOlder("1.36.1")
			n := in.nodeNamed(c.host)
			n.Ready, n.Unschedulable, n.Annotations = observed.No, true,
				map[string]string{observed.CordonAnnotation: "run-1"}
			in.changeObserved(c.id, func(h *observed.Host) {
				h.Kubelet.Version, h.Upgrading = decidetest.Version, decidetest.Version
				c.world(&in, h)
			})
			d := Decide(in)
			if d.Route != c.route ||
				c.first != "" && (len(d.Upgrades) == 0 || d.Upgrades[0] != c.first || d.Restarts != nil) {
				t.Errorf("route %s, upgrades %v, restarts %v: %+v", d.Route, d.Upgrades, d.Restarts,
					d.Trace[len(d.Trace)-1])
			}
		})
	}
}

// If resuming needs an API server that is down with the host, or would stop a member that etcd needs, the kubelet's
// settings are written first: restarting it with settings that it refuses would always fail.
func TestSettingsThatMayBeRefusedAreWrittenAgain(t *testing.T) {
	t.Parallel()
	const first = "192.0.0.1"
	for name, c := range map[string]struct {
		controlPlanes int
		upgrading     string
		world         func(*Input)
	}{
		"on the only control-plane host": {1, decidetest.Version, func(in *Input) {
			in.Is.API, in.Is.Etcd = observed.API{Reached: observed.No}, observed.Etcd{Reached: observed.No}
		}},
		"on one of two": {2, decidetest.Version, func(in *Input) {
			in.Is.API = observed.API{Reached: observed.No}
			in.killMembers("cp-1")
		}},
		"of a version that is no longer desired": {1, "1.36.2", func(in *Input) {
			in.Is.API, in.Is.Etcd = observed.API{Reached: observed.No}, observed.Etcd{Reached: observed.No}
		}},
		"with another host down": {3, decidetest.Version, func(in *Input) {
			in.loseHosts("192.0.0.2")
			in.changeObserved(first, func(h *observed.Host) { h.EtcdHealth = observed.Yes })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := healthyCluster(c.controlPlanes, 0)
			in.changeObserved(first, func(h *observed.Host) {
				h.Upgrading, h.Kubelet.Active, h.Healthz = c.upgrading, false, observed.No
				h.APIServer, h.EtcdHealth = observed.No, observed.No
			})
			c.world(&in)
			d := Decide(in)
			want := map[string][]string{first: {condition.PartSettings}}
			if diff := cmp.Diff(want, d.Regenerations); diff != "" || d.Restarts != nil || len(d.Upgrades) > 0 {
				t.Errorf("route %s, restarts %v, upgrades %v, regenerations %s", d.Route, d.Restarts, d.Upgrades, diff)
			}
		})
	}
}

func TestTheFormOfTheDesiredStateStaysAsItIs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		objects bool
		digest  string // of the recorded manifest
		stored  string // digest of the stored objects
		says    string
	}{
		"a manifest":                     {digest: "m"},
		"objects":                        {objects: true, digest: "m", stored: "o"},
		"objects for an unfinished one":  {objects: true},
		"objects in place of a manifest": {objects: true, digest: "m", says: "kubeone adopt --as objects"},
		"a manifest in place of objects": {digest: "m", stored: "o", says: "kubeone adopt --as manifest"},
	} {
		in := healthyCluster(3, 1)
		in.Want.Objects = c.objects
		in.Is.API.Record = &observed.Record{Cluster: in.Want.Name, ManifestDigest: c.digest}
		if c.stored != "" {
			in.Is.API.Addons = map[string]string{desired.ClusterAddon: c.stored}
			in.Addons, in.CustomAddons = map[string]string{desired.ClusterAddon: "o"}, []string{desired.ClusterAddon}
		}
		var said []string
		for _, p := range Decide(in).Problems {
			if p.Code == problem.OtherForm {
				said = append(said, p.Remedy())
			}
		}
		if c.says == "" && len(said) > 0 || c.says != "" && (len(said) != 1 || !strings.Contains(said[0], c.says)) {
			t.Errorf("%s: %q", name, said)
		}
		if c.says != "" && Decide(in).Route != fsm.Error {
			t.Errorf("%s: route %s", name, Decide(in).Route)
		}
	}
}

func TestTheNetworkOfAClusterStaysAsItIs(t *testing.T) {
	t.Parallel()
	in := healthyCluster(3, 1)
	in.changeObserved("192.0.0.2", func(h *observed.Host) { h.Digests = map[string]string{"network": "n-1"} })
	in.Config["192.0.0.2"] = map[string]string{"network": "n-1"}
	if d := Decide(in); d.Route != fsm.Nothing {
		t.Fatalf("route %s: %+v", d.Route, d.Problems)
	}
	in.Config["192.0.0.2"] = map[string]string{"network": "n-2"}
	if d := Decide(in); d.Route != fsm.Error || len(d.Problems) != 1 || d.Problems[0].Code != problem.NetworkImmutable {
		t.Errorf("route %s: %+v", d.Route, d.Problems)
	}
}

func TestTheNetworkPluginThatWasDeployedStays(t *testing.T) {
	t.Parallel()
	in := healthyCluster(3, 1)
	if _, deployed := in.Is.API.Addons["flannel"]; !deployed {
		t.Fatal("a healthy cluster has its plugin")
	}
	for _, other := range []string{"canal", "weaveNet"} { // one that kubeone deploys, and one that it does not
		in.Want.Network.CNI.Name, in.Addons = other, nil
		if d := Decide(in); d.Route != fsm.Error || len(d.Problems) != 1 ||
			d.Problems[0].String() != "NetworkPluginChanged(deployed=flannel, wanted="+other+")" {
			t.Errorf("%s: route %s: %+v", other, d.Route, d.Problems)
		}
	}
	in.Want.Network.CNI.Name = "external"
	if d := Decide(in); d.Route != fsm.Nothing || len(d.Warnings) != 1 ||
		d.Warnings[0].Code != problem.NetworkPluginChanged {
		t.Errorf("route %s: %+v, %+v", d.Route, d.Problems, d.Warnings)
	}
	// The operator has removed its pods: the rest of it goes too, and another one takes its place.
	isPlugin := func(p observed.Pod) bool { return p.App == "flannel" }
	for _, other := range []string{"cilium", "external"} {
		removed := in
		removed.Want.Network.CNI.Name = other
		removed.Is.API.Pods = slices.DeleteFunc(slices.Clone(in.Is.API.Pods), isPlugin)
		d := Decide(removed)
		isRefused := slices.ContainsFunc(d.Warnings, func(p problem.Problem) bool {
			return p.Code == problem.NetworkPluginChanged
		})
		if len(d.Problems) > 0 || isRefused || !slices.Equal(d.RemoveAddons, []string{"flannel"}) {
			t.Errorf("%s: remove %v: %+v, %+v", other, d.RemoveAddons, d.Problems, d.Warnings)
		}
		removed.Is.API.Pods = nil // not read: it may still run
		if d := Decide(removed); len(d.RemoveAddons) > 0 {
			t.Errorf("%s: an unknown plugin is removed", other)
		}
	}
	// Another program has deployed it from the beginning.
	in.Want.Network.CNI.Name = "weaveNet"
	in.Is.API.Addons = nil
	if d := Decide(in); d.Route != fsm.Nothing {
		t.Errorf("route %s: %+v", d.Route, d.Problems)
	}
}

func TestWhoIsAheadIsNamed(t *testing.T) {
	t.Parallel()
	in := healthyCluster(3, 1)
	in.setOlderVersion("192.0.1.1", "w-1", "1.36.4")
	d := Decide(in)
	if why := d.Hosts["192.0.1.1"]; len(d.Problems) > 0 || why.Condition != condition.Unclear ||
		why.Reasons[0].String() != "KubeletAhead(hosts=w-1, newer=kubelet of w-1 1.36.4, running=1.36.4, "+
			"wanted=1.36.3)" {
		t.Errorf("%+v, %+v", d.Problems, why) // no API server is newer: it stops nothing else
	}
	in.setOlderVersion("192.0.0.1", "cp-1", "1.36.4")
	d = Decide(in)
	if len(d.Problems) != 1 || d.Problems[0].String() != "DowngradeOfSome(newer=API server of cp-1 1.36.4+kubelet of "+
		"w-1 1.36.4, running=1.36.4, wanted=1.36.3)" {
		t.Errorf("%+v", d.Problems)
	}
}

func TestWhatKubeadmAppliesWaitsForTheWholeCluster(t *testing.T) {
	t.Parallel()
	stale := func() Input {
		in := healthyCluster(3, 1)
		in.System = map[string]string{"kube-proxy": "r/kube-proxy:v1.36.3"}
		in.Is.API.Pods = []observed.Pod{{App: "kube-proxy", Image: "r/kube-proxy:v1.36.1", Ready: observed.Yes}}
		return in
	}
	in := stale()
	in.Limit = map[string]bool{"192.0.0.3": true}
	if d := Decide(in); d.Leader != "192.0.0.3" {
		t.Errorf("within the limit: route %s, by %q", d.Route, d.Leader)
	}
	in.Limit = map[string]bool{"192.0.1.1": true}
	if d := Decide(in); d.Route != fsm.Nothing {
		t.Errorf("a limit without a control-plane host: route %s", d.Route)
	}
	in = stale()
	in.allOlder("1.36.1")
	if d := Decide(in); d.Route != fsm.Upgrade || len(d.System) != 1 || d.Leader != "192.0.0.1" {
		t.Errorf("in an upgrade: route %s, %v by %q", d.Route, d.System, d.Leader)
	}
	// A Machine that is behind does not have the new version's image either.
	for _, upgrading := range []bool{true, false} {
		in = stale()
		if upgrading {
			in.allOlder("1.36.1")
		}
		in.Is.API.Pool = &observed.Pool{Machines: []observed.Machine{
			{Namespace: "kube-system", Name: "a", Node: "m-1", Kubelet: "1.36.1"},
			{Namespace: "kube-system", Name: "b", Node: "m-2", Kubelet: in.Want.KubernetesVersion},
			{Namespace: "kube-system", Name: "c", Kubelet: "1.36.1"},
		}}
		d := Decide(in)
		warned := slices.ContainsFunc(d.Warnings, func(p problem.Problem) bool {
			return p.Code == problem.SystemAwaitsMachines &&
				cmp.Equal(p.Parameters["machines"], []string{"kube-system/a"})
		})
		if len(d.System) != 0 || !warned {
			t.Errorf("with a Machine behind: route %s, %v, %+v", d.Route, d.System, d.Warnings)
		}
		in.Is.API.Pool.Machines[0].Kubelet = in.Want.KubernetesVersion
		if d := Decide(in); len(d.System) != 1 {
			t.Errorf("once it is not behind: route %s, %v", d.Route, d.System)
		}
	}
	in = stale()
	in.allOlder("1.36.1")
	in.Limit = map[string]bool{"192.0.0.1": true, "192.0.0.2": true, "192.0.0.3": true}
	if d := Decide(in); d.Route != fsm.Upgrade || len(d.System) != 0 {
		t.Errorf("in one that leaves a worker behind: route %s, %v", d.Route, d.System)
	}
	in = stale()
	in.setOlderVersion("192.0.1.1", "w-1", "1.36.1")
	in.Limit = map[string]bool{"192.0.0.1": true}
	if d := Decide(in); d.Route != fsm.Nothing {
		t.Errorf("a worker outside the limit has another version: route %s", d.Route)
	}
}

func TestWhatKubeadmAppliesFollowsTheVersion(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pods   []observed.Pod
		system []string
	}{
		"as wanted": {
			[]observed.Pod{{App: "kube-proxy", Image: "r/kube-proxy:v1.36.3", Ready: observed.Yes}},
			nil,
		},
		"older": {
			[]observed.Pod{
				{App: "kube-proxy", Image: "r/kube-proxy:v1.36.1", Ready: observed.Yes},
				{App: "kube-dns", Image: "r/coredns:v1", Ready: observed.Yes},
			},
			[]string{"kube-dns", "kube-proxy"},
		},
		"older, on a node that is away": {
			[]observed.Pod{{App: "kube-proxy", Image: "r/kube-proxy:v1.36.1", Ready: observed.No}},
			nil,
		},
		"another app's": {[]observed.Pod{{App: "metrics", Image: "r/metrics:v0", Ready: observed.Yes}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := healthyCluster(3, 1)
			in.System = map[string]string{"kube-proxy": "r/kube-proxy:v1.36.3", "kube-dns": "r/coredns:v2"}
			in.Is.API.Pods = c.pods
			d := Decide(in)
			want := fsm.Nothing
			if c.system != nil {
				want = fsm.Resources
			}
			if diff := cmp.Diff(c.system, d.System); diff != "" || d.Route != want ||
				(d.Leader != "") != (c.system != nil) {
				t.Errorf("route %s, leader %q, %s", d.Route, d.Leader, diff)
			}
		})
	}
}

// setWorkerVersions sets versions for the last worker.
func (in *Input) setWorkerVersions(kubelet, containerd string) {
	in.Want.Workers[len(in.Want.Workers)-1].Versions = desired.Versions{Kubernetes: kubelet, Containerd: containerd}
}

// setContainerdVersion makes the last worker run a version of containerd.
func (in *Input) setContainerdVersion(version string) {
	in.changeObserved("192.0.1.2", func(h *observed.Host) { h.Containerd.Version = version })
	in.nodeNamed("w-2").Runtime = "containerd://v" + version
}

func TestVersionsThatAreNamedForAWorker(t *testing.T) {
	t.Parallel()
	last := []string{"192.0.1.2"}
	all := []string{"192.0.0.1", "192.0.0.2", "192.0.0.3", "192.0.1.1", "192.0.1.2"}
	for name, c := range map[string]upgradeCase{
		"an older kubelet": {func(in *Input) { in.setWorkerVersions("1.35.4", "") }, fsm.Upgrade, last,
			"w-2 does not run the versions"},
		"an older patch": {func(in *Input) { in.setWorkerVersions("1.36.1", "") }, fsm.Upgrade, last, "w-2"},
		"the kubelet that runs": {
			func(in *Input) { in.setWorkerVersions("1.35.4", ""); in.setOlderVersion("192.0.1.2", "w-2", "1.35.4") },
			fsm.Nothing, nil, "",
		},
		"the cluster's": {func(in *Input) { in.setWorkerVersions(decidetest.Version, "") }, fsm.Nothing, nil, ""},
		"up again, no longer named": {func(in *Input) { in.setOlderVersion("192.0.1.2", "w-2", "1.35.4") }, fsm.Upgrade,
			last,
			"1.35.4"},
		"up within what is named": {
			func(in *Input) { in.setWorkerVersions("1.35.9", ""); in.setOlderVersion("192.0.1.2", "w-2", "1.35.4") },
			fsm.Upgrade, last,
			"w-2",
		},
		"all upgraded, one stays": {func(in *Input) { in.allOlder("1.35.4"); in.setWorkerVersions("1.35.4", "") },
			fsm.Upgrade,
			all[:4], "1.36.3 is desired"},
		"another containerd": {func(in *Input) { in.setContainerdVersion("2.4.2"); in.setWorkerVersions("", "2.3.7") },
			fsm.Upgrade,
			last, "w-2"},
		"the containerd that runs": {func(in *Input) {
			in.setContainerdVersion("2.3.7")
			in.setWorkerVersions("",
				"2.3.7")
		}, fsm.Nothing, nil,
			""},
		"any containerd, none named": {func(in *Input) { in.setContainerdVersion("1.7.0") }, fsm.Nothing, nil, ""},
		"a containerd that was not restarted": {func(in *Input) {
			in.setContainerdVersion("2.3.7")
			in.nodeNamed("w-2").Runtime = "containerd://2.4.2"
			in.setWorkerVersions("", "2.3.7")
		}, fsm.Upgrade, last, "w-2"},
		"a turn about containerd that has not ended": {func(in *Input) {
			in.setContainerdVersion("2.3.7")
			in.setWorkerVersions("", "2.3.7")
			in.changeObserved("192.0.1.2", func(h *observed.Host) { h.Upgrading = decidetest.Version })
		}, fsm.Upgrade, last, "w-2"},
		"outside the limit": {func(in *Input) {
			in.setWorkerVersions("1.35.4", "")
			in.Limit = map[string]bool{"192.0.1.1": true}
		}, fsm.Nothing, nil, ""},
		"newer than the cluster": {func(in *Input) { in.setWorkerVersions("1.36.4", "") }, fsm.Error, nil,
			"kubelet 1.36.4 does not work"},
		"more than three minors": {func(in *Input) { in.setWorkerVersions("1.32.0", "") }, fsm.Error, nil,
			"kubelet 1.32.0 does not work"},
		"a containerd it cannot": {func(in *Input) { in.setWorkerVersions("", "1.7.22") }, fsm.Error, nil,
			"does not work with containerd 1.7.22"},
		"for a control-plane host": {func(in *Input) { in.Want.ControlPlane[0].Versions.Kubernetes = "1.35.4" },
			fsm.Error, nil, "control-plane host"},
		"a newer one was put there": {
			func(in *Input) { in.setOlderVersion("192.0.1.2", "w-2", "1.37.0"); in.setWorkerVersions("1.35.4", "") },
			fsm.Instruct, nil,
			"w-2 not healthy",
		},
		"API servers that are older, outside the limit": {func(in *Input) {
			in.allOlder("1.35.4")
			in.setWorkerVersions("1.36.1", "")
			in.Limit = map[string]bool{"192.0.1.2": true}
		}, fsm.Error, nil, "outside the limit"},
		"API servers that are older, and not too old": {func(in *Input) {
			in.allOlder("1.35.4")
			in.setWorkerVersions("1.34.9", "")
			in.Limit = map[string]bool{"192.0.1.2": true}
		}, fsm.Upgrade, last, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.checkDecision(t)
		})
	}
}

// TestLiveObjectsAreWhatTheyMustBe: changed objects in the cluster are restored last, and only by a run for the whole
// cluster.
func TestLiveObjectsAreWhatTheyMustBe(t *testing.T) {
	t.Parallel()
	gone := []observed.Difference{{Object: "an object", Missing: true}}
	all := observed.Comparison{Differences: gone, Settings: gone}
	for name, c := range map[string]struct {
		compared                 map[string]observed.Comparison
		about                    map[string]bool
		addons, system, settings []string
	}{
		"as they must be": {compared: map[string]observed.Comparison{"flannel": {}, "kube-proxy": {}, "kube-dns": {}}},
		"not compared":    {compared: map[string]observed.Comparison{"flannel": {Problem: "a webhook refuses"}}},
		"an addon": {
			compared: map[string]observed.Comparison{"flannel": {Differences: gone}}, addons: []string{"flannel"},
		},
		"what kubeadm applies": {
			compared: map[string]observed.Comparison{"kube-dns": {Differences: gone}}, system: []string{"kube-dns"},
		},
		"settings": {
			compared: map[string]observed.Comparison{"kube-proxy": {Settings: gone}}, settings: []string{"kube-proxy"},
		},
		"what was not asked for": {compared: map[string]observed.Comparison{"other": all}},
		"about one host": {
			compared: map[string]observed.Comparison{"flannel": {Differences: gone}, "kube-proxy": all},
			about:    map[string]bool{"192.0.1.1": true},
		},
	} {
		in := healthyCluster(3, 1)
		in.System = map[string]string{"kube-proxy": "r/kube-proxy:v1.36.3", "kube-dns": "r/coredns:v2"}
		for app, image := range in.System {
			decidetest.Runs(in.Is.API.Pods, app, image)
		}
		in.Is.API.Compared, in.About = c.compared, c.about
		d, want := Decide(in), fsm.Nothing
		if len(c.addons)+len(c.system)+len(c.settings) > 0 {
			want = fsm.Resources
		}
		got := [][]string{d.Addons, d.System, d.Settings}
		if diff := cmp.Diff([][]string{c.addons, c.system, c.settings}, got); diff != "" || d.Route != want {
			t.Errorf("%s: route %s\n%s", name, d.Route, diff)
		}
	}
}

// The kubelet's serving certificate is approved only for its host's names.
func TestServingCertificatesAreApproved(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		node  string
		names []string
		want  bool
	}{
		"its own":            {"w-1", []string{"W-1", "10.0.1.1", "192.0.1.1"}, true},
		"another host's":     {"w-1", []string{"w-1", "10.0.0.1"}, false},
		"a Service's":        {"w-1", []string{"kubernetes.default.svc"}, false},
		"another Node's":     {"w-1", []string{"cp-1"}, false},
		"of an unknown host": {"stranger", []string{"stranger"}, false},
	} {
		in := healthyCluster(3, 1)
		in.Is.API.ServingRequests = []observed.ServingRequest{{Node: c.node, Names: c.names}}
		d := Decide(in)
		if (len(d.Serving) > 0) != c.want || (d.Route == fsm.Resources) != c.want {
			t.Errorf("%s: route %s, %v", name, d.Route, d.Serving)
		}
		in.About = map[string]bool{"192.0.1.1": true}
		if d := Decide(in); len(d.Serving) > 0 {
			t.Errorf("%s: approved by a decision about one host", name)
		}
	}
}

// Certificates that expire soon are reported with their renewal; no restart happens for them automatically.
func TestCertificatesThatExpireSoonAreWarnedOf(t *testing.T) {
	t.Parallel()
	in := healthyCluster(3, 1)
	in.changeObserved("192.0.0.2", func(h *observed.Host) {
		h.Certificates = []observed.Certificate{{Name: "apiserver", Soon: true}, {Name: "ca"}}
	})
	d := Decide(in)
	i := slices.IndexFunc(d.Warnings, func(p problem.Problem) bool { return p.Code == problem.CertificatesEnding })
	if d.Route != fsm.Nothing || i < 0 || d.Warnings[i].Host != "192.0.0.2" ||
		d.Warnings[i].Text() != "certificates expire within 30 days: apiserver" {
		t.Errorf("route %s, %+v", d.Route, d.Warnings)
	}
}

// A silent endpoint gives a warning and stops nothing: the hosts may be needed to repair it.
func TestAnEndpointThatDoesNotAnswerIsWarnedOf(t *testing.T) {
	t.Parallel()
	in := healthyCluster(3, 1)
	in.Is.API.EndpointAnswers, in.Is.API.EndpointProblem = observed.No, "from this machine: refused"
	d := Decide(in)
	if d.Route != fsm.Nothing || !slices.ContainsFunc(d.Warnings, func(p problem.Problem) bool {
		return p.Code == problem.EndpointSilent && strings.Contains(p.Text(), "from this machine: refused")
	}) {
		t.Errorf("route %s, %+v", d.Route, d.Warnings)
	}
}

// A control plane with only the API server upgraded manually differs from the desired state.
func TestControllersOfAnotherVersionAreUpgraded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		manager, scheduler string
		route              fsm.Route
		upgrades           []string
	}{
		"as wanted":             {decidetest.Version, decidetest.Version, fsm.Nothing, nil},
		"not known":             {"", "", fsm.Nothing, nil},
		"a scheduler of before": {decidetest.Version, "1.36.1", fsm.Upgrade, []string{cp2}},
		"a manager of before":   {"1.36.1", "", fsm.Upgrade, []string{cp2}},
		"a newer scheduler":     {decidetest.Version, "1.37.0", fsm.Error, nil},
		"a custom scheduler":    {decidetest.Version, "ours-7", fsm.Nothing, nil},
	} {
		in := healthyCluster(3, 1)
		in.changeObserved(cp2, func(h *observed.Host) {
			h.ControllerManagerVersion, h.SchedulerVersion = c.manager, c.scheduler
		})
		d := Decide(in)
		if d.Route != c.route || !slices.Equal(d.Upgrades, c.upgrades) {
			t.Errorf("%s: route %s, upgrades %v, want %s, %v", name, d.Route, d.Upgrades, c.route, c.upgrades)
		}
	}
}
