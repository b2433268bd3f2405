package controllers

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"kubeone/api/cluster/v1alpha1"
	"kubeone/internal/rollout"
)

// A cache may tell of a deployment that is gone by now, or that another one of its name has replaced, and whose sets it
// has seen go: what is made for it would stand in the other one's way.
func TestNothingIsMadeForADeploymentThatIsGone(t *testing.T) {
	t.Parallel()
	scheme, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	of := func(uid types.UID) *v1alpha1.MachineDeployment {
		labels := map[string]string{"app": "web"}
		md := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: uid}}
		md.Spec.Replicas = new(int32)
		md.Spec.Selector.MatchLabels, md.Spec.Template.ObjectMeta.Labels = labels, labels
		md.Spec.Template.Spec.Versions.Kubelet = "1.36.3"
		return md
	}
	for name, c := range map[string]struct {
		live []client.Object
		sets int
	}{
		"it is there":          {[]client.Object{of("1")}, 1},
		"it is gone":           {nil, 0},
		"it is another by now": {[]client.Object{of("2")}, 0},
	} {
		cache := clientfake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(of("1"), &v1alpha1.MachineSet{}).
			WithIndex(&v1alpha1.Machine{}, OwnerField, controllerUID).WithObjects(of("1")).Build()
		live := clientfake.NewClientBuilder().WithScheme(scheme).WithObjects(c.live...).Build()
		r := NewDeployments(cache, live, func(_, _ v1alpha1.MachineSpec) rollout.Change { return rollout.InPlace },
			events.NewFakeRecorder(100))
		result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(of("1"))})
		if err != nil || c.sets == 0 && result.RequeueAfter != settling {
			t.Errorf("%s: %+v, %v", name, result, err)
		}
		var sets v1alpha1.MachineSetList
		if err := cache.List(t.Context(), &sets); err != nil || len(sets.Items) != c.sets {
			t.Errorf("%s: %d sets, %v", name, len(sets.Items), err)
		}
	}
}
