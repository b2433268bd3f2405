package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kubeone/internal/addons"
	"kubeone/internal/decide/identity"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
)

func TestRemovedAddonsOfAManifestWithoutAddonsAreNoted(t *testing.T) {
	t.Parallel()
	p := plan.Plan{Steps: []plan.Step{
		{Intent: step.With(step.RemoveAddonParams{Addon: desired.DNSBudgetAddon})},
		{Intent: step.With(step.RemoveAddonParams{Addon: "ingress"})},
	}}
	for name, c := range map[string]struct {
		sources *addons.Sources
		want    []string
	}{
		"unknown":  {nil, nil},
		"declared": {&addons.Sources{Declared: true}, nil},
		"without": {&addons.Sources{}, []string{"the manifest has no addons, so the plan removes ingress; if another " +
			"operator's manifest has them, use that manifest"}},
	} {
		e := &Engine{cfg: Config{Addons: c.sources}}
		if diff := cmp.Diff(c.want, e.undeclaredAddons(p)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if notes := (&Engine{cfg: Config{Addons: &addons.Sources{}}}).undeclaredAddons(plan.Plan{}); len(notes) > 0 {
		t.Errorf("nothing is removed: %q", notes)
	}
}

func TestRemovedAPIsOfAddonsAreNoted(t *testing.T) {
	t.Parallel()
	object := func(apiVersion, kind string) unstructured.Unstructured {
		return unstructured.Unstructured{Object: map[string]any{
			"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": "a"},
		}}
	}
	e := &Engine{addons: []addons.Addon{{Name: "web", Objects: []unstructured.Unstructured{
		object("networking.k8s.io/v1beta1", "ServiceCIDR"), object("networking.k8s.io/v1", "ServiceCIDR"),
		object("example.com/v1", "Unknown"),
	}}}}
	upgrade := plan.Plan{Steps: []plan.Step{{Intent: step.Intent{Kind: step.UpgradeControlPlane}}}}
	for version, want := range map[string][]string{
		"1.36.3": nil,
		"1.37.0": {"addon web: ServiceCIDR a uses networking.k8s.io/v1beta1, which was removed in Kubernetes 1.37; change " +
			"the addon before the upgrade"},
	} {
		e.cfg.Want.KubernetesVersion = version
		if diff := cmp.Diff(want, e.removedAddonAPIs(upgrade)); diff != "" {
			t.Errorf("%s: %s", version, diff)
		}
		if notes := e.removedAddonAPIs(plan.Plan{}); len(notes) > 0 {
			t.Errorf("%s without an upgrade: %q", version, notes)
		}
	}
}

// Whether the cluster has the DNS cache decides about kubelets. Unknown never means that it has none.
func TestKubeletsStayWhileTheDNSCacheIsUnknown(t *testing.T) {
	t.Parallel()
	unreadable := &observed.Record{Unreadable: map[string]string{observed.RecordAddons: "it is an x"}}
	for name, c := range map[string]struct {
		manifest *bool
		api      observed.API
		compared bool
	}{
		"an API that does not answer": {nil, observed.API{Reached: observed.No}, false},
		"an unreadable record":        {nil, observed.API{Reached: observed.Yes, Record: unreadable}, false},
		"a cluster without the cache": {nil, observed.API{Reached: observed.Yes}, true},
		"off, no answer":              {new(false), observed.API{Reached: observed.No}, true},
	} {
		want := desired.Cluster{NodeLocalDNS: c.manifest, Workers: []desired.Host{{ID: "a"}}}
		want.Network.ServiceSubnet = "10.96.0.0/12"
		e := &Engine{cfg: Config{Want: want}, digests: map[identity.ProbeKey]map[string]string{
			"a": {"kubelet": "k", "kernel": "x"},
		}}
		digests := e.configDigests(identity.Result{
			Want: want, Is: observed.World{API: c.api}, Reached: map[string]identity.ProbeKey{"a": "a"},
		})
		if _, compared := digests["a"]["kubelet"]; compared != c.compared || digests["a"]["kernel"] != "x" {
			t.Errorf("%s: %v", name, digests)
		}
	}
}
