package ssh

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"kubeone/api/cluster/v1alpha1"
	kubeone "kubeone/api/kubeone/v1alpha1"
	"kubeone/internal/text/phrase"
)

// HostFinalizer is on every Host. It keeps a claimed Host until its Machine has returned it.
const HostFinalizer = "kubeone.k8c.io/host"

// RemovalFinalizer is on a Host that an operator is removing. It keeps the Host until the cluster key is revoked on the
// machine. No Machine can claim the Host meanwhile.
const RemovalFinalizer = "kubeone.k8c.io/removal"

// hosts reconciles Hosts that no Machine handles. A Machine may have disappeared without returning its host, for
// example after etcd was restored or its finalizer was removed manually.
type hosts struct{ *Provider }

// AddTo adds the provider and the controller of Hosts to a manager.
func (p *Provider) AddTo(m manager.Manager, skipNameValidation bool) error {
	if err := m.Add(p); err != nil {
		return err
	}
	return builder.ControllerManagedBy(m).Named("host").For(&kubeone.Host{}).
		Watches(&v1alpha1.Machine{}, handler.EnqueueRequestsFromMapFunc(p.hostsOf)).
		WithOptions(controller.Options{SkipNameValidation: &skipNameValidation}).
		Complete(hosts{p})
}

// hostsOf maps a Machine to its Host.
func (p *Provider) hostsOf(ctx context.Context, o client.Object) []reconcile.Request {
	m, ok := o.(*v1alpha1.Machine)
	if !ok {
		return nil
	}
	h, err := p.hostOf(ctx, p.client, m)
	if err != nil || h == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(h)}}
}

// Reconcile implements reconcile.Reconciler.
func (r hosts) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	h := &kubeone.Host{}
	if err := r.client.Get(ctx, request.NamespacedName, h); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if h.DeletionTimestamp != nil && h.Status.Claim == nil {
		return reconcile.Result{}, r.changeFinalizer(ctx, h, controllerutil.RemoveFinalizer)
	}
	if h.DeletionTimestamp == nil {
		if err := r.changeFinalizer(ctx, h, controllerutil.AddFinalizer); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
	}
	if h.Status.Claim == nil {
		if h.DeletionTimestamp == nil && h.Status.State == "" {
			return reconcile.Result{}, client.IgnoreNotFound(r.setState(ctx, h, kubeone.HostFree, ""))
		}
		switch {
		case r.owners.isUnowned(h.UID):
		case r.isFree(h):
			return r.checkOwner(ctx, h)
		case h.Status.State == kubeone.HostFailed:
			return reconcile.Result{RequeueAfter: max(retryDelay(h, r.site.Now()), time.Second)}, nil
		}
		return reconcile.Result{}, nil
	}
	m := &v1alpha1.Machine{}
	key := client.ObjectKey{Namespace: h.Status.Claim.Namespace, Name: h.Status.Claim.Name}
	switch err := r.live.Get(ctx, key, m); {
	case err == nil && m.UID == h.Status.Claim.UID:
		return reconcile.Result{}, nil // the Machine's controller handles both
	case err != nil && !apierrors.IsNotFound(err):
		return reconcile.Result{}, err
	}
	return r.returnHost(ctx, h)
}

// returnHost returns the host of a Machine that no longer exists to the pool.
func (r hosts) returnHost(ctx context.Context, h *kubeone.Host) (reconcile.Result, error) {
	if err := r.setState(ctx, h, kubeone.HostReturning, "its Machine no longer exists"); err != nil {
		return reconcile.Result{}, err
	}
	machine := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: h.Status.Claim.Namespace, Name: h.Status.Claim.Name, UID: h.Status.Claim.UID,
	}}
	if done, err := r.ensureAim(ctx, machine, h, aim{reset: true, what: "return"}); !done {
		before := h.DeepCopy()
		h.Status.Message = phrase.Shorten("its Machine no longer exists: "+err.Error(), maxMessageLength)
		if h.Status.Message != before.Status.Message {
			err := r.client.Status().Patch(ctx, h, client.MergeFrom(before))
			return reconcile.Result{RequeueAfter: retryReturn}, err
		}
		return reconcile.Result{RequeueAfter: retryReturn}, nil
	}
	r.runs.forgetRun(machine.UID)
	return reconcile.Result{}, r.releaseHost(ctx, h, kubeone.HostFree, "")
}

// retryReturn is the requeue delay after returning a host has failed.
const retryReturn = 5 * time.Second

func (r hosts) changeFinalizer(ctx context.Context, h *kubeone.Host, change func(client.Object, string) bool) error {
	before := h.DeepCopy()
	if !change(h, HostFinalizer) {
		return nil
	}
	err := r.client.Patch(ctx, h, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	h.Status = before.Status
	return err
}
