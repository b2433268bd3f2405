package rollout

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kubeone/internal/cluster/apicall"
)

// leaderLeases are the leader election Leases of control-plane components.
var leaderLeases = []string{"kube-controller-manager", "kube-scheduler"}

// WaitLeading waits until a controller manager and a scheduler are leading. Until then, terminating pods stay in their
// Services and new pods are not scheduled. A component is leading when it renews its Lease; its clock does not matter.
// A missing Lease is skipped, because it may have another name.
func (c Waiter) WaitLeading(ctx context.Context) error {
	leases := c.Kubernetes.CoordinationV1().Leases(metav1.NamespaceSystem)
	for _, name := range leaderLeases {
		var first *coordinationv1.Lease
		err := apicall.Retry(ctx, "read lease", name, func(ctx context.Context) (err error) {
			first, err = leases.Get(ctx, name, metav1.GetOptions{})
			return err
		})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		before := renewTime(first)
		err = apicall.Await(ctx, leases, "wait for a leader",
			name, func(l *coordinationv1.Lease) (bool, string, error) {
				holder := l.Spec.HolderIdentity
				if holder == nil || *holder == "" {
					return false, "no process holds the Lease", nil
				}
				return !renewTime(l).Equal(before), *holder + " does not renew the Lease", nil
			})
		if err != nil {
			return err
		}
	}
	return nil
}

func renewTime(l *coordinationv1.Lease) time.Time {
	if l.Spec.RenewTime == nil {
		return time.Time{}
	}
	return l.Spec.RenewTime.Time
}
