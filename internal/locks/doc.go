// Package locks decides whether a run may change a host or the cluster. It lets one run at a time change the same
// thing, and it stops a run that has lost its locks, even if that run does not know it.
//
// # What is locked
//
// plan.LockScope derives the scope from the plan. A run for workers only locks these workers. Every other run is for
// the cluster: it locks every control-plane host that answers, the workers that it changes, and the Lease. A Set holds
// the locks of one run. The type plan.Scope is in package plan, because the scope is part of the plan: a pure function
// of its steps and the observed world.
//
// # Which lock fences what
//
// The lock of a host fences the steps that run on that host. It has a generation, which only increases. Each step
// carries the generation under which it was started, and the host compares it twice: in start.sh, and inside the unit
// in run.sh. The host itself refuses a step of an older generation, even if the run does not know that it has lost the
// lock.
//
// The Lease fences requests to the API, and runs that reach different hosts. No host can refuse a request to the API,
// so a run calls Set.Check before each step. whoConfirms says who must confirm the locks.
//
// The control-plane hosts in turn protect the Lease. A run reaches the API only through a control-plane host that it
// has locked. If one run holds the locks of all control-plane hosts, no other run can reach the API. So that run can
// take the Lease at once, and can continue while the API does not respond.
//
// # What happens when
//
// The process of the holder dies: its SSH connection ends, the keeper on the host (lock.sh) ends with it, and the host
// is free at once. A step that is running there continues, and the next run waits for it. The Lease is no longer
// renewed, so another run can take it after leaselock.Duration, or at once if every control-plane host confirms.
//
// The holder loses the connection to a host: the host receives no beats, and another run can take its lock after
// StaleAfter. The holder starts another keeper with its old generation as soon as it can. It gets the lock back only if
// no other run has taken it in the meantime.
//
// The holder loses the connection to the API: it starts steps until LeaseTrust after its last renewal, which is well
// before leaselock.Duration. After that, every control-plane host must confirm its locks. If they do not, the run waits
// for LeaseTimeout and then fails. See Set.awaitLease.
//
// A second run starts: the first run keeps its locks, and the second one fails with an error that names the first. If
// the holder of the Lease does not respond, the second run watches the Lease for leaselock.Duration by its own clock.
// With force, the second run takes all locks at once, and the hosts refuse the next steps of the first run.
//
// The Lease or the lock of a control-plane host is lost: Guard ends the context of the run. Requests to the API end, no
// step starts, and steps on hosts continue.
//
// The lock of a worker is lost or cannot be taken: that worker is not changed, and the rest of the run continues. A run
// that holds no lock any more ends.
//
// No API answers when the run starts: the run takes only the locks of hosts, and takes the Lease before its first step
// through the API. Until then, a step through etcd needs the confirmation of every control-plane host.
//
// # Which error a caller gets
//
//	*HeldError            another run has the lock of a host; the run has not begun
//	*leaselock.HeldError  another run has the Lease; the run has not begun, unless the error also wraps ErrLost
//	*UnwritableError      a host that the run needs takes no lock, because nothing can be written there
//	ErrLost               another run has taken a lock of this one; wrapped by errors, and the cause of contexts
//	*TakenError           Guard ended early for that reason; it wraps ErrLost and says who has the lock, if known
//
// The reasons are in docs/adr/0016-locks-by-scope.md.
package locks
