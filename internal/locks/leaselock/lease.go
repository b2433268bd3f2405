// Package leaselock implements the cluster's lock: a Lease that one run at a time holds and renews.
package leaselock

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"kubeone/internal/cluster/apicall"
	"kubeone/internal/retry"
)

// Name is the name of that Lease in kube-system.
const Name = "kubeone"

// Duration is how long no other run takes a renewed Lease. A waiting run counts by its own clock.
const Duration = 20 * time.Second

const (
	leaseRenew      = 5 * time.Second
	leaseRetryEvery = time.Second // between attempts of a failing renewal, and between checks of another run's Lease
)

// Locker takes the cluster's lock.
type Locker struct {
	Kubernetes kubernetes.Interface
}

// Holder is the holder of the cluster's lock.
type Holder struct {
	Name  string // user@machine
	RunID string
}

// HeldError means that another run holds the cluster's lock.
type HeldError struct {
	Holder string // user@machine
	RunID  string
	Since  time.Time // when it took the lock
	Until  time.Time // when its lock ends without a renewal, by the holder's clock
}

// Error says who holds the lock and what to do.
func (e *HeldError) Error() string {
	return fmt.Sprintf("%s works on this cluster (run %s, Lease kube-system/"+Name+
		" since %s): wait for that run to end, or take the lock over with --force-unlock",
		e.Holder, e.RunID, e.Since.Local().Format(time.RFC3339))
}

// State returns the holder of a Lease, since when, and whether it was renewed lately. An empty holder means that the
// Lease is free.
func State(lease *coordinationv1.Lease, now time.Time) (holder Holder, since time.Time, live bool) {
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return Holder{}, time.Time{}, false
	}
	holder = Holder{Name: *lease.Spec.HolderIdentity, RunID: lease.Annotations[apicall.RunIDAnnotation]}
	if lease.Spec.AcquireTime != nil {
		since = lease.Spec.AcquireTime.Time
	}
	age, duration := leaseAge(lease, now)
	return holder, since, age < duration
}

// leaseAge returns the time since the last renewal, between the two clocks, and how long a renewal counts.
func leaseAge(lease *coordinationv1.Lease, now time.Time) (age, duration time.Duration) {
	duration = Duration
	if s := lease.Spec.LeaseDurationSeconds; s != nil {
		duration = time.Duration(*s) * time.Second
	}
	if lease.Spec.RenewTime == nil {
		return duration, duration
	}
	return now.Sub(lease.Spec.RenewTime.Time), duration
}

// AcquireOptions say how to take the cluster's lock from another run.
type AcquireOptions struct {
	// Force takes the lock at once, even from a living run.
	Force bool
	// AtOnce is called when another run holds the lock. It reports whether that run certainly is not at work. Nothing
	// is taken if the lock changed hands meanwhile. Nil means never certain.
	AtOnce func(context.Context) bool
	// Waiting is called once, when Acquire starts to watch for at most atMost whether the other run renews its lock.
	// Nil disables the callback.
	Waiting func(by Holder, atMost time.Duration)
}

// Acquire takes the cluster's lock and keeps it until its release. It watches a lock of another run until it has gone
// without a renewal for its duration, then takes it. It counts by its own clock, and only while the API answers,
// because the holder could not renew it otherwise. If the holder renews it, the error wraps a *HeldError, of class
// Operator.
func (c Locker) Acquire(ctx context.Context, me Holder, o AcquireOptions) (*Lock, error) {
	ctx, cancel := apicall.Bounded(ctx, Duration+2*apicall.OpTimeout)
	defer cancel()
	var began time.Time
	err := apicall.Retry(ctx, "lock the cluster", "", func(ctx context.Context) error {
		began = time.Now()
		return c.tryAcquire(ctx, me, &o)
	})
	if err != nil {
		return nil, err
	}
	return c.startRenewal(ctx, me, began), nil
}

func (c Locker) tryAcquire(ctx context.Context, me Holder, o *AcquireOptions) error {
	lease, err := c.leaseClient().Get(ctx, Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return c.createLease(ctx, me)
	}
	if err != nil {
		return err
	}
	holder, _, _ := State(lease, time.Now())
	if holder.Name != "" && holder != me && !o.Force && (o.AtOnce == nil || !o.AtOnce(ctx)) {
		_, duration := leaseAge(lease, time.Now())
		if o.Waiting != nil {
			o.Waiting(holder, duration)
			o.Waiting = nil
		}
		if lease, err = c.awaitSilence(ctx, lease, duration); err != nil {
			return err
		}
	}
	return c.writeLease(ctx, lease, me)
}

// awaitSilence returns the lease once it may be taken: released, or not renewed for the duration. A failed check
// restarts the wait. A gap between two checks, as in a process that stood still, counts as at most two intervals.
func (c Locker) awaitSilence(ctx context.Context, lease *coordinationv1.Lease,
	duration time.Duration) (*coordinationv1.Lease, error) {
	for silent, last := time.Duration(0), time.Now(); silent < duration; {
		if !retry.Pause(ctx, min(leaseRetryEvery, duration-silent)) {
			return nil, context.Cause(ctx)
		}
		now, err := c.leaseClient().Get(ctx, Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		if holder, _, _ := State(now, time.Now()); holder.Name == "" {
			return now, nil
		}
		if now.ResourceVersion != lease.ResourceVersion {
			return nil, &apicall.Error{Op: "take the lock", Class: apicall.Operator, Err: newHeldError(now)}
		}
		silent += min(time.Since(last), 2*leaseRetryEvery)
		last = time.Now()
	}
	return lease, nil
}

func newHeldError(lease *coordinationv1.Lease) *HeldError {
	now := time.Now()
	holder, since, _ := State(lease, now)
	age, duration := leaseAge(lease, now)
	return &HeldError{Holder: holder.Name, RunID: holder.RunID, Since: since, Until: now.Add(duration - age)}
}
