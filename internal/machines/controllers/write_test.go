package controllers

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"kubeone/api/cluster/v1alpha1"
	"kubeone/internal/machines/provider"
)

// A cache may show a deployment that was deleted or replaced by one of the same name, but no longer its sets. A new set
// for it would block the other deployment.
func TestNothingIsMadeForADeploymentThatIsGone(t *testing.T) {
	t.Parallel()
	scheme, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	of := func(uid types.UID) *v1alpha1.MachineDeployment {
		labels := map[string]string{"app": "web"}
		md := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: uid}}
		one := int32(1)
		md.Spec.Replicas = &one
		md.Spec.Selector.MatchLabels, md.Spec.Template.ObjectMeta.Labels = labels, labels
		md.Spec.Template.Spec.Versions.Kubelet = "1.36.3"
		md.Spec.Template.Spec.ProviderSpec.Value.CloudProvider = "slow"
		return md
	}
	there := []client.Object{of("1")}
	for name, live := range map[string][]client.Object{"it is gone": nil, "it is another by now": {of("2")}} {
		cache := clientfake.NewClientBuilder().WithScheme(scheme).WithObjects(of("1")).
			WithStatusSubresource(of("1"), &v1alpha1.MachineSet{}).
			WithIndex(&v1alpha1.Machine{}, OwnerField, controllerUID).Build()
		seen := newExpectations()
		reconciled := func(live []client.Object, again time.Duration, sets, machines int) {
			t.Helper()
			r := NewDeployments(cache, clientfake.NewClientBuilder().WithScheme(scheme).WithObjects(live...).Build(),
				provider.Set{"slow": &slow{}}, events.NewFakeRecorder(100))
			r.expected = seen
			request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(of("1"))}
			if result, err := r.Reconcile(t.Context(), request); err != nil || result.RequeueAfter != again {
				t.Errorf("%s: %+v, %v", name, result, err)
			}
			var ofIt v1alpha1.MachineSetList
			var ofThem v1alpha1.MachineList
			if err := errors.Join(cache.List(t.Context(), &ofIt), cache.List(t.Context(), &ofThem)); err != nil ||
				len(ofIt.Items) != sets || len(ofThem.Items) != machines {
				t.Errorf("%s: %d sets, %d Machines, %v", name, len(ofIt.Items), len(ofThem.Items), err)
			}
		}
		reconciled(live, cacheRetryDelay, 0, 0)
		reconciled(there, 0, 1, 0)
		reconciled(live, cacheRetryDelay, 1, 0)
		reconciled(there, 0, 1, 1)
	}
}

// An invalid template is reported in the status and not retried.
func TestATemplateThatNoMachineCanHaveIsNamed(t *testing.T) {
	t.Parallel()
	scheme, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"app": "web"}
	var template v1alpha1.MachineTemplateSpec
	template.ObjectMeta.Labels = labels
	template.Spec.Versions.Kubelet, template.Spec.ProviderSpec.Value.CloudProvider = "1.36.3", "slow"
	template.Spec.ObjectMeta.Labels = map[string]string{"node-role.kubernetes.io/worker": ""}
	md := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "d"}}
	md.Spec.Selector.MatchLabels, md.Spec.Template = labels, template
	ms := &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "alone", UID: "s"}}
	ms.Spec.Selector.MatchLabels, ms.Spec.Template = labels, template
	c := clientfake.NewClientBuilder().WithScheme(scheme).WithObjects(md, ms).
		WithStatusSubresource(md, ms).WithIndex(&v1alpha1.Machine{}, OwnerField, controllerUID).Build()
	providers := provider.Set{"slow": &slow{}}
	for o, reconciler := range map[client.Object]reconcile.Reconciler{
		md: NewDeployments(c, c, providers, events.NewFakeRecorder(10)),
		ms: NewSets(c, c, providers, events.NewFakeRecorder(10)),
	} {
		key := client.ObjectKeyFromObject(o)
		result, err := reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
		if err != nil || result.RequeueAfter != 0 {
			t.Errorf("%s: %+v, %v", key, result, err)
		}
		if err := c.Get(t.Context(), key, o); err != nil {
			t.Fatal(err)
		}
	}
	const says = `"node-role.kubernetes.io/worker" is reserved: a Machine cannot set it`
	progressing := meta.FindStatusCondition(md.Status.Conditions, ConditionProgressing)
	if progressing == nil || progressing.Reason != reasonInvalid || !strings.Contains(progressing.Message, says) {
		t.Errorf("the deployment says %+v", progressing)
	}
	if ms.Status.ErrorMessage == nil || !strings.Contains(*ms.Status.ErrorMessage, says) {
		t.Errorf("the set says %+v", ms.Status)
	}
}
