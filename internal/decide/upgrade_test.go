package decide

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/observed"
)

// older makes a host run another version.
func (in *Input) older(id, name, version string) {
	in.change(id, func(h *observed.Host) {
		h.Kubelet.Version = version
		if h.APIServerVersion != "" {
			h.APIServerVersion = version
		}
	})
	in.node(name).KubeletVersion = version
}

func (in *Input) allOlder(version string) {
	for _, h := range in.Want.Hosts() {
		in.older(h.ID, h.Hostname, version)
	}
}

func TestWhatIsUpgraded(t *testing.T) {
	t.Parallel()
	all := []string{"192.0.0.1", "192.0.0.2", "192.0.0.3", "192.0.1.1", "192.0.1.2"}
	for name, c := range map[string]struct {
		world func(*Input)
		route Route
		hosts []string
		says  string // in the reason of the last question
	}{
		"everything":              {func(in *Input) { in.allOlder("1.36.1") }, Upgrade, all, "1.36.3 is wanted"},
		"a minor":                 {func(in *Input) { in.allOlder("1.35.4") }, Upgrade, all, "1.36.3 is wanted"},
		"what is left of it":      {func(in *Input) { in.older("192.0.1.2", "w-2", "1.35.4") }, Upgrade, all[4:], "1.35.4"},
		"a kubelet that is older": {func(in *Input) { in.older("192.0.1.2", "w-2", "1.33.0") }, Upgrade, all[4:], "1.33.0"},
		"a kubelet that was not restarted": {func(in *Input) {
			in.node("w-2").KubeletVersion = "1.36.1"
		}, Upgrade, all[4:], "1.36.1"},
		"a kubelet too old for the API server": {func(in *Input) { in.older("192.0.1.2", "w-2", "1.32.9") }, Error, nil, "node w-2: kubelet 1.32.9 is more than 3 minors older"},
		"a node of somebody else, too old": {func(in *Input) {
			in.allOlder("1.35.4")
			in.Is.API.Nodes = append(in.Is.API.Nodes, observed.Node{Name: "theirs", Ready: observed.Yes, KubeletVersion: "1.32.0"})
		}, Error, nil, "node theirs: kubelet 1.32.0"},
		"two minors":     {func(in *Input) { in.allOlder("1.34.4") }, Error, nil, "go to 1.35 first"},
		"downwards":      {func(in *Input) { in.older("192.0.0.2", "cp-2", "1.36.4") }, Error, nil, "cannot be downgraded"},
		"within a limit": {func(in *Input) { in.allOlder("1.35.4"); in.Limit = map[string]bool{"192.0.0.1": true} }, Upgrade, all[:1], "1.35.4"},
		"a limit that is done": {func(in *Input) {
			in.allOlder("1.35.4")
			in.older("192.0.0.1", "cp-1", running)
			in.Limit = map[string]bool{"192.0.0.1": true}
		}, Nothing, nil, "as wanted"},
		"a limit to workers of an old control plane": {func(in *Input) {
			in.allOlder("1.35.4")
			in.Limit = map[string]bool{"192.0.1.1": true}
		}, Error, nil, "outside the limit"},
		"a limit to workers, a patch release": {func(in *Input) {
			in.allOlder("1.36.1")
			in.Limit = map[string]bool{"192.0.1.1": true}
		}, Upgrade, all[3:4], "1.36.1"},
		"all of it, by force": {func(in *Input) { in.ForceUpgrade = true }, Upgrade, all, "forced"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := healthy(3, 2)
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
		})
	}
}

func TestWhatARunLeftCordonedIsOpened(t *testing.T) {
	t.Parallel()
	closed := func(in *Input, name, by string) {
		n := in.node(name)
		n.Unschedulable = true
		if by != "" {
			n.Annotations = map[string]string{observed.CordonAnnotation: by}
		}
	}
	in := healthy(3, 2)
	closed(&in, "cp-2", "run-1")
	closed(&in, "w-1", "") // by a person
	d := Decide(in)
	if diff := cmp.Diff([]string{"192.0.0.2"}, d.Uncordon); diff != "" || d.Route != Resources {
		t.Errorf("route %s, %s", d.Route, diff)
	}
	in.older("192.0.1.2", "w-2", "1.36.1")
	closed(&in, "w-2", "run-1") // its turn comes again
	d = Decide(in)
	if diff := cmp.Diff([]string{"192.0.0.2"}, d.Uncordon); diff != "" || d.Route != Upgrade {
		t.Errorf("route %s, %s", d.Route, diff)
	}
}

func TestWhatKubeadmAppliesFollowsTheVersion(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pods   []observed.Pod
		system []string
	}{
		"as wanted":                     {[]observed.Pod{{App: "kube-proxy", Image: "r/kube-proxy:v1.36.3", Ready: observed.Yes}}, nil},
		"older":                         {[]observed.Pod{{App: "kube-proxy", Image: "r/kube-proxy:v1.36.1", Ready: observed.Yes}, {App: "kube-dns", Image: "r/coredns:v1", Ready: observed.Yes}}, []string{"kube-dns", "kube-proxy"}},
		"older, on a node that is away": {[]observed.Pod{{App: "kube-proxy", Image: "r/kube-proxy:v1.36.1", Ready: observed.No}}, nil},
		"somebody else's":               {[]observed.Pod{{App: "metrics", Image: "r/metrics:v0", Ready: observed.Yes}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := healthy(3, 1)
			in.System = map[string]string{"kube-proxy": "r/kube-proxy:v1.36.3", "kube-dns": "r/coredns:v2"}
			in.Is.API.Pods = c.pods
			d := Decide(in)
			want := Nothing
			if c.system != nil {
				want = Resources
			}
			if diff := cmp.Diff(c.system, d.System); diff != "" || d.Route != want || (d.Leader != "") != (c.system != nil) {
				t.Errorf("route %s, leader %q, %s", d.Route, d.Leader, diff)
			}
		})
	}
}
