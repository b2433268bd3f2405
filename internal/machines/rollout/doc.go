// Package rollout decides what becomes of the machines of a MachineDeployment or of a MachineSet: which are made,
// changed in place, deleted, and when.
//
// It is one function. [PlanFamily] takes a [Family], which is a deployment with its sets and their machines as they are
// now, and returns the writes that may all be made at once. The caller makes them, or some of them, in any order, looks
// again, and asks again: nothing is remembered between two calls, so that a controller that is killed between two
// writes leaves nothing to repair. It must not ask again before it sees what it has written, or machines would be made
// twice. A family that is as it should be has no writes.
//
// A deployment, its sets and their machines are planned together, since what one of them may do depends on all others.
// That the sets of a deployment count machines is bookkeeping: nobody but the planner acts on their number of replicas.
//
// # What always holds
//
//   - There are never more machines than replicas and surge together, those that are being deleted included: on a pool
//     of hosts a machine that is being deleted still has its host.
//   - A roll-out takes an available machine only while at least replicas less maxUnavailable stay available, and it
//     assumes of all others what is worst: of an outdated machine that is not available that it may become so.
//   - A machine that is changed in place moves from its set to the new one in one write, and keeps its name. It counts
//     as unavailable until what its new set says has been carried out.
//   - Machines that are unhealthy are replaced as long as they are few. Where they and those that are lost, and may be
//     unhealthy soon, are more than maxUnhealthy, something else is wrong, and none is deleted for that. A roll-out
//     goes on within its limits, as it may be what makes them well.
//
// Everything here is a value: there is no clock, no client and no log.
package rollout
