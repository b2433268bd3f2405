package decide

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
)

func TestHelmReleases(t *testing.T) {
	t.Parallel()
	current := observed.HelmRelease{
		Status: observed.ReleaseDeployed, Managed: true, Source: "chart", Values: "values", Version: "1.0.0",
	}
	changed := func(change func(*observed.HelmRelease)) map[string]observed.HelmRelease {
		is := current
		change(&is)
		return map[string]observed.HelmRelease{"web/web": is}
	}
	for name, c := range map[string]struct {
		is      map[string]observed.HelmRelease
		differs bool
		apply   bool
		remove  []string
	}{
		"not in the cluster":    {is: nil, apply: true},
		"current":               {is: changed(func(*observed.HelmRelease) {})},
		"another chart":         {is: changed(func(r *observed.HelmRelease) { r.Source = "old" }), apply: true},
		"other values":          {is: changed(func(r *observed.HelmRelease) { r.Values = "old" }), apply: true},
		"failed":                {is: changed(func(r *observed.HelmRelease) { r.Status = "failed" }), apply: true},
		"interrupted":           {is: changed(func(r *observed.HelmRelease) { r.Status = "pending-upgrade" }), apply: true},
		"of another program":    {is: changed(func(r *observed.HelmRelease) { r.Managed = false }), apply: true},
		"with an edited object": {is: changed(func(*observed.HelmRelease) {}), differs: true, apply: true},
		"unreadable":            {is: changed(func(r *observed.HelmRelease) { r.Values, r.Problem = "", "it is an x" })},
		"with one that left": {is: map[string]observed.HelmRelease{"web/web": current, "a/old": {Managed: true}},
			remove: []string{"a/old"}},
		"with one of others": {is: map[string]observed.HelmRelease{"web/web": current, "a/theirs": {}}},
		"uninstalled half of one": {is: map[string]observed.HelmRelease{
			"web/web": current, "b/old": {Managed: true, Status: "uninstalling"},
		}, remove: []string{"b/old"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := encryptedWorld(func(int) *observed.Encryption { return nil })
			in.KnowsAddons = true
			in.HelmReleases = []desired.HelmRelease{{Namespace: "web", Name: "web", Source: "chart", Values: "values"}}
			in.Is.API.HelmReleases = c.is
			if c.differs {
				in.Is.API.Compared = map[string]observed.Comparison{
					"web/web": {Differences: []observed.Difference{{Object: "ConfigMap web/a", Missing: true}}},
				}
			}
			d := Decide(in)
			var want []string
			if c.apply {
				want = []string{"web/web"}
			}
			if diff := cmp.Diff(want, d.HelmReleases) + cmp.Diff(c.remove, d.RemoveReleases); diff != "" {
				t.Error(diff)
			}
			if changes := c.apply || c.remove != nil; changes != (d.Route == fsm.Resources) {
				t.Errorf("route %s", d.Route)
			}
			warned := slices.ContainsFunc(d.Warnings,
				func(p problem.Problem) bool { return p.Code == problem.ReleaseUnreadable })
			if warned != (name == "unreadable") {
				t.Errorf("warnings %v", d.Warnings)
			}
			in.KnowsAddons, in.HelmReleases = false, nil
			if d := Decide(in); len(d.HelmReleases)+len(d.RemoveReleases) > 0 {
				t.Errorf("without knowing the manifest's: %v, %v", d.HelmReleases, d.RemoveReleases)
			}
		})
	}
}

// withNetworkRelease returns a healthy cluster whose network plugin is a Helm release.
func withNetworkRelease() Input {
	in := healthyCluster(1, 1)
	in.Want.Network.CNI.Name, in.Want.Network.CNI.Releases = "cilium", []string{"cilium"}
	in.Addons, in.KnowsAddons = nil, true
	in.HelmReleases = []desired.HelmRelease{{
		Namespace: "kube-system", Name: "cilium", Source: "chart", Values: "values", Network: true,
	}}
	in.Is.API.Addons = nil
	in.Is.API.HelmReleases = map[string]observed.HelmRelease{"kube-system/cilium": {
		Status: observed.ReleaseDeployed, Managed: true, Source: "chart", Values: "values",
	}}
	return in
}

func TestANetworkPluginThatIsARelease(t *testing.T) {
	t.Parallel()
	const key = "kube-system/cilium"
	for name, c := range map[string]struct {
		change   func(*Input)
		route    fsm.Route
		apply    []string
		problem  string
		warnings []string
	}{
		"current": {change: func(*Input) {}, route: fsm.Nothing},
		"other values": {change: func(in *Input) { in.HelmReleases[0].Values = "new" }, route: fsm.Resources,
			apply: []string{key}},
		"wanted instead of flannel": {
			change: func(in *Input) {
				in.Is.API.Addons, in.Is.API.HelmReleases = map[string]string{"flannel": "a"}, nil
			},
			route: fsm.Error, problem: "NetworkPluginChanged(deployed=flannel, wanted=cilium)",
		},
		"flannel wanted instead": {
			change: func(in *Input) { in.Want.Network.CNI.Name, in.HelmReleases = "flannel", nil },
			route:  fsm.Error, problem: "NetworkPluginChanged(deployed=cilium, wanted=flannel)",
		},
		"now of another tool": {
			change: func(in *Input) { in.Want.Network.CNI.Name, in.HelmReleases = "external", nil },
			route:  fsm.Nothing, warnings: []string{"NetworkPluginChanged(deployed=cilium, wanted=external)"},
		},
		"a release of the manifest": {
			change: func(in *Input) { in.Want.Network.CNI.Name, in.HelmReleases[0].Network = "external", false },
			route:  fsm.Nothing,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := withNetworkRelease()
			c.change(&in)
			d := Decide(in)
			var warnings []string
			for _, w := range d.Warnings {
				if w.Code == problem.NetworkPluginChanged {
					warnings = append(warnings, w.String())
				}
			}
			if d.Route != c.route || c.problem != "" && (len(d.Problems) != 1 || d.Problems[0].String() != c.problem) {
				t.Errorf("route %s: %v", d.Route, d.Problems)
			}
			if diff := cmp.Diff(c.apply, d.HelmReleases) + cmp.Diff(c.warnings, warnings); diff != "" {
				t.Error(diff)
			}
			if len(d.RemoveReleases) > 0 {
				t.Errorf("the network is removed: %v", d.RemoveReleases)
			}
		})
	}
}

func TestKubeProxyIsRemovedOnceItIsReplaced(t *testing.T) {
	t.Parallel()
	replaced := func() Input {
		in := withNetworkRelease()
		in.Want.Network.KubeProxy.Skip, in.Want.Network.CNI.Features.ReplacesKubeProxy = true, true
		in.Is.API.Pods = append(in.Is.API.Pods, observed.Pod{App: kubeProxy, Node: "w-1", Ready: observed.Yes})
		return in
	}
	for name, c := range map[string]struct {
		change func(*Input)
		want   bool
	}{
		"replaced":         {func(*Input) {}, true},
		"not replaced":     {func(in *Input) { in.Want.Network.CNI.Features.ReplacesKubeProxy = false }, false},
		"installed":        {func(in *Input) { in.Want.Network.KubeProxy.Skip = false }, false},
		"for a part of it": {func(in *Input) { in.Limit = map[string]bool{"192.0.0.1": true} }, false},
		"already removed":  {func(in *Input) { in.Is.API.Pods = nil }, false},
	} {
		in := replaced()
		c.change(&in)
		if d := Decide(in); d.RemoveKubeProxy != c.want {
			t.Errorf("%s: route %s, removes kube-proxy: %t", name, d.Route, d.RemoveKubeProxy)
		}
	}
}

// Agents of both versions run during an upgrade, so a plugin neither skips a minor version nor becomes older.
func TestVersionsOfTheNetworkPlugin(t *testing.T) {
	t.Parallel()
	refused := func(have, want, reason string) string {
		return fmt.Sprintf("NetworkPluginSkipped(deployed=%s, plugin=cilium, problem=that would %s, wanted=%s)", have,
			reason, want)
	}
	for _, c := range []struct{ have, want, problem string }{
		{"1.20.1", "1.20.1", ""},
		{"1.20.1", "1.20.2", ""},
		{"1.19.9", "1.20.2", ""},
		{"1.18.3", "1.20.2", refused("1.18.3", "1.20.2", "skip a minor version")},
		{"1.20.2", "2.0.0", refused("1.20.2", "2.0.0", "skip a minor version")},
		{"1.20.2", "1.20.1", refused("1.20.2", "1.20.1", "be a downgrade")},
		{"1.21.0", "1.20.2", refused("1.21.0", "1.20.2", "be a downgrade")},
		{"2.0.0", "1.21.0", refused("2.0.0", "1.21.0", "be a downgrade")},
		{"", "1.20.2", ""},        // not installed
		{"unknown", "1.20.2", ""}, // of another chart
	} {
		in := withNetworkRelease()
		in.HelmReleases[0].Version, in.HelmReleases[0].Source = c.want, "other"
		is := in.Is.API.HelmReleases["kube-system/cilium"]
		is.Version = c.have
		in.Is.API.HelmReleases["kube-system/cilium"] = is
		d := Decide(in)
		got := ""
		if len(d.Problems) > 0 {
			got = d.Problems[0].String()
		}
		if got != c.problem || (d.Route == fsm.Error) != (c.problem != "") {
			t.Errorf("%s to %s: route %s, %v", c.have, c.want, d.Route, d.Problems)
		}
	}
}
