package ssh

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"kubeone/api/cluster/v1alpha1"
	kubeone "kubeone/api/kubeone/v1alpha1"
	"kubeone/internal/apply"
	"kubeone/internal/cluster/drain"
	"kubeone/internal/machines/controllers"
	"kubeone/internal/machines/machine"
	"kubeone/internal/machines/provider"
	"kubeone/internal/model/desired"
	"kubeone/internal/plan"
	"kubeone/internal/testutil/clustertest"
)

// TestABudgetThatNeverYieldsIsNamed drains a Machine's Node for another kubelet, and for its deletion, while a
// disruption budget allows no eviction. The Machine names the budget, and is drained once it allows evictions.
func TestABudgetThatNeverYieldsIsNamed(t *testing.T) {
	t.Parallel()
	labels := map[string]string{"app": "db"}
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db-budget"},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}},
		Status:     policyv1.PodDisruptionBudgetStatus{ExpectedPods: 1, DesiredHealthy: 1, CurrentHealthy: 1},
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db-0", Labels: labels},
		Spec:       corev1.PodSpec{NodeName: "cp-1"},
	}
	api := clustertest.API(clustertest.Node(nil), pod, budget)
	m := &v1alpha1.Machine{Spec: specOf("")}
	m.Namespace, m.Name, m.UID, m.Finalizers = "ns", "m", "uid", []string{v1alpha1.MachineFinalizer}
	m.Spec.ProviderSpec.Value.CloudProvider = Name
	c := budgeted(t, m)
	p := New(c, c, &Site{Now: time.Now})
	p.settings.read = func(context.Context) (desiredSettings, error) { return desiredSettings{}, nil }
	p.work = func(ctx context.Context, _ *v1alpha1.Machine, h *kubeone.Host, _ aim, _ bool) error {
		if err := (drain.Drainer{Kubernetes: api}).Drain(ctx, h.Name, drain.Options{}); err != nil {
			return &apply.StepError{Step: plan.Step{ID: "drain/" + h.Name}, Err: err}
		}
		return nil
	}
	controller := &controllers.Machines{
		Client: c, Providers: provider.Set{Name: p}, Events: &events.FakeRecorder{}, Now: time.Now,
	}
	look := func() *v1alpha1.Machine {
		t.Helper()
		for range 2 { // the first call starts a run, and the second one gets its result
			if _, err := controller.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{
				Namespace: m.Namespace, Name: m.Name,
			}}); err != nil {
				t.Fatal(err)
			}
			p.runs.all.Wait()
		}
		is := &v1alpha1.Machine{}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(m), is); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		return is
	}
	named := func(is *v1alpha1.Machine, condition string) {
		t.Helper()
		got := meta.FindStatusCondition(is.Status.Conditions, condition)
		if got == nil || got.Reason != provider.Retrying || !strings.Contains(got.Message,
			"default/db-0 (PodDisruptionBudget db-budget requires 1 of 1 pods, so it never allows a disruption)") {
			t.Errorf("%s is %+v", condition, got)
		}
	}
	named(look(), machine.ConditionUpdating)
	if err := c.Delete(t.Context(), m.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	named(look(), machine.ConditionReady)

	if err := api.PolicyV1().PodDisruptionBudgets("default").Delete(t.Context(), "db-budget",
		metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := api.CoreV1().Pods("default").Delete(t.Context(), "db-0", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	p.runs.forgetRun(m.UID) // skips the retry delay
	if is := look(); is.Name != "" {
		t.Errorf("it is there: %+v", is.Status)
	}
}

// budgeted returns an API with a Machine whose Host and Node are cp-1.
func budgeted(t *testing.T, m *v1alpha1.Machine) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme, kubeone.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	h := &kubeone.Host{ObjectMeta: metav1.ObjectMeta{Name: "cp-1", UID: "host"}}
	h.Status = kubeone.HostStatus{State: kubeone.HostJoined, Claim: &kubeone.HostClaim{
		Namespace: m.Namespace, Name: m.Name, UID: m.UID,
	}}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "cp-1", Labels: map[string]string{desired.OwnerLabel: string(m.UID)},
	}}
	n.Status.NodeInfo.KubeletVersion = "v1.35.4"
	return clientfake.NewClientBuilder().WithScheme(scheme).
		WithStatusSubresource(&kubeone.Host{}, &v1alpha1.Machine{}, &corev1.Node{}).WithObjects(m, h, n).Build()
}
