package cluster

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The lock of the cluster is the Lease LeaseName in kube-system.
const (
	LeaseName     = "kubeone"
	leaseRun      = "kubeone.k8c.io/run-id" // annotation: the run that holds it
	leaseDuration = 20 * time.Second
	leaseRenew    = 5 * time.Second
	leaseAgain    = time.Second      // between attempts while a renewal fails
	clockSkew     = 60 * time.Second // two operators' clocks differ by no more
)

// Holder is who holds the cluster's lock.
type Holder struct {
	Name  string // user@machine
	RunID string
}

// HeldError says that another run holds the cluster's lock.
type HeldError struct {
	Holder string // user@machine
	RunID  string
	Since  time.Time // when it took the lock
	Until  time.Time // when its lock ends unless it is renewed, by the holder's clock
}

// Error says who holds the lock and what can be done.
func (e *HeldError) Error() string {
	return fmt.Sprintf("the cluster is locked by %s (run %s) since %s; wait for it to end, or take the lock over if that run is known to be dead",
		e.Holder, e.RunID, e.Since.Local().Format(time.RFC3339))
}

// LeaseState is what a Lease says: who holds it since when, and whether it was renewed lately. An empty holder means that
// nobody holds it.
func LeaseState(lease *coordinationv1.Lease, now time.Time) (holder Holder, since time.Time, live bool) {
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return Holder{}, time.Time{}, false
	}
	holder = Holder{Name: *lease.Spec.HolderIdentity, RunID: lease.Annotations[leaseRun]}
	if lease.Spec.AcquireTime != nil {
		since = lease.Spec.AcquireTime.Time
	}
	age, duration := ageOf(lease, now)
	return holder, since, age < duration
}

// ageOf is the time since the last renewal, by the two clocks, and how long a renewal holds.
func ageOf(lease *coordinationv1.Lease, now time.Time) (age, duration time.Duration) {
	duration = leaseDuration
	if s := lease.Spec.LeaseDurationSeconds; s != nil {
		duration = time.Duration(*s) * time.Second
	}
	if lease.Spec.RenewTime == nil {
		return duration, duration
	}
	return now.Sub(lease.Spec.RenewTime.Time), duration
}

// watchFor says how long a lease must be seen without renewal before it may be taken: 0 means at once, held that it may
// not be taken at all. Ages are only trusted as far as the clocks agree: fully where the same machine wrote both times.
func watchFor(lease *coordinationv1.Lease, me Holder, now time.Time) (wait time.Duration, held bool) {
	holder, _, live := LeaseState(lease, now)
	age, duration := ageOf(lease, now)
	switch {
	case holder.Name == "", holder == me, age >= duration+clockSkew:
		return 0, false
	case holder.Name == me.Name: // a killed run of the same operator is worth waiting for
		return min(max(0, duration-age), duration), false
	case live:
		return 0, true
	}
	return leaseRenew + 2*time.Second, false
}

// Acquire takes the cluster's lock and keeps it until it is released. Held by another run that is alive, the error wraps a
// *HeldError, of class Operator. A lock that was not renewed for leaseDuration is taken over; to be sure of that in spite of
// clocks that differ, and of a run of the same operator that was killed a moment ago, it may be watched for up to that time. Force
// takes it over at once.
func (c *Client) Acquire(ctx context.Context, me Holder, force bool) (*Lock, error) {
	ctx, cancel := bounded(ctx, leaseDuration+opTimeout)
	defer cancel()
	err := retry(ctx, "lock the cluster", "", func(ctx context.Context) error { return c.take(ctx, me, force) })
	if err != nil {
		return nil, err
	}
	return c.keep(ctx, me), nil
}

func (c *Client) take(ctx context.Context, me Holder, force bool) error {
	lease, err := c.leases().Get(ctx, LeaseName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return c.createLease(ctx, me)
	}
	if err != nil {
		return err
	}
	if !force {
		if err := c.awaitSilence(ctx, lease, me); err != nil {
			return err
		}
	}
	return c.writeLease(ctx, lease, me)
}

// awaitSilence returns nil once the lease may be taken in the version given.
func (c *Client) awaitSilence(ctx context.Context, lease *coordinationv1.Lease, me Holder) error {
	wait, held := watchFor(lease, me, time.Now())
	for end := time.Now().Add(wait); !held && time.Now().Before(end); {
		if !pause(ctx, min(leaseAgain, time.Until(end))) {
			return context.Cause(ctx)
		}
		now, err := c.leases().Get(ctx, LeaseName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		held = now.ResourceVersion != lease.ResourceVersion && now.Spec.HolderIdentity != nil && *now.Spec.HolderIdentity != ""
		if now.ResourceVersion != lease.ResourceVersion && !held {
			return &Error{Op: "watch the lock", Class: Transient, Err: fmt.Errorf("it was released just now")}
		}
		lease = now
	}
	if !held {
		return nil
	}
	return &Error{Op: "take the lock", Class: Operator, Err: heldBy(lease)}
}

func heldBy(lease *coordinationv1.Lease) *HeldError {
	now := time.Now()
	holder, since, _ := LeaseState(lease, now)
	age, duration := ageOf(lease, now)
	return &HeldError{Holder: holder.Name, RunID: holder.RunID, Since: since, Until: now.Add(duration - age)}
}
