package locks

import "time"

// How long is waited about locks, and how often is tried. The simulator uses the same values.
const (
	// BeatEvery is how often a host hears of the holder of its lock.
	BeatEvery = 5 * time.Second
	// StaleAfter is for how long a host must not have heard of the holder of its lock before another run may take it.
	StaleAfter = 20 * time.Second
	// GrantTimeout is for a host to say whether it grants its lock, connecting included.
	GrantTimeout = time.Minute
	// FlockTimeout is how long taking or giving up a lock waits on the host for another script that does so. Each takes
	// moments. It is less than GrantTimeout, so that the host can say which process it waits for.
	FlockTimeout = 40 * time.Second
	// CheckTimeout is for a host to say whose lock it is, or to end what has kept its lock.
	CheckTimeout = 10 * time.Second
	// LeaseTrust is how long after a renewal a run begins steps although nobody tells it whether the Lease is
	// still its own. It stops well before another one may take the Lease from it.
	LeaseTrust = 10 * time.Second
	// LeaseTimeout bounds the wait for somebody who tells.
	LeaseTimeout = 2 * time.Minute

	// retryEvery is the pause before a keeper is started again, and before it is asked again whose the Lease is.
	retryEvery = time.Second
)
