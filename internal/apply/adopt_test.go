package apply

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kubeone/internal/model/observed"
)

// mergingAPI notes merge patches.
type mergingAPI struct {
	API

	merged []string
}

func (a *mergingAPI) Merge(_ context.Context, o *unstructured.Unstructured, patch []byte) error {
	a.merged = append(a.merged, o.GetKind()+" "+o.GetName()+" "+string(patch))
	return nil
}

// The controller of a Cluster must be paused before a Machine is deleted whose host stays.
func TestStoredObjectsAreDeletedWithoutTheirHosts(t *testing.T) {
	t.Parallel()
	object := func(version, kind, name string) observed.AddonObject {
		return observed.AddonObject{APIVersion: version, Kind: kind, Namespace: "kube-system", Name: name}
	}
	api := &mergingAPI{}
	err := prepareDeletion(t.Context(), api, []observed.AddonObject{
		object("cluster.k8s.io/v1alpha1", "Machine", "cp-1"), object("cluster.k8s.io/v1alpha1", "Cluster", "prod"),
		object("cluster.x-k8s.io/v1beta1", "Machine", "other"), object("cluster.k8s.io/v1alpha1", "MachineSet", "set"),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`Cluster prod {"metadata":{"annotations":{"cluster.k8s.io/allow-deletion":"true","cluster.k8s.io/paused":""}}}`,
		`Machine cp-1 {"metadata":{"finalizers":null}}`,
	}
	if diff := cmp.Diff(want, api.merged); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
