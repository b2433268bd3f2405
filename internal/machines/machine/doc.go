// Package machine converts Machine API objects for the rollout planner. A MachineDeployment with its MachineSets and
// Machines, or a MachineSet without a deployment, becomes a [rollout.Family]. Its functions are pure: the results
// depend only on the arguments, which are not changed.
package machine
