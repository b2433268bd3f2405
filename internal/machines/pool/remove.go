package pool

import (
	"context"
	"fmt"

	"golang.org/x/crypto/ssh"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"kubeone/api/cluster/v1alpha1"
	kubeone "kubeone/api/kubeone/v1alpha1"
	"kubeone/internal/cluster/apicall"
	"kubeone/internal/host"
	provider "kubeone/internal/machines/provider/ssh"
)

// Remove removes a Host from the pool: it revokes the cluster key on the host and deletes the object. It fails if the
// Host belongs to a Machine.
//
// Without force, it also fails if the login fails, or if the Host has not been reset since its Machine was deleted.
// With force, the key stays on a host that cannot be reached, and unreached says why.
func (a *Adder) Remove(ctx context.Context, name string, force bool) (unreached, err error) {
	h := &kubeone.Host{}
	switch err := a.Client.Get(ctx, client.ObjectKey{Name: name}, h); {
	case meta.IsNoMatchError(err):
		return nil, errNoPool
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("there is no Host %s; list the Hosts with kubeone host list", name)
	case err != nil:
		return nil, apicall.Wrap("read the Host "+name, "", err)
	}
	if err := a.checkUnclaimed(ctx, h, force); err != nil {
		return nil, err
	}
	if err := a.startDeletion(ctx, h); err != nil {
		return nil, apicall.Wrap("delete the Host "+name, "", err)
	}
	if err := a.revokeFromHost(ctx, h); err != nil {
		if !force {
			return nil, fmt.Errorf("Host %s is being deleted, but the cluster key could not be removed from the host: "+
				"%w; try again, or use --force to leave the key there", name, err)
		}
		unreached = err
	}
	return unreached, apicall.Wrap("delete the Host "+name, "", a.finishDeletion(ctx, name))
}

// checkUnclaimed returns an error if a Machine has claimed the Host. Without force, it also fails if a deleted Machine
// has not returned the Host.
func (a *Adder) checkUnclaimed(ctx context.Context, h *kubeone.Host, force bool) error {
	c := h.Status.Claim
	if c == nil {
		return nil
	}
	m := &v1alpha1.Machine{}
	switch err := a.Client.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: c.Name}, m); {
	case err == nil && m.UID == c.UID:
		return fmt.Errorf("Machine %s/%s uses Host %s; to return it, run kubectl -n %s delete machine %s", c.Namespace,
			c.Name, h.Name, c.Namespace, c.Name)
	case err != nil && !apierrors.IsNotFound(err):
		return apicall.Wrap("read its Machine", "", err)
	case !force:
		return fmt.Errorf("Host %s has not been reset since its Machine %s/%s was deleted (%s); if the host is "+
			"permanently off or was reinstalled, remove it with --force", h.Name, c.Namespace, c.Name, h.Status.Message)
	}
	return nil
}

// revokeFromHost logs in with the cluster key and removes it from the host. It does nothing if another Host in the pool
// is the same machine.
func (a *Adder) revokeFromHost(ctx context.Context, h *kubeone.Host) error {
	all, err := List(ctx, a.Client)
	if err != nil {
		return err
	}
	for i := range all {
		if other := &all[i]; other.Name != h.Name && sameConnection(other, h) && other.Spec.User == h.Spec.User {
			return nil
		}
	}
	at, err := provider.TargetOf(h)
	if err != nil {
		return err
	}
	pool := a.loginPool()
	defer func() { _ = pool.Close() }() // a failed close has no effect
	return revokeKey(ctx, pool.Host(at), at.User, a.Key.PublicKey())
}

func revokeKey(ctx context.Context, h host.Host, user string, key ssh.PublicKey) error {
	_, err := h.Run(ctx, host.Cmd{
		Name: "remove the cluster's key", Script: revokeScript, Args: []string{user, encodeKey(key)},
	})
	return err
}

// startDeletion deletes the Host in the version that was read. A finalizer keeps the object until finishDeletion, so
// that no Machine can claim it meanwhile.
func (a *Adder) startDeletion(ctx context.Context, h *kubeone.Host) error {
	before := h.DeepCopy()
	if h.DeletionTimestamp == nil && controllerutil.AddFinalizer(h, provider.RemovalFinalizer) {
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if err := a.Client.Patch(ctx, h, patch); err != nil {
			return err
		}
	}
	if h.DeletionTimestamp != nil {
		return nil
	}
	preconditions := client.Preconditions{UID: &h.UID, ResourceVersion: &h.ResourceVersion}
	return client.IgnoreNotFound(a.Client.Delete(ctx, h, preconditions))
}

// finishDeletion removes the finalizers of a deleted Host. It includes the finalizer of the controllers, because they
// may not be running.
func (a *Adder) finishDeletion(ctx context.Context, name string) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		h := &kubeone.Host{}
		if err := a.Client.Get(ctx, client.ObjectKey{Name: name}, h); err != nil {
			return client.IgnoreNotFound(err)
		}
		before := h.DeepCopy()
		controllerutil.RemoveFinalizer(h, provider.RemovalFinalizer)
		controllerutil.RemoveFinalizer(h, provider.HostFinalizer)
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		return client.IgnoreNotFound(a.Client.Patch(ctx, h, patch))
	})
}
