package apply

import (
	"time"

	"kubeone/internal/plan/step"
)

// How long a run waits, and how often it tries. Other executors of plans, such as the simulator, use the same values.
const (
	// StepTimeout is how long a run follows a step on a host; the step continues after that.
	StepTimeout = 30 * time.Minute
	// ClusterTimeout bounds a step that goes through the API; see StepLimit.
	ClusterTimeout = 10 * time.Minute
	// LostTimeout is how long a host may be unreachable during a step.
	LostTimeout = 90 * time.Second
	// RetryEvery is the pause before a retry.
	RetryEvery = time.Second
	// EtcdTimeout bounds the wait for etcd to reach the state that the next step needs.
	EtcdTimeout = 2 * time.Minute
	// UncordonTimeout bounds uncordoning a node after a failed or pointless drain.
	UncordonTimeout = 30 * time.Second
	// TokenAge is how old a token may be when a join begins: uploads over a slow link can outlast a token's 15 minutes.
	TokenAge = 5 * time.Minute

	// DeathWithin is how long checks, DeathEvery apart, must find something dead before it is removed. After a gap of
	// more than DeathGap, as of a run that stood still, the count starts over: it may have lived meanwhile. A check
	// of a host that does not answer, and the pause before it, take less than DeathGap.
	DeathWithin = 30 * time.Second
	DeathEvery  = 5 * time.Second
	DeathGap    = 20 * time.Second
	// ProbeTimeout bounds the answer of a host to one check.
	ProbeTimeout = 8 * time.Second
	// NodeTimeout bounds the wait for a Node to become not Ready, which takes 40 s of a silent kubelet.
	NodeTimeout = 2 * time.Minute
	// StartTimeout is how long the start of a step waits on the host for another attempt. That one may wait for
	// systemd, which gives a unit 90 seconds to start.
	StartTimeout = 2 * time.Minute
)

// StepLimit returns how long a step through the API may take. It adds the time of a drain, twice if pods may be
// deleted after it, and of the wait for hosts of Machines.
func StepLimit(i step.Intent) time.Duration {
	own := 2*step.ParamsOf[step.DrainNodeParams](i).TimeoutSeconds +
		step.ParamsOf[step.AwaitHostsParams](i).TimeoutSeconds
	return ClusterTimeout + time.Duration(own)*time.Second
}

// Outage tracks how long a host has been away during a step. The zero value is a host that has not been away.
type Outage struct{ since time.Time }

// TryAgain records that an attempt begun at that time has now lost its connection. It reports whether to retry. An
// attempt that lasted longer than LostTimeout shows that the host was reachable meanwhile.
func (o *Outage) TryAgain(began, now time.Time) bool {
	if o.since.IsZero() || now.Sub(began) > LostTimeout {
		o.since = now
	}
	return now.Sub(o.since) <= LostTimeout
}
