package clusters

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"kubeone/api/cluster/v1alpha1"
)

// hostsOf returns the Machines that are hosts of the cluster. A Machine that is being deleted is one until its host has
// left the cluster.
func hostsOf(all []v1alpha1.Machine) []*v1alpha1.Machine {
	var out []*v1alpha1.Machine
	for i := range all {
		m := &all[i]
		if isStatic(m) && (m.DeletionTimestamp == nil || slices.Contains(m.Finalizers, v1alpha1.MachineFinalizer)) {
			out = append(out, m)
		}
	}
	return out
}

// leaving returns the first Machine that is being deleted; nil if there is none. Hosts leave one after another.
func leaving(hosts []*v1alpha1.Machine) *v1alpha1.Machine {
	i := slices.IndexFunc(hosts, func(m *v1alpha1.Machine) bool { return m.DeletionTimestamp != nil })
	if i < 0 {
		return nil
	}
	return hosts[i]
}

// addressOf returns an address of the host.
func addressOf(m *v1alpha1.Machine) (string, error) {
	var host struct{ PublicAddress, PrivateAddress string }
	if raw := m.Spec.ProviderSpec.Value.CloudProviderSpec; raw != nil {
		if err := json.Unmarshal(raw.Raw, &host); err != nil {
			return "", err
		}
	}
	if host.PublicAddress == "" {
		return host.PrivateAddress, nil
	}
	return host.PublicAddress, nil
}

// protect gives the Machines a finalizer, so that they exist until their hosts have left the cluster.
func (c *Controller) protect(ctx context.Context, hosts []*v1alpha1.Machine) error {
	for _, m := range hosts {
		before := m.DeepCopy()
		if m.DeletionTimestamp != nil || !controllerutil.AddFinalizer(m, v1alpha1.MachineFinalizer) {
			continue
		}
		err := c.Client.Patch(ctx, m, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if err != nil {
			return fmt.Errorf("protect the Machine %s: %w", m.Name, err)
		}
	}
	return nil
}

// release lets the API delete a Machine, because its host has left the cluster.
func (c *Controller) release(ctx context.Context, m *v1alpha1.Machine) error {
	before := m.DeepCopy()
	if !controllerutil.RemoveFinalizer(m, v1alpha1.MachineFinalizer) {
		return nil
	}
	c.Events.Eventf(m, nil, corev1.EventTypeNormal, "Removed", "Reconcile", "the host has left the cluster")
	return client.IgnoreNotFound(c.Client.Patch(ctx, m,
		client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
}

// refuseDeletion writes to the status of a Machine why its host cannot leave the cluster; nil clears it.
func (c *Controller) refuseDeletion(ctx context.Context, m *v1alpha1.Machine, why error) error {
	before := m.DeepCopy()
	m.Status.ErrorReason, m.Status.ErrorMessage, m.Status.Phase = nil, nil, v1alpha1.Deleting
	if why != nil {
		reason, message := v1alpha1.DeleteError, bound(why.Error())
		m.Status.ErrorReason, m.Status.ErrorMessage = &reason, &message
	}
	if equality.Semantic.DeepEqual(before.Status, m.Status) {
		return nil
	}
	if why != nil {
		c.Events.Eventf(m, nil, corev1.EventTypeWarning, "DeletionRefused", "Reconcile", "%s", *m.Status.ErrorMessage)
	}
	return client.IgnoreNotFound(c.Client.Status().Patch(ctx, m, client.MergeFrom(before)))
}

// hostID returns the ID of the host of a Machine.
func hostID(s Session, m *v1alpha1.Machine) (string, error) {
	address, err := addressOf(m)
	if err != nil {
		return "", err
	}
	return s.HostID(address)
}
