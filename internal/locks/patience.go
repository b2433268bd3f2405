package locks

import "time"

// Timeouts and pauses of locks. The simulator uses the same values.
const (
	// BeatEvery is the interval at which the holder of a lock signals its host.
	BeatEvery = 5 * time.Second
	// StaleAfter is how long a host must not have heard from its lock's holder before another run may take the lock.
	StaleAfter = 20 * time.Second
	// GrantTimeout bounds a host's answer to a request for its lock, including the connection.
	GrantTimeout = time.Minute
	// FlockTimeout is how long a script on the host waits for another script that takes or releases the lock. Each
	// takes moments. It is less than GrantTimeout, so that the host can name the process it waits for.
	FlockTimeout = 40 * time.Second
	// CheckTimeout bounds a host's answer about its lock, and the end of its keeper.
	CheckTimeout = 10 * time.Second
	// LeaseTrust is how long after a renewal a run begins steps although it cannot check the Lease. It ends well
	// before another run may take the Lease.
	LeaseTrust = 10 * time.Second
	// LeaseTimeout bounds the wait for an answer about the Lease.
	LeaseTimeout = 2 * time.Minute

	// retryEvery is the pause before restarting a keeper and before checking the Lease again.
	retryEvery = time.Second
)
