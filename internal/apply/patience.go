package apply

import (
	"time"

	"kubeone/internal/plan/step"
)

// How long a run waits, and how often it tries. These are all there are: whatever else carries out plans, as
// the simulator does, goes by them.
const (
	// StepTimeout is how long a step on a host is followed; it goes on there after that.
	StepTimeout = 30 * time.Minute
	// ClusterTimeout bounds a step that goes through the API; see StepLimit.
	ClusterTimeout = 10 * time.Minute
	// LostTimeout is how long a host may be away in the middle of a step.
	LostTimeout = 90 * time.Second
	// RetryEvery is the pause before something is tried again.
	RetryEvery = time.Second
	// EtcdTimeout is how long etcd may take to be as the next step needs it.
	EtcdTimeout = 2 * time.Minute
	// UncordonTimeout is for opening a node again that could not be drained, or was drained for nothing.
	UncordonTimeout = 30 * time.Second
	// TokenAge is how old a token may be when a join begins: uploads over a slow link can outlast a token's 15 minutes.
	TokenAge = 5 * time.Minute

	// DeathWithin is for how long what goes for being dead must be found dead, by looks that are DeathEvery apart.
	// After a gap of more than DeathGap, as of a run that stood still, it counts anew: what may have lived meanwhile is
	// not dead. A look beside a host that does not answer, and the pause before it, take less.
	DeathWithin = 30 * time.Second
	DeathEvery  = 5 * time.Second
	DeathGap    = 20 * time.Second
	// ProbeTimeout is for a host to answer one of those looks.
	ProbeTimeout = 8 * time.Second
	// NodeTimeout is for a Node to become not Ready: its kubelet is silent for 40 s by then.
	NodeTimeout = 2 * time.Minute
	// StartTimeout is how long the start of a step waits on the host for another attempt, which may wait for systemd:
	// that gives a unit 90 seconds to start.
	StartTimeout = 2 * time.Minute
)

// StepLimit is how long a step through the API may take. A drain has its own time besides, twice where pods are
// deleted after it, and so has the wait for hosts of Machines.
func StepLimit(i step.Intent) time.Duration {
	own := 2*step.ParamsOf[step.DrainNodeParams](i).TimeoutSeconds +
		step.ParamsOf[step.AwaitHostsParams](i).TimeoutSeconds
	return ClusterTimeout + time.Duration(own)*time.Second
}

// Outage is how long a host has been away in the middle of a step. The zero value is a host that has not been away.
type Outage struct{ since time.Time }

// TryAgain notes that the connection is lost now of an attempt that began then, and reports whether another
// attempt is made. An attempt that held for longer than LostTimeout shows that the host was there meanwhile.
func (o *Outage) TryAgain(began, now time.Time) bool {
	if o.since.IsZero() || now.Sub(began) > LostTimeout {
		o.since = now
	}
	return now.Sub(o.since) <= LostTimeout
}
