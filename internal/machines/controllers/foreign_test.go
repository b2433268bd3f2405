package controllers

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"kubeone/api/cluster/v1alpha1"
	"kubeone/internal/machines/provider"
)

const (
	ours   = "slow"
	theirs = "aws"
)

// ofProvider is the spec of a Machine.
func ofProvider(name string) v1alpha1.MachineSpec {
	var s v1alpha1.MachineSpec
	s.Versions.Kubelet = "1.36.3"
	s.ProviderSpec.Value.CloudProvider = name
	return s
}

// foreignLabels select the sets and Machines of these tests.
func foreignLabels() map[string]string { return map[string]string{"app": "web"} }

func deploymentOf(name string) *v1alpha1.MachineDeployment {
	md := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "md"}}
	md.Spec.Selector.MatchLabels, md.Spec.Template.ObjectMeta.Labels = foreignLabels(), foreignLabels()
	md.Spec.Template.Spec = ofProvider(name)
	return md
}

// setOfProvider returns a set of the owner; nil is no owner.
func setOfProvider(name, provider string, owner client.Object) *v1alpha1.MachineSet {
	ms := &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID(name), Labels: foreignLabels(),
	}}
	ms.Spec.Selector.MatchLabels, ms.Spec.Template.ObjectMeta.Labels = foreignLabels(), foreignLabels()
	ms.Spec.Template.Spec = ofProvider(provider)
	if owner != nil {
		ms.OwnerReferences = []metav1.OwnerReference{newOwnerReference(owner, "MachineDeployment")}
	}
	return ms
}

func machineOfProvider(name, provider string, owner client.Object) *v1alpha1.Machine {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID(name), Labels: foreignLabels(),
	}}
	m.Spec = ofProvider(provider)
	if owner != nil {
		m.OwnerReferences = []metav1.OwnerReference{newOwnerReference(owner, "MachineSet")}
	}
	return m
}

// writeCounter records the writes to an API.
type writeCounter struct{ writes []string }

func (w *writeCounter) functions() interceptor.Funcs {
	note := func(what string, o client.Object) { w.writes = append(w.writes, what+" "+o.GetName()) }
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			note("create", o)
			return c.Create(ctx, o, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			note("delete", o)
			return c.Delete(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch,
			opts ...client.PatchOption) error {
			note("patch", o)
			return c.Patch(ctx, o, p, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption) error {
			note("patch "+sub+" of", o)
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	}
}

// eventOf returns the next recorded Event, or "".
func eventOf(recorder *events.FakeRecorder) string {
	select {
	case said := <-recorder.Events:
		return said
	default:
		return ""
	}
}

// A family with a member of an unknown provider belongs to another program as a whole. Nothing is written, adopted or
// released, and an Event says so.
func TestFamiliesOfOtherProgramsAreLeftAlone(t *testing.T) {
	t.Parallel()
	scheme, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	md := deploymentOf(ours)
	released := machineOfProvider("m-1", theirs, setOfProvider("web-1", ours, nil))
	released.Labels = nil // the set no longer selects it
	for name, c := range map[string]struct {
		objects []client.Object
		event   string
		writes  []string
	}{
		"a deployment": {
			[]client.Object{deploymentOf(theirs), setOfProvider("web-1", theirs, md),
				machineOfProvider("m-1", theirs, nil)},
			`kubeone does not support the provider "aws"`, nil,
		},
		"a set of a deployment of ours": {
			[]client.Object{deploymentOf(ours), setOfProvider("web-0", ours, nil), setOfProvider("web-1", theirs, md)},
			`its MachineSet web-1: kubeone does not support the provider "aws"`, nil,
		},
		"a Machine of a deployment of ours": {
			[]client.Object{deploymentOf(ours), setOfProvider("web-1", ours, md),
				machineOfProvider("m-0", ours, nil),
				machineOfProvider("m-1", theirs, setOfProvider("web-1", ours, nil))},
			`its Machine m-1: kubeone does not support the provider "aws"`, nil,
		},
		"a Machine with other labels than its set of ours": {
			[]client.Object{deploymentOf(ours), setOfProvider("web-1", ours, md), released},
			`its Machine m-1: kubeone does not support the provider "aws"`, nil,
		},
		"a set without a deployment": {
			[]client.Object{setOfProvider("web-1", theirs, nil), machineOfProvider("m-1", theirs, nil)},
			`kubeone does not support the provider "aws"`, nil,
		},
		"a Machine of a set of ours": {
			[]client.Object{setOfProvider("web-1", ours, nil),
				machineOfProvider("m-1", theirs, setOfProvider("web-1", ours, nil))},
			`its Machine m-1: kubeone does not support the provider "aws"`, nil,
		},
		"an orphan that a set of ours selects": { // it makes a Machine of its own instead
			[]client.Object{setOfProvider("web-1", ours, nil), machineOfProvider("m-1", theirs, nil)}, "",
			[]string{"create web-1-", "patch status of web-1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			counter := &writeCounter{}
			api := clientfake.NewClientBuilder().WithScheme(scheme).WithObjects(c.objects...).
				WithStatusSubresource(&v1alpha1.MachineDeployment{}, &v1alpha1.MachineSet{}).
				WithIndex(&v1alpha1.Machine{}, OwnerField, controllerUID).
				WithInterceptorFuncs(counter.functions()).Build()
			recorder := events.NewFakeRecorder(100)
			providers := provider.Set{ours: &slow{}}
			request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(c.objects[0])}
			var of reconcile.Reconciler = NewSets(api, api, providers, recorder)
			if _, ok := c.objects[0].(*v1alpha1.MachineDeployment); ok {
				of = NewDeployments(api, api, providers, recorder)
			}
			result, err := of.Reconcile(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			for i, w := range counter.writes { // names of Machines are random
				if strings.HasPrefix(w, "create web-1-") {
					counter.writes[i] = "create web-1-"
				}
			}
			if diff := cmp.Diff(c.writes, counter.writes); diff != "" {
				t.Errorf("what it wrote (-want +got):\n%s", diff)
			}
			if c.event == "" {
				return
			}
			if result != (reconcile.Result{}) {
				t.Errorf("it comes back: %+v", result)
			}
			if said := eventOf(recorder); !strings.Contains(said,
				"OtherProvider kubeone ignores this object: "+c.event) {
				t.Errorf("the Event says %s", said)
			}
		})
	}
}
