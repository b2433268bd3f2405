package addons

import (
	"testing"

	"kubeone/internal/model/desired"
)

// Pods of addons run on every host, even with a default node selector. Without one, addons do not change.
func TestAddonsAreExemptFromNodeSelectors(t *testing.T) {
	t.Parallel()
	want := want(func(c *desired.Cluster) { c.Controllers = &desired.Controllers{} })
	annotated := func(want desired.Cluster) (all, exempt int) {
		addons, err := Render(want)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range addons {
			for _, o := range a.Objects {
				if o.GetKind() != "Namespace" {
					continue
				}
				all++
				if selector, ok := o.GetAnnotations()[desired.NodeSelectorAnnotation]; ok && selector == "" {
					exempt++
				}
			}
		}
		return all, exempt
	}
	if all, exempt := annotated(want); all != 2 || exempt != 0 {
		t.Errorf("%d of %d namespaces", exempt, all)
	}
	want.Extras = []desired.Extra{{Plugins: []desired.AdmissionPlugin{{Name: desired.NodeSelectorPlugin}}}}
	if all, exempt := annotated(want); all != 2 || exempt != 2 {
		t.Errorf("%d of %d namespaces", exempt, all)
	}
}
