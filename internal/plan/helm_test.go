package plan

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/decide"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan/step"
)

// withReleases gives the cluster the releases web and tools, in this order, and one that the manifest no longer has.
func withReleases(in decide.Input) Input {
	in.KnowsAddons = true
	in.HelmReleases = []desired.HelmRelease{
		{
			Namespace: "web", Name: "web", Chart: "web ~1 from https://charts.example.com", Source: "chart",
			Values: "values", TimeoutSeconds: 300,
		},
		{Namespace: "tools", Name: "tools", Chart: "folder ./tools", Source: "tools", Values: "none", TimeoutSeconds: 60},
	}
	in.Is.API.HelmReleases = map[string]observed.HelmRelease{
		"web/web": {
			Revision: 3, Status: observed.ReleaseDeployed, Chart: "web", Version: "1.0.0", Managed: true, Source: "old",
			Values: "values",
		},
		"a/left": {Managed: true},
	}
	return Input{Decide: in, Charts: map[string]Chart{
		"web/web": {Version: "1.2.0", Digest: "d1"}, "tools/tools": {Version: "0.1.0", Digest: "d2"},
	}}
}

func TestHelmReleasesAreApplied(t *testing.T) {
	t.Parallel()
	p, _ := Build(withReleases(healthyCluster(1, 0)))
	web := stepByID(t, p, "release/web/web")
	if web.Action != Change || web.Reason != "its chart differs from the manifest" || web.Intent.Digest != "d1" {
		t.Errorf("%+v", web)
	}
	if diff := cmp.Diff([]string{"chart web ~1 from https://charts.example.com", "version 1.0.0 -> 1.2.0",
		"chart digest sha256:d1"}, web.Changes); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(step.ApplyReleaseParams{
		Namespace: "web", Name: "web", Version: "1.2.0", Source: "chart", Values: "values", TimeoutSeconds: 300,
	}, step.ParamsOf[step.ApplyReleaseParams](web.Intent)); diff != "" {
		t.Error(diff)
	}
	tools := stepByID(t, p, "release/tools/tools")
	if tools.Action != Create || tools.Reason != "not in the cluster" || !slices.Contains(tools.Needs, "release/web/web") {
		t.Errorf("%+v", tools)
	}
	left := stepByID(t, p, "remove-release/a/left")
	if left.Action != Remove || left.Reason != "it is no longer in the manifest" {
		t.Errorf("%+v", left)
	}
}

// Pods of charts need the network and cluster DNS, unless a chart is the network.
func TestHelmReleasesFollowTheNetwork(t *testing.T) {
	t.Parallel()
	in := withReleases(healthyCluster(1, 0))
	in.Decide.Addons["flannel"] = "new"
	p, _ := Build(in)
	if needs := stepByID(t, p, "release/web/web").Needs; !slices.Contains(needs, "await-workloads") {
		t.Errorf("needs %v", needs)
	}
	in.Decide.Want.Network.CNI.Name = desired.ExternalCNI
	in.Decide.Is.API.Addons["extra"] = "old"
	in.Decide.Addons = map[string]string{"extra": "new"}
	delete(in.Decide.Is.API.Addons, "flannel")
	p, _ = Build(in)
	if needs := stepByID(t, p, "release/web/web").Needs; slices.Contains(needs, "await-workloads") {
		t.Errorf("needs %v", needs)
	}
	if needs := stepByID(t, p, "await-workloads").Needs; !slices.Contains(needs, "release/web/web") {
		t.Errorf("the wait needs %v", needs)
	}
}

func TestReasonsToUpgradeAHelmRelease(t *testing.T) {
	t.Parallel()
	current := observed.HelmRelease{
		Status: observed.ReleaseDeployed, Version: "1.2.0", Managed: true, Source: "chart", Values: "values",
	}
	for want, change := range map[string]func(*observed.HelmRelease){
		"its chart differs from the manifest": func(r *observed.HelmRelease) { r.Source = "old" },
		"its values differ from the manifest": func(r *observed.HelmRelease) { r.Values = "old" },
		"its chart and values differ from the manifest": func(r *observed.HelmRelease) {
			r.Source, r.Values = "old",
				"old"
		},
		"its last operation did not succeed: it is failed": func(r *observed.HelmRelease) { r.Status = "failed" },
		"an operation on it was interrupted":               func(r *observed.HelmRelease) { r.Status = "pending-upgrade" },
		"it was not installed by kubeone":                  func(r *observed.HelmRelease) { r.Managed = false },
		"ConfigMap web/a is missing":                       func(*observed.HelmRelease) {},
	} {
		in := withReleases(healthyCluster(1, 0))
		is := current
		change(&is)
		in.Decide.Is.API.HelmReleases["web/web"] = is
		if strings.HasPrefix(want, "ConfigMap") {
			in.Decide.Is.API.Compared = map[string]observed.Comparison{
				"web/web": {Differences: []observed.Difference{{Object: "ConfigMap web/a", Missing: true}}},
			}
		}
		p, _ := Build(in)
		if got := stepByID(t, p, "release/web/web").Reason; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// Members get the images that a bundle has for addons and releases before these are applied.
func TestMembersGetImagesOfWorkloadsFirst(t *testing.T) {
	t.Parallel()
	in := withReleases(healthyCluster(1, 1))
	in.Decide.Addons["own"], in.Decide.CustomAddons = "new", []string{"own"}
	in.Decide.Want.WorkloadImages = "images"
	for _, h := range in.Decide.Want.Hosts() {
		in.Decide.Config[h.ID] = maps.Clone(in.Decide.Config[h.ID])
		in.Decide.Config[h.ID][desired.WorkloadImagesDigest] = "images"
	}
	p, _ := Build(in)
	before := ancestorSteps(p)
	for _, h := range in.Decide.Want.Hosts() {
		fetch := stepByID(t, p, string(step.Fetch)+"/"+h.Hostname)
		if fetch.Reason != "the host lacks images that the bundle has for addons and Helm releases" {
			t.Errorf("%+v", fetch)
		}
		for _, id := range []string{"addon/own", "release/web/web"} {
			if !before[id][fetch.ID] {
				t.Errorf("%s does not wait for %s", id, fetch.ID)
			}
		}
		changeHost(in.Decide, h.Hostname, func(is *observed.Host) {
			is.Digests = maps.Clone(is.Digests)
			is.Digests[desired.WorkloadImagesDigest] = "images"
		})
	}
	p, _ = Build(in)
	if slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Intent.Kind == step.Fetch }) {
		t.Errorf("images are fetched again:\n%s", planText(p))
	}
}

// withReleaseNetwork gives the cluster a network plugin that is a Helm release.
func withReleaseNetwork(in decide.Input) decide.Input {
	in.Want.Network.CNI = desired.CNI{
		Name: "cilium", Supported: []string{"flannel", "cilium", desired.ExternalCNI}, Releases: []string{"cilium"},
	}
	in.Addons = maps.Clone(in.Addons)
	delete(in.Addons, "flannel")
	in.HelmReleases = []desired.HelmRelease{{
		Namespace: "kube-system", Name: "cilium", Chart: "https://charts.example.com/cilium-1.2.0.tgz", Source: "chart",
		Values: "values", TimeoutSeconds: 300, Network: true,
	}}
	if in.Is.API.Reached == observed.Yes {
		in.Is.API.Addons = maps.Clone(in.Is.API.Addons)
		delete(in.Is.API.Addons, "flannel")
		in.Is.API.HelmReleases = map[string]observed.HelmRelease{"kube-system/cilium": {
			Revision: 1, Status: observed.ReleaseDeployed, Chart: "cilium", Version: "1.2.0", Managed: true, Source: "chart",
			Values: "values",
		}}
	}
	return in
}

// Nodes become Ready only with the network, and kube-proxy goes only after the plugin runs everywhere.
func TestANetworkReleaseComesFirst(t *testing.T) {
	t.Parallel()
	const network = "release/kube-system/cilium"
	p, _ := Build(Input{Decide: withReleaseNetwork(bareCluster(1, 1))})
	if needs := stepByID(t, p, network).Needs; slices.Contains(needs, "await-workloads") {
		t.Errorf("the network needs %v", needs)
	}
	for _, s := range p.Steps {
		if s.Intent.Kind == step.NodeReady && !slices.Contains(s.Needs, network) {
			t.Errorf("%s needs %v", s.ID, s.Needs)
		}
	}
	if needs := stepByID(t, p, "await-workloads").Needs; !slices.Contains(needs, network) {
		t.Errorf("the wait needs %v", needs)
	}
	p, _ = Build(Input{Decide: goldenWorlds()["kube-proxy-replaced"]()})
	if needs := stepByID(t, p, string(step.RemoveKubeProxy)).Needs; !slices.Contains(needs, "await-workloads") {
		t.Errorf("the removal of kube-proxy needs %v", needs)
	}
}

// Every member has the images of a new version of the plugin before its pods are replaced, whether the plugin is a
// release or an addon.
func TestMembersGetImagesOfTheNetworkPluginFirst(t *testing.T) {
	t.Parallel()
	release := withReleaseNetwork(healthyCluster(1, 1))
	release.HelmReleases[0].Source = "other"
	addon := healthyCluster(1, 1)
	addon.Addons = maps.Clone(addon.Addons)
	addon.Addons["flannel"] = "other"
	for name, c := range map[string]struct {
		in      decide.Input
		applied string
	}{
		"cilium": {release, "release/kube-system/cilium"}, "flannel": {addon, "addon/flannel"},
	} {
		c.in.Want.Network.CNI.Version = "1.2.1"
		for _, h := range c.in.Want.Hosts() {
			c.in.Config[h.ID] = maps.Clone(c.in.Config[h.ID])
			c.in.Config[h.ID][desired.AddonImagesDigest] = desired.AddonImagesNote(c.in.Want)
		}
		p, _ := Build(Input{Decide: c.in})
		before := ancestorSteps(p)
		for _, h := range c.in.Want.Hosts() {
			fetch := stepByID(t, p, string(step.Fetch)+"/"+h.Hostname)
			if fetch.Reason != "the host lacks images of "+name+" 1.2.1" {
				t.Errorf("%+v", fetch)
			}
			if !before[c.applied][fetch.ID] {
				t.Errorf("%s does not wait for %s", c.applied, fetch.ID)
			}
		}
	}
}
