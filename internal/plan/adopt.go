package plan

import (
	"errors"

	"kubeone/internal/decide"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan/step"
)

// Adopt plans the change of the form of the desired state. For a Cluster and its Machines, it stores them; for a
// manifest, it deletes the stored ones. Nothing that runs changes. The plan is empty if the cluster has that form.
func Adopt(in decide.Input) (Plan, error) {
	b, api := newBuilder(in, "adopt"), in.Is.API
	switch {
	case api.Reached != observed.Yes:
		return b.plan, errors.New("the API of the cluster does not answer, so the form of its desired state is unknown")
	case api.Record == nil:
		return b.plan, errors.New("the cluster has no record of kubeone; install it with kubeone apply")
	case api.Record.IsUnreadable(observed.RecordAddons):
		return b.plan, errors.New("the record of the cluster cannot be read; see kubeone status")
	}
	if pool := api.Pool; pool != nil && (pool.Problem != "" || pool.More) {
		return b.plan, errors.New("the Machines of the cluster cannot be read; see kubeone status")
	}
	hasObjects := api.Addons[desired.ClusterAddon] != ""
	switch {
	case in.Want.Objects && !hasObjects:
		b.applyAddon(desired.ClusterAddon, nil)
	case !in.Want.Objects && hasObjects:
		deleted := describingObjects(api)
		b.onCluster("remove-addon/"+desired.ClusterAddon, Step{
			Intent: step.With(step.RemoveAddonParams{Addon: desired.ClusterAddon, Delete: deleted}), Action: Remove,
			Title: "delete the Cluster and its Machines", Reason: "a manifest describes the cluster now",
			Changes: describeDeletions(deleted, nil),
		})
	}
	return b.plan, nil
}

// describingObjects returns the stored Cluster and the Machines of its hosts. Machines of the pool, their owners and
// Hosts are not among them: they describe what the controllers run.
func describingObjects(api observed.API) []observed.AddonObject {
	pool := map[string]bool{}
	if api.Pool != nil {
		for _, m := range api.Pool.Machines {
			pool[m.ID()] = true
		}
	}
	var out []observed.AddonObject
	for _, o := range api.Inventories[desired.ClusterAddon].Objects {
		if o.Kind == "Cluster" || o.Kind == "Machine" && !pool[o.Namespace+"/"+o.Name] {
			out = append(out, o)
		}
	}
	return out
}
