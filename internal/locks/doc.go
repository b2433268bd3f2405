// Package locks decides whether a run may change a host or the cluster. It lets one run at a time change the same
// thing, and it stops a run that has lost its locks, even if that run does not know it.
//
// # What is locked
//
// plan.LockScope derives the scope from the plan. A run about workers alone locks these workers. Every other run is
// about the cluster: it locks every control-plane host that answers, the workers that it touches, and the Lease. A Set
// is what one run has locked. The type plan.Scope stays in package plan, because it is a value of the plan: a pure
// function of its steps and the observed world, without which a plan cannot be judged.
//
// # Which lock fences what
//
// The lock of a host fences the steps that run on that host. It has a generation, which only grows. A step carries the
// generation under which it was started, and the host compares it twice: in start.sh, and inside the unit in run.sh.
// The host itself refuses a step of an older generation, so the run need not notice that it has lost the lock.
//
// The Lease fences what goes through the API, and runs that reach different hosts. No host refuses a request to the
// API, so a run asks before each step. Set.Check is the one question, and whoConfirms is the table of who answers it.
//
// The control plane's hosts guard the Lease in turn. A run reaches the API only through a control-plane host that it
// has locked. If every control-plane host says now that its lock is this run's, no other run reaches the API.
// This is why such a run takes the Lease at once, and continues while the API is silent.
//
// # What happens when
//
// The holder's process dies: its SSH connection ends, the keeper on the host (lock.sh) ends with it, and the host is
// free at once. A step that runs there continues, and the next run waits for it. Nothing renews the Lease, so another
// run takes it after leaselock.Duration, or at once if every control-plane host confirms.
//
// The holder is cut off from a host: the host hears no beat, and its lock may be taken after StaleAfter. The holder
// starts another keeper with its old generation as soon as it can. It gets the lock back only if no other run has taken
// it meanwhile.
//
// The holder is cut off from the API: it begins steps until LeaseTrust after its last renewal, which is well before
// leaselock.Duration. Later it needs the confirmation of every control-plane host. Without it, the run waits for
// LeaseTimeout and then fails. See Set.awaitLease for the rule.
//
// A second operator comes: a living run keeps its locks, and the second one gets an error that says who works there.
// A Lease whose holder is silent is watched for leaselock.Duration by the second run's own clock. With force, the
// second run takes all locks at once, and the hosts refuse the first one's next steps.
//
// The Lease or the lock of a control-plane host is lost: Guard ends the context of the run. Requests to the API end,
// no step begins, and steps on hosts continue there.
//
// The lock of a worker is lost, or it cannot be taken: that worker is not touched, and everything else continues. A run
// that has no lock left ends.
//
// No API answers when the run begins: it has the locks of hosts alone, and takes the Lease before its first step
// through the API. A step through etcd meanwhile needs the confirmation of every control-plane host.
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
