// Package leaselock implements the cluster lock: a Lease that one run at a time holds and renews.
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

// Duration is how long after a renewal no other run takes the Lease. A waiting run measures it by its own clock.
const Duration = 20 * time.Second

const (
	leaseRenew      = 5 * time.Second
	leaseRetryEvery = time.Second // between attempts of a failing renewal, and between checks of another run's Lease
)

// Locker takes the cluster lock.
type Locker struct {
	Kubernetes kubernetes.Interface
}

// Holder is the holder of the cluster lock.
type Holder struct {
	Name  string // user@machine
	RunID string
}

// HeldError means that another run holds the cluster lock.
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

// State returns the holder of a Lease, when it took the Lease, and whether it has renewed it recently. If the Lease is
// free, holder is empty.
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

// leaseAge returns the time since the last renewal and how long a renewal is valid. The age includes any difference
// between the clocks of the two machines.
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

// AcquireOptions say how to take the cluster lock from another run.
type AcquireOptions struct {
	// Force takes the lock at once, even from a run that is still working.
	Force bool
	// AtOnce is called when another run holds the lock. If it returns true, that run is certainly not working, and
	// Acquire takes the lock at once unless its holder has changed since. Nil means that this is never certain.
	AtOnce func(context.Context) bool
	// Waiting is called once, when Acquire starts to wait, for at most atMost, to see whether the other run renews its
	// lock. Nil disables the callback.
	Waiting func(by Holder, atMost time.Duration)
}

// Acquire takes the cluster lock and renews it until it is released. If another run holds the lock, Acquire waits until
// it has not been renewed for its duration, then takes it. It measures that by its own clock, and only while the API
// answers, because otherwise the holder could not renew it. If the holder renews the lock, the error is of class
// Operator and wraps a *HeldError.
func (c Locker) Acquire(ctx context.Context, me Holder, o AcquireOptions) (*Lock, error) {
	ctx, cancel := apicall.WithDefaultTimeout(ctx, Duration+2*apicall.OpTimeout)
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

// awaitSilence waits until the Lease is released or has not been renewed for its duration, and returns it. A failed
// check restarts the wait. A gap between two checks, for example because the process was suspended, counts as at most
// two intervals.
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
