// Package rollout decides which machines of a MachineDeployment or MachineSet are created, changed in place or deleted,
// and when.
//
// [PlanFamily] takes a [Family], which is the current state of a deployment with its sets and machines, and returns
// writes. The caller carries out some or all of them in any order, observes the result, and calls PlanFamily again. No
// state is kept between calls, so nothing has to be repaired if a controller is killed between two writes. The caller
// must observe its own writes before it calls again. Otherwise machines would be created twice. There are no writes for
// a family in its desired state.
//
// A deployment, its sets and their machines are planned together, because each depends on the others. Only the planner
// uses the replicas of the sets of a deployment.
//
// # Invariants
//
//   - There are never more machines than replicas plus surge. Machines that are being deleted count, because they still
//     use their hosts.
//   - A rollout changes or deletes an available machine only while at least replicas - maxUnavailable machines stay
//     available. It also limits the unavailable outdated machines that it takes, because these may become available.
//   - A machine that is changed in place moves to the new set in one write and keeps its name. It is unavailable until
//     it matches the template of the new set.
//   - Unhealthy machines are replaced only if they are few. If there are more unhealthy and lost machines than
//     maxUnhealthy, the cause is probably elsewhere, and none of them is replaced. A rollout continues within its
//     limits, because it may fix them.
//
// The package is pure: it has no clock, client or log.
package rollout
