// Package machine converts Machine API objects for the rollout planner: a MachineDeployment with its MachineSets and
// Machines, or a MachineSet without one, becomes a [rollout.Family]. Its functions are pure: results depend on the
// arguments only, and arguments are not changed.
package machine
