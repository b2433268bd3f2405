package engine

import (
	"reflect"
	"testing"

	"kubeone/internal/addons"
	"kubeone/internal/componentconfig"
	"kubeone/internal/model/desired"
)

// TestANewerProgramChangesTheDaemonSetAlone plans one cluster with two programs whose own images differ. No host's
// configuration differs, nor the settings for Machines' hosts; only one object does.
func TestANewerProgramChangesTheDaemonSetAlone(t *testing.T) {
	t.Parallel()
	by := func(program string) desired.Cluster {
		return desired.Cluster{
			Name: "test", KubernetesVersion: "1.36.3",
			ControlPlane: []desired.Host{{ID: "cp-1", Role: desired.ControlPlane}},
			Workers:      []desired.Host{{ID: "w-1", Role: desired.Worker}},
			Controllers: &desired.Controllers{Arch: "amd64", Image: desired.Image{
				Name: "kubeone.k8c.io/kubeone:" + program, Digest: "sha256:" + program,
			}},
		}
	}
	is, next := by("older"), by("newer")
	if !reflect.DeepEqual(componentconfig.Digests(is, is.Hosts()...), componentconfig.Digests(next, next.Hosts()...)) {
		t.Error("hosts of the manifest would be reconfigured")
	}
	if SettingsRevision(is) != SettingsRevision(next) {
		t.Error("hosts of Machines would be reconfigured")
	}
	before, err := addons.Render(is)
	if err != nil {
		t.Fatal(err)
	}
	after, err := addons.Render(next)
	if err != nil || len(after) != len(before) {
		t.Fatalf("%d addons, and %d: %v", len(before), len(after), err)
	}
	var changed []string
	for i, a := range before {
		if same := a.Digest == after[i].Digest; same != (a.Name != desired.ControllersAddon) {
			t.Errorf("addon %s: the same %t", a.Name, same)
		}
		for n, object := range a.Objects {
			if !reflect.DeepEqual(object.Object, after[i].Objects[n].Object) {
				changed = append(changed, object.GetKind()+" "+object.GetName())
			}
		}
	}
	if !reflect.DeepEqual(changed, []string{"DaemonSet kubeone-controller"}) {
		t.Errorf("changed: %v", changed)
	}
}
