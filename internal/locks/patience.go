package locks

import "time"

// Timeouts and pauses of locks. The simulator uses the same values.
const (
	// BeatEvery is the interval at which the holder of a lock sends a beat to the host.
	BeatEvery = 5 * time.Second
	// StaleAfter is how long after the last beat of the holder another run may take the lock of a host.
	StaleAfter = 20 * time.Second
	// GrantTimeout limits the time for taking the lock of a host, including connecting.
	GrantTimeout = time.Minute
	// FlockTimeout is how long a script on the host waits for another script that takes or releases the lock, which
	// takes only moments. It is less than GrantTimeout, so that the host has time to report the process that it waited
	// for.
	FlockTimeout = 40 * time.Second
	// CheckTimeout limits the time for asking a host about its lock, and for the end of its keeper.
	CheckTimeout = 10 * time.Second
	// LeaseTrust is how long after a renewal a run still starts steps if it cannot check the Lease. It is well below
	// leaselock.Duration, after which another run can take the Lease.
	LeaseTrust = 10 * time.Second
	// LeaseTimeout limits the wait for an answer about the Lease.
	LeaseTimeout = 2 * time.Minute

	// retryEvery is the pause before restarting a keeper and before checking the Lease again.
	retryEvery = time.Second
)
