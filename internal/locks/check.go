package locks

import (
	"context"
	"errors"
	"fmt"

	"kubeone/internal/cluster"
	"kubeone/internal/locks/leaselock"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
	"kubeone/internal/retry"
)

// confirmer says who must confirm a run's locks before a step begins.
type confirmer int

const (
	noneNeeded    confirmer = iota // the step's host itself refuses a run that has lost its lock
	everyHost                      // each host that is not dispensable
	leaseIfHeld                    // the Lease, unless the run began without an API
	leaseRequired                  // the Lease, taken first; without an API, every control-plane host
)

// whoConfirms returns who must confirm a step at that place in a run of that scope:
//
//	                   | on its host | on the operator's machine | through the API or etcd
//	workers            | noneNeeded  | everyHost                 | everyHost
//	the cluster        | leaseIfHeld | leaseIfHeld               | leaseRequired
//	the cluster's end  | noneNeeded  | noneNeeded                | leaseRequired
//
// A hook on the operator's machine can run without the Lease, because its purpose may be to repair the API. A run that
// resets every control-plane host needs the Lease only for steps through the API, because there will soon be no API.
func whoConfirms(scope plan.Scope, place step.Place) confirmer {
	switch {
	case !scope.Cluster && place == step.OnHost:
		return noneNeeded
	case !scope.Cluster:
		return everyHost
	case place != step.OnHost && place != step.OnOperator:
		return leaseRequired
	case scope.Ends:
		return noneNeeded
	}
	return leaseIfHeld
}

// Check returns nil if the step may start, and an error that wraps ErrLost if another run has taken the lock. If the
// step concerns a worker but does not run on it, Check first asks that worker. via is the current access to the API, or
// nil if there is none. Check is safe for concurrent use.
func (s *Set) Check(ctx context.Context, of plan.Step, via *cluster.Access) error {
	place := of.Intent.Kind.Place()
	if place != step.OnHost {
		if err := s.Hosts.CheckDispensable(ctx, of.Host); err != nil {
			return err
		}
	}
	switch whoConfirms(s.Scope, place) {
	case everyHost:
		return s.Hosts.Check(ctx)
	case leaseRequired:
		if via != nil {
			if err := s.holdLease(ctx, via); err != nil {
				return s.leaseError(err)
			}
		}
		if lease := s.heldLease(); lease != nil {
			return s.awaitLease(ctx, lease)
		}
		return s.awaitLease(ctx, noLease{})
	case leaseIfHeld:
		if lease := s.heldLease(); lease != nil {
			return s.awaitLease(ctx, lease)
		}
	case noneNeeded:
	}
	return nil
}

// leaseError returns the error for a run that could not take the Lease after it started. If another run holds the
// Lease, the error wraps ErrLost.
func (s *Set) leaseError(err error) error {
	var held *leaselock.HeldError
	if !errors.As(err, &held) {
		return err
	}
	s.end(ErrLost)
	return fmt.Errorf("%w: %w", ErrLost, err)
}

// awaitLease waits until it is known whether the next step may start. If the API does not answer, the run starts steps
// for LeaseTrust after its last renewal, because no other run can take the Lease yet. After that, it starts steps only
// while it holds the lock of every control-plane host. Then no other run can hold the Lease, because a run reaches the
// API only through a control-plane host that it has locked.
func (s *Set) awaitLease(ctx context.Context, lease Lease) error {
	ctx, cancel := context.WithTimeout(ctx, LeaseTimeout)
	defer cancel()
	for {
		err := lease.Check(ctx)
		switch {
		case errors.Is(err, leaselock.ErrLost):
			return fmt.Errorf("%w: %w", ErrLost, err)
		case err == nil, lease.Unrenewed() < LeaseTrust, s.controlPlaneConfirms(ctx):
			return ctx.Err()
		}
		if !retry.Pause(ctx, retryEvery) {
			return fmt.Errorf("cannot tell whether this run still holds the cluster lock: %w; run kubeone apply again",
				err)
		}
	}
}

// controlPlaneConfirms reports whether every control-plane host confirms that this run holds its lock.
func (s *Set) controlPlaneConfirms(ctx context.Context) bool {
	return s.Scope.Complete && s.Hosts.AllConfirm(ctx, s.Scope.ControlPlane)
}
