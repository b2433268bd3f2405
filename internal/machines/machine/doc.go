// Package machine is the Machine API's objects as the planner of roll-outs sees them: a MachineDeployment with its
// MachineSets and Machines, or a MachineSet without one, becomes a [rollout.Family]. What it returns depends on its
// arguments only: it asks nobody, and changes nothing that it is given.
package machine
