package engine

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/kubernetes/scheme"

	"kubeone/internal/cluster/ssa"
	"kubeone/internal/model/problem"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
)

// undeclaredAddons returns a note about the custom addons that a plan removes because the manifest has no addons at
// all. The manifest of another operator may have them.
func (e *Engine) undeclaredAddons(p plan.Plan) []string {
	if e.cfg.Addons == nil || e.cfg.Addons.Declared {
		return nil
	}
	var names []string
	for _, s := range p.Steps {
		if s.Intent.Kind != step.RemoveAddon {
			continue
		}
		if name := step.ParamsOf[step.RemoveAddonParams](s.Intent).Addon; !e.cfg.Want.IsOwnAddon(name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("the manifest has no addons, so the plan removes %s; if another operator's manifest has "+
		"them, use that manifest", problem.List(names))}
}

// removedAddonAPIs returns a note for each object of an addon whose API version the desired Kubernetes version no
// longer serves, if the plan upgrades a control-plane host.
func (e *Engine) removedAddonAPIs(p plan.Plan) []string {
	if !slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return s.Intent.Kind == step.UpgradeControlPlane }) {
		return nil
	}
	var out []string
	for _, a := range e.addons {
		for i := range a.Objects {
			if release := removedIn(&a.Objects[i], e.cfg.Want.KubernetesVersion); release != "" {
				out = append(out, fmt.Sprintf("addon %s: %s uses %s, which was removed in Kubernetes %s; change the addon "+
					"before the upgrade", a.Name, ssa.Describe(&a.Objects[i]), a.Objects[i].GetAPIVersion(), release))
			}
		}
	}
	return out
}

// removedIn returns the release in which the API version of an object was removed, or "" if the Kubernetes version
// serves it. It knows the built-in kinds; custom resource definitions decide about the others.
func removedIn(o *unstructured.Unstructured, kubernetes string) string {
	kind, err := scheme.Scheme.New(o.GroupVersionKind())
	if err != nil {
		return ""
	}
	lifecycle, ends := kind.(interface{ APILifecycleRemoved() (major, minor int) })
	if !ends {
		return ""
	}
	major, minor := lifecycle.APILifecycleRemoved()
	removed, err := version.ParseGeneric(fmt.Sprintf("%d.%d", major, minor))
	want, wrong := version.ParseSemantic(kubernetes)
	if err != nil || wrong != nil || !want.AtLeast(removed) {
		return ""
	}
	return removed.String()
}
