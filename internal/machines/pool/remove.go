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

// Remove takes a Host out of the pool: the key is taken away on the host, and the object is deleted. A Host that a
// Machine has is refused. A host that does not let the cluster in is an error, and so is one whose Machine is gone and
// that has not been reset since, unless force is set: then it keeps the key, and unreached is why.
func (a *Adder) Remove(ctx context.Context, name string, force bool) (unreached, err error) {
	h := &kubeone.Host{}
	switch err := a.Client.Get(ctx, client.ObjectKey{Name: name}, h); {
	case meta.IsNoMatchError(err):
		return nil, errNoPool
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("there is no Host %s; kubeone host list shows them", name)
	case err != nil:
		return nil, apicall.Wrap("read the Host "+name, "", err)
	}
	if err := a.claimedError(ctx, h, force); err != nil {
		return nil, err
	}
	if err := a.holdHost(ctx, h); err != nil {
		return nil, apicall.Wrap("delete the Host "+name, "", err)
	}
	if err := a.revokeFromHost(ctx, h); err != nil {
		if !force {
			return nil, fmt.Errorf("the Host %s is being deleted, and its host keeps the cluster's key: %w; try "+
				"again, or leave the key there with --force", name, err)
		}
		unreached = err
	}
	return unreached, apicall.Wrap("delete the Host "+name, "", a.letGo(ctx, name))
}

// claimedError is an error where a Machine has the Host, or had it and has not returned it.
func (a *Adder) claimedError(ctx context.Context, h *kubeone.Host, force bool) error {
	c := h.Status.Claim
	if c == nil {
		return nil
	}
	m := &v1alpha1.Machine{}
	switch err := a.Client.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: c.Name}, m); {
	case err == nil && m.UID == c.UID:
		return fmt.Errorf("Machine %s/%s has the Host %s; kubectl -n %s delete machine %s returns it", c.Namespace,
			c.Name, h.Name, c.Namespace, c.Name)
	case err != nil && !apierrors.IsNotFound(err):
		return apicall.Wrap("look for its Machine", "", err)
	case !force:
		return fmt.Errorf("the Host %s has not been reset since its Machine %s/%s is gone (%s); if the machine is off "+
			"for good, or has been installed anew, --force removes it", h.Name, c.Namespace, c.Name, h.Status.Message)
	}
	return nil
}

// revokeFromHost takes the key away on the host, with that key, unless another Host of the pool is the same machine.
func (a *Adder) revokeFromHost(ctx context.Context, h *kubeone.Host) error {
	all, err := List(ctx, a.Client)
	if err != nil {
		return err
	}
	for i := range all {
		if other := &all[i]; other.Name != h.Name && sameWay(other, h) && other.Spec.User == h.Spec.User {
			return nil
		}
	}
	at, err := provider.TargetOf(h)
	if err != nil {
		return err
	}
	pool := a.loginPool()
	defer func() { _ = pool.Close() }() // nothing depends on how a connection ends
	return revokeKey(ctx, pool.Host(at), at.User, a.Key.PublicKey())
}

func revokeKey(ctx context.Context, h host.Host, user string, key ssh.PublicKey) error {
	_, err := h.Run(ctx, host.Cmd{
		Name: "take the cluster's key away", Script: revokeScript, Args: []string{user, bodyOf(key)},
	})
	return err
}

// holdHost has a Host deleted as it was read, and kept until letGo. From then on no Machine gets it: a claim is refused
// for an object that has changed, that is being removed, or deleted.
func (a *Adder) holdHost(ctx context.Context, h *kubeone.Host) error {
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
	as := client.Preconditions{UID: &h.UID, ResourceVersion: &h.ResourceVersion}
	return client.IgnoreNotFound(a.Client.Delete(ctx, h, as))
}

// letGo ends the deletion of a Host. That of the controllers' finalizer is theirs, but for where none runs.
func (a *Adder) letGo(ctx context.Context, name string) error {
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
