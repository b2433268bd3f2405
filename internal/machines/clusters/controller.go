// Package clusters runs the controller of Clusters. It brings a cluster into the state that its Cluster and the
// Machines of its hosts describe, with the plans, locks and rules of "kubeone apply".
package clusters

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"kubeone/api/cluster/v1alpha1"
	"kubeone/internal/apply"
	"kubeone/internal/engine"
	"kubeone/internal/plan"
)

// Session is an open cluster. Its methods observe and change the cluster as the engine does.
type Session interface {
	// HostID returns the ID of the host with this address.
	HostID(address string) (string, error)
	// Propose returns the plan for a request. It waits until members that are starting are ready.
	Propose(ctx context.Context, r engine.Request) (engine.Proposal, error)
	// CarryOut carries out a proposal.
	CarryOut(ctx context.Context, p engine.Proposal, o engine.RunOptions) (engine.Proposal, error)
	// PlanText returns the plan as "kubeone plan" prints it.
	PlanText(p engine.Proposal) string
	Close()
}

// Opener opens the cluster that these objects describe: a Cluster and its Machines, as JSON. An error means that the
// objects are wrong.
type Opener func(ctx context.Context, name string, objects []byte) (Session, error)

// Controller reconciles Clusters.
type Controller struct {
	// Client writes. Reader reads from the API and not from a cache: a plan is made of the newest objects.
	Client client.Client
	Reader client.Reader
	Events events.EventRecorder
	Open   Opener
	// Emit receives every event of every run; nil disables it.
	Emit func(apply.Event)
}

const (
	// checkEvery is the interval between checks of a cluster in its desired state.
	checkEvery = 5 * time.Minute
	// retryAfter is the time until a cluster is checked again that could not be brought into its desired state.
	retryAfter = 30 * time.Second
	// maxParallel is the number of Clusters that are reconciled at the same time.
	maxParallel = 16
)

// Add adds the controller to a manager.
func Add(m manager.Manager, open Opener, emit func(apply.Event), skipNameValidation bool) error {
	c := &Controller{
		Client: m.GetClient(), Reader: m.GetAPIReader(), Events: m.GetEventRecorder("kubeone"), Open: open, Emit: emit,
	}
	return builder.ControllerManagedBy(m).Named("cluster").For(&v1alpha1.Cluster{}).
		Watches(&v1alpha1.Machine{}, handler.EnqueueRequestsFromMapFunc(clustersOfMachine(m.GetClient()))).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: maxParallel, SkipNameValidation: &skipNameValidation,
		}).Complete(c)
}

// clustersOfMachine returns a function that finds the Clusters in the namespace of a Machine of the provider static.
func clustersOfMachine(c client.Client) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		m, ok := o.(*v1alpha1.Machine)
		if !ok || !isStatic(m) {
			return nil
		}
		var all v1alpha1.ClusterList
		if err := c.List(ctx, &all, client.InNamespace(m.Namespace)); err != nil {
			return nil // the Cluster is reconciled again anyway
		}
		var out []reconcile.Request
		for i := range all.Items {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all.Items[i])})
		}
		return out
	}
}

// Reconcile brings one cluster into its desired state, or says in the status of its Cluster why it cannot.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	// The Machines first: who deletes them without their hosts, as kubeone adopt does, pauses the Cluster before that.
	var all v1alpha1.MachineList
	if err := c.Reader.List(ctx, &all, client.InNamespace(request.Namespace)); err != nil {
		return reconcile.Result{}, err
	}
	is := &v1alpha1.Cluster{}
	if err := c.Reader.Get(ctx, request.NamespacedName, is); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if _, paused := is.Annotations[v1alpha1.PausedAnnotation]; paused || is.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	hosts := hostsOf(all.Items)
	s, err := c.open(ctx, is, hosts)
	if err != nil {
		return reconcile.Result{RequeueAfter: checkEvery},
			c.writeStatus(ctx, is, func(status *v1alpha1.ClusterStatus) {
				status.ObservedGeneration, status.PendingPlan = is.Generation, nil
				setFailed(status, reasonInvalid, err.Error())
			})
	}
	defer s.Close()
	if err := c.protect(ctx, hosts); err != nil {
		return reconcile.Result{}, err
	}
	m := leaving(hosts)
	if m == nil {
		return c.reconcileOpen(ctx, is, s, "")
	}
	id, err := hostID(s, m)
	if err != nil {
		return reconcile.Result{RequeueAfter: checkEvery}, c.refuseDeletion(ctx, m, err)
	}
	if done, result, err := c.remove(ctx, is, s, m, id); done || err != nil {
		return result, err
	}
	return c.reconcileOpen(ctx, is, s, id)
}

// remove makes the host of a Machine leave the cluster. It returns false if that is refused; the status of the Machine
// then says why.
func (c *Controller) remove(ctx context.Context, is *v1alpha1.Cluster, s Session, m *v1alpha1.Machine, id string) (
	bool, reconcile.Result, error) {
	p, err := s.Propose(ctx, engine.Remove{Host: id})
	switch {
	case ctx.Err() != nil:
		return true, reconcile.Result{}, ctx.Err()
	case err != nil || nextStep(is, p, nil) == awaitPerson:
		_, why := whyPerson(p, err)
		return false, reconcile.Result{}, c.refuseDeletion(ctx, m, errors.New(why))
	case len(p.Plan.Steps) == 0:
		return true, reconcile.Result{RequeueAfter: time.Second}, c.release(ctx, m)
	}
	if err := c.refuseDeletion(ctx, m, nil); err != nil {
		return true, reconcile.Result{}, err
	}
	result, err := c.carryOutProposal(ctx, is, s, p, nil)
	return true, result, err
}

func (c *Controller) open(ctx context.Context, is *v1alpha1.Cluster, hosts []*v1alpha1.Machine) (Session, error) {
	objects, err := encodeObjects(is, hosts)
	if err != nil {
		return nil, err
	}
	return c.Open(ctx, is.Name, objects)
}

// reconcileOpen proposes an apply and, if nothing forbids it, carries it out. leaving is the ID of a host that is to
// leave the cluster and cannot yet. It stays a host of the cluster, but does not join again.
func (c *Controller) reconcileOpen(ctx context.Context, is *v1alpha1.Cluster, s Session, leaving string) (
	reconcile.Result, error) {
	p, err := s.Propose(ctx, engine.Apply{})
	if ctx.Err() != nil {
		return reconcile.Result{}, ctx.Err()
	}
	if slices.ContainsFunc(p.Plan.Steps, func(s plan.Step) bool {
		return leaving != "" && s.Host == leaving && s.Intent.Kind.Joins()
	}) {
		return reconcile.Result{RequeueAfter: retryAfter}, nil
	}
	return c.carryOutProposal(ctx, is, s, p, err)
}

// carryOutProposal carries out a plan if nothing forbids it. err is the error that came with the proposal.
func (c *Controller) carryOutProposal(ctx context.Context, is *v1alpha1.Cluster, s Session, p engine.Proposal,
	err error) (reconcile.Result, error) {
	next := nextStep(is, p, err)
	text := ""
	if next == awaitApproval {
		text = s.PlanText(p)
	}
	if written := c.writeStatus(ctx, is, func(status *v1alpha1.ClusterStatus) {
		setStatus(status, is.Generation, p, err, next, text)
	}); written != nil {
		return reconcile.Result{}, written
	}
	switch next {
	case rest:
		return reconcile.Result{RequeueAfter: checkEvery}, nil
	case awaitPerson, awaitApproval:
		return reconcile.Result{RequeueAfter: retryAfter}, nil
	}
	c.Events.Eventf(is, nil, corev1.EventTypeNormal, "Applying", "Reconcile", "carrying out a plan of %d steps",
		len(p.Plan.Steps))
	// When the process ends, running steps finish and no others begin.
	after, err := s.CarryOut(context.WithoutCancel(ctx), p, engine.RunOptions{Stop: ctx.Done(), Emit: c.Emit})
	return c.finish(ctx, is, after, err)
}

// finish writes the result of a run.
func (c *Controller) finish(ctx context.Context, is *v1alpha1.Cluster, after engine.Proposal, err error) (
	reconcile.Result, error) {
	switch {
	case ctx.Err() != nil:
		return reconcile.Result{}, ctx.Err() // another process goes on
	case errors.Is(err, engine.ErrWorldChanged):
		return reconcile.Result{RequeueAfter: time.Second}, nil
	case err != nil:
		c.Events.Eventf(is, nil, corev1.EventTypeWarning, "ApplyFailed", "Reconcile", "%s", bound(err.Error()))
		written := c.writeStatus(ctx, is, func(status *v1alpha1.ClusterStatus) {
			setReady(status, is.Generation, false, "ApplyFailed", err.Error())
		})
		return reconcile.Result{RequeueAfter: retryAfter}, written
	}
	c.Events.Eventf(is, nil, corev1.EventTypeNormal, "Applied", "Reconcile", "the plan was carried out")
	return reconcile.Result{RequeueAfter: time.Second}, c.writeStatus(ctx, is, func(status *v1alpha1.ClusterStatus) {
		setStatus(status, is.Generation, after, nil, nextStep(is, after, nil), "")
	})
}

// writeStatus changes the status of the Cluster in the API, if the change makes a difference.
func (c *Controller) writeStatus(ctx context.Context, is *v1alpha1.Cluster,
	change func(*v1alpha1.ClusterStatus)) error {
	before := is.DeepCopy()
	change(&is.Status)
	if equality.Semantic.DeepEqual(before.Status, is.Status) {
		return nil
	}
	if from, to := before.Status.Phase, is.Status.Phase; from != to {
		c.Events.Eventf(is, nil, corev1.EventTypeNormal, string(to), "Reconcile", "%s", describe(is.Status))
	}
	err := c.Client.Status().Patch(ctx, is, client.MergeFrom(before))
	if err != nil {
		return fmt.Errorf("write the status of the Cluster %s: %w", is.Name, client.IgnoreNotFound(err))
	}
	return nil
}
