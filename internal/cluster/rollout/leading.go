package rollout

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kubeone/internal/cluster/apicall"
)

// leaders are the Leases of control-plane components with leader election.
var leaderLeases = []string{"kube-controller-manager", "kube-scheduler"}

// WaitLeading waits until a controller manager and a scheduler lead. Until then, ending pods stay in their Services and
// new ones are not scheduled. A component leads when it renews its Lease, whatever its clock says. A missing Lease is
// skipped: it may have another name.
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
					return false, "no process holds its lease", nil
				}
				return !renewTime(l).Equal(before), *holder + " does not renew its lease", nil
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
