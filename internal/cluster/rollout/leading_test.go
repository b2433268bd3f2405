package rollout

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func lead(name, holder string, at time.Time) *coordinationv1.Lease {
	renewed := metav1.NewMicroTime(at)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceSystem},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &renewed},
	}
}

func TestALeaderIsOneThatRenewsItsLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dead := time.Now().Add(-time.Minute)
		c, api := faked(t, lead("kube-controller-manager", "cp-1_a", dead))
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if err := c.WaitLeading(ctx); err == nil || !strings.Contains(err.Error(), "cp-1_a does not renew the Lease") {
			t.Errorf("a holder that is dead: %v", err)
		}
		done := make(chan error, 1)
		go func() { done <- c.WaitLeading(t.Context()) }()
		for _, l := range []*coordinationv1.Lease{
			lead("kube-controller-manager", "", time.Now()), lead("kube-controller-manager", "cp-2_b", time.Now()),
		} {
			synctest.Wait()
			select {
			case err := <-done:
				t.Fatalf("over too early: %v", err)
			default:
			}
			have, err := api.CoordinationV1().Leases(metav1.NamespaceSystem).Get(t.Context(), l.Name,
				metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			l.ResourceVersion = have.ResourceVersion
			if _, err := api.CoordinationV1().Leases(metav1.NamespaceSystem).Update(t.Context(), l,
				metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-done; err != nil { // the scheduler has no lease
			t.Error(err)
		}
	})
}
