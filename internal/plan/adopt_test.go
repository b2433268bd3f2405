package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/decide"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan/step"
)

func TestAdoptStoresOrDeletesObjectsOnly(t *testing.T) {
	t.Parallel()
	object := func(kind, name string) observed.AddonObject {
		return observed.AddonObject{APIVersion: "cluster.k8s.io/v1alpha1", Kind: kind, Namespace: "kube-system", Name: name}
	}
	api := observed.API{
		Reached: observed.Yes, Record: &observed.Record{Cluster: "prod", ManifestDigest: "m"},
		Pool: &observed.Pool{Machines: []observed.Machine{{Namespace: "kube-system", Name: "pooled"}}},
		Inventories: map[string]observed.Inventory{desired.ClusterAddon: {Objects: []observed.AddonObject{
			object("Cluster", "prod"), object("Machine", "cp-1"), object("Machine", "pooled"), object("MachineSet", "set"),
		}}},
	}
	for name, c := range map[string]struct {
		objects bool
		change  func(*observed.API)
		steps   []string
		delete  []string
		wrong   string
	}{
		"to objects": {objects: true, steps: []string{"addon/cluster-objects"}},
		"to a manifest": {
			change: func(api *observed.API) { api.Addons = map[string]string{desired.ClusterAddon: "o"} },
			steps:  []string{"remove-addon/cluster-objects"}, delete: []string{"prod", "cp-1"},
		},
		"objects already": {
			objects: true, change: func(api *observed.API) { api.Addons = map[string]string{desired.ClusterAddon: "o"} },
		},
		"a manifest already": {},
		"no API":             {change: func(api *observed.API) { api.Reached = observed.No }, wrong: "does not answer"},
		"no record":          {change: func(api *observed.API) { api.Record = nil }, wrong: "install it"},
		"unknown Machines": {change: func(api *observed.API) {
			api.Pool = &observed.Pool{Problem: "no rights"}
		}, wrong: "Machines"},
		"a broken record": {change: func(api *observed.API) {
			api.Record = &observed.Record{Unreadable: map[string]string{observed.RecordAddons: "broken"}}
		}, wrong: "cannot be read"},
	} {
		in := decide.Input{Want: desired.Cluster{Name: "prod", Objects: c.objects}, Is: observed.World{API: api},
			Addons: map[string]string{desired.ClusterAddon: "o"}, CustomAddons: []string{desired.ClusterAddon}}
		if c.change != nil {
			c.change(&in.Is.API)
		}
		p, err := Adopt(in)
		if (err != nil) != (c.wrong != "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s: error %v", name, err)
		}
		var steps, deleted []string
		for _, s := range p.Steps {
			steps = append(steps, s.ID)
			if s.Intent.Kind == step.RemoveAddon {
				for _, o := range step.ParamsOf[step.RemoveAddonParams](s.Intent).Delete {
					deleted = append(deleted, o.Name)
				}
			}
		}
		if diff := cmp.Diff(c.steps, steps) + cmp.Diff(c.delete, deleted); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
