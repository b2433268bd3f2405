// Package rollout decides which machines of a MachineDeployment or MachineSet are created, changed in place or deleted,
// and when.
//
// [PlanFamily] takes a [Family], the current state of a deployment with its sets and machines, and returns writes that
// may all be made at once. The caller makes some or all of them in any order, observes the result, and calls again. No
// state is kept between calls, so a controller killed between two writes leaves nothing to repair. The caller must see
// its own writes before it calls again, or machines would be created twice. A family in its desired state has no
// writes.
//
// A deployment, its sets and their machines are planned together, since each depends on the others. The replicas of a
// deployment's sets are bookkeeping: only the planner acts on them.
//
// # Invariants
//
//   - There are never more machines than replicas plus surge. Machines being deleted count, as in a pool they still
//     have their hosts.
//   - A rollout takes an available machine only while at least replicas - maxUnavailable stay available. It assumes the
//     worst of the others: an unavailable outdated machine may become available.
//   - A machine changed in place moves to the new set in one write and keeps its name. It is unavailable until the new
//     set's template has been carried out.
//   - Unhealthy machines are replaced while they are few. If unhealthy and lost machines are more than maxUnhealthy,
//     the cause is probably elsewhere, and none is deleted for that. A rollout continues within its limits, as it may
//     fix them.
//
// The package is pure: it has no clock, client or log.
package rollout
