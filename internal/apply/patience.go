package apply

import (
	"time"

	"kubeone/internal/plan/step"
)

// Timeouts of a run and intervals between its attempts. Other executors of plans, such as the simulator, use the same
// values.
const (
	// StepTimeout is how long a run follows a step on a host; the step continues after that.
	StepTimeout = 30 * time.Minute
	// ClusterTimeout bounds a step that goes through the API; see StepLimit.
	ClusterTimeout = 10 * time.Minute
	// LostTimeout is how long a host may be unreachable during a step.
	LostTimeout = 90 * time.Second
	// RetryEvery is the pause before a retry.
	RetryEvery = time.Second
	// EtcdTimeout limits the wait for etcd to reach the state that the next step needs.
	EtcdTimeout = 2 * time.Minute
	// UncordonTimeout limits uncordoning a node after a drain that failed or that no step followed.
	UncordonTimeout = 30 * time.Second
	// TokenAge is how old a token may be when a join begins: uploads over a slow link can outlast a token's 15 minutes.
	TokenAge = 5 * time.Minute

	// DeathWithin is how long checks, DeathEvery apart, must find no sign of life before a member, Node or host counts
	// as dead. After a gap of more than DeathGap, for example because the run was suspended, the time starts again,
	// because it may have been alive in the gap. A check of a host that does not answer and the pause before it
	// together take less than DeathGap.
	DeathWithin = 30 * time.Second
	DeathEvery  = 5 * time.Second
	DeathGap    = 20 * time.Second
	// ProbeTimeout limits the time for one check of a host.
	ProbeTimeout = 8 * time.Second
	// NodeTimeout limits the wait for a Node to become not Ready, which happens 40 s after the last report of its
	// kubelet.
	NodeTimeout = 2 * time.Minute
	// StartTimeout is how long starting a step waits on the host for another attempt to start it. That attempt may be
	// waiting for systemd, which gives a unit 90 seconds to start.
	StartTimeout = 2 * time.Minute
)

// StepLimit returns the maximum time for a step through the API: ClusterTimeout, plus the drain timeout, twice if pods
// may be deleted after it, plus the wait for Machine hosts, plus three times the timeout of a Helm release: for hooks,
// for its objects and for a rollback.
func StepLimit(i step.Intent) time.Duration {
	own := 2*step.ParamsOf[step.DrainNodeParams](i).TimeoutSeconds +
		step.ParamsOf[step.AwaitHostsParams](i).TimeoutSeconds +
		3*step.ParamsOf[step.ApplyReleaseParams](i).TimeoutSeconds
	return ClusterTimeout + time.Duration(own)*time.Second
}

// Outage tracks how long a host has been unreachable during a step. The zero value means that it has not been.
type Outage struct{ since time.Time }

// TryAgain records that an attempt that started at began has lost its connection at now, and reports whether to retry.
// An attempt that lasted longer than LostTimeout ends the outage, because the host was reachable during it.
func (o *Outage) TryAgain(began, now time.Time) bool {
	if o.since.IsZero() || now.Sub(began) > LostTimeout {
		o.since = now
	}
	return now.Sub(o.since) <= LostTimeout
}
