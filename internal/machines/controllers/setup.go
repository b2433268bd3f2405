package controllers

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"kubeone/api/cluster/v1alpha1"
	kubeone "kubeone/api/kubeone/v1alpha1"
	"kubeone/internal/machines/provider"
	"kubeone/internal/model/desired"
)

// Scheme returns a scheme with the kinds that the controllers read and write.
func Scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(s); err != nil {
		return nil, err
	}
	if err := v1alpha1.AddToScheme(s); err != nil {
		return nil, err
	}
	return s, kubeone.AddToScheme(s)
}

// Options configure the controllers.
type Options struct {
	// Parallel is the number of Machines that are reconciled at the same time; 0 means 16.
	Parallel int
	// SkipNameValidation lets several managers in one process use the same controller names, for tests.
	SkipNameValidation bool
	// Woken delivers Machines to reconcile again. Nil disables it.
	Woken <-chan event.GenericEvent
}

const defaultParallel = 16

// uidField is the cache index of Machines by UID, used to find the Machine of a Node.
const uidField = "metadata.uid"

// Add adds the controllers to a manager. The client of the manager must read from its cache.
func Add(ctx context.Context, m manager.Manager, providers provider.Set, o Options) error {
	if o.Parallel == 0 {
		o.Parallel = defaultParallel
	}
	if err := indexFields(ctx, m); err != nil {
		return err
	}
	events := m.GetEventRecorder("kubeone")
	byDeployment := handler.EnqueueRequestsFromMapFunc(deploymentsOf(m.GetClient()))
	options := func(parallel int) controller.Options {
		return controller.Options{MaxConcurrentReconciles: parallel, SkipNameValidation: &o.SkipNameValidation}
	}
	machines := &Machines{Client: m.GetClient(), Providers: providers, Events: events, Now: time.Now}
	machineBuilder := builder.ControllerManagedBy(m).Named("machine").For(&v1alpha1.Machine{}).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(machineOfNode(m.GetClient())))
	if o.Woken != nil {
		machineBuilder = machineBuilder.WatchesRawSource(source.Channel(o.Woken, &handler.EnqueueRequestForObject{}))
	}
	if err := machineBuilder.WithOptions(options(o.Parallel)).Complete(machines); err != nil {
		return err
	}
	if err := builder.ControllerManagedBy(m).Named("machineset").For(&v1alpha1.MachineSet{}).
		Watches(&v1alpha1.Machine{}, handler.EnqueueRequestsFromMapFunc(setsOfMachine(m.GetClient()))).
		WithOptions(options(1)).
		Complete(NewSets(m.GetClient(), m.GetAPIReader(), providers, events)); err != nil {
		return err
	}
	return builder.ControllerManagedBy(m).Named("machinedeployment").For(&v1alpha1.MachineDeployment{}).
		Watches(&v1alpha1.MachineSet{}, byDeployment).
		Watches(&v1alpha1.Machine{}, byDeployment).
		WithOptions(options(1)).
		Complete(NewDeployments(m.GetClient(), m.GetAPIReader(), providers, events))
}

// controllerUID returns the value of OwnerField for an object.
func controllerUID(o client.Object) []string {
	if owner := metav1.GetControllerOf(o); owner != nil {
		return []string{string(owner.UID)}
	}
	return []string{""}
}

func indexFields(ctx context.Context, m manager.Manager) error {
	for _, o := range []client.Object{&v1alpha1.Machine{}, &v1alpha1.MachineSet{}} {
		if err := m.GetFieldIndexer().IndexField(ctx, o, OwnerField, controllerUID); err != nil {
			return err
		}
	}
	return m.GetFieldIndexer().IndexField(ctx, &v1alpha1.Machine{}, uidField, func(o client.Object) []string {
		return []string{string(o.GetUID())}
	})
}

// machineOfNode returns a function that maps a Node to its Machine.
func machineOfNode(c client.Client) handler.MapFunc {
	return func(ctx context.Context, node client.Object) []reconcile.Request {
		uid := node.GetLabels()[desired.OwnerLabel]
		if uid == "" {
			return nil
		}
		var found v1alpha1.MachineList
		if err := c.List(ctx, &found, client.MatchingFields{uidField: uid}); err != nil {
			return nil // the cache is stopping
		}
		var out []reconcile.Request
		for i := range found.Items {
			out = append(out, newRequest(&found.Items[i]))
		}
		return out
	}
}

func newRequest(o client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)}
}

// setsOfMachine returns a function that maps a Machine to its set. It maps a Machine without an owner to all sets in
// its namespace, because any of them may adopt it.
func setsOfMachine(c client.Client) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		if owner := metav1.GetControllerOf(o); owner != nil {
			return []reconcile.Request{requestFor(o.GetNamespace(), owner.Name)}
		}
		var sets v1alpha1.MachineSetList
		if err := c.List(ctx, &sets, client.InNamespace(o.GetNamespace())); err != nil {
			return nil // the cache is stopping
		}
		var out []reconcile.Request
		for i := range sets.Items {
			out = append(out, newRequest(&sets.Items[i]))
		}
		return out
	}
}

// deploymentsOf returns a function that maps a set or Machine to its deployment. It maps an object without an owner to
// all deployments in its namespace.
func deploymentsOf(c client.Client) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		owner := metav1.GetControllerOf(o)
		if owner != nil && owner.Kind == "MachineSet" {
			set := &v1alpha1.MachineSet{}
			if err := c.Get(ctx, types.NamespacedName{Namespace: o.GetNamespace(), Name: owner.Name}, set); err != nil {
				return nil // it was deleted, or the cache is stopping
			}
			owner = metav1.GetControllerOf(set)
			if owner == nil {
				return nil
			}
		}
		if owner != nil {
			return []reconcile.Request{requestFor(o.GetNamespace(), owner.Name)}
		}
		var deployments v1alpha1.MachineDeploymentList
		if err := c.List(ctx, &deployments, client.InNamespace(o.GetNamespace())); err != nil {
			return nil // the cache is stopping
		}
		var out []reconcile.Request
		for i := range deployments.Items {
			out = append(out, newRequest(&deployments.Items[i]))
		}
		return out
	}
}

func requestFor(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}
