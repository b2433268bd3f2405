// Package controllers reconciles the Machine API in a running cluster. One reconciler handles Machines through
// providers. Two others handle families: MachineDeployments with their MachineSets, and MachineSets without a
// MachineDeployment. They carry out the writes that package rollout plans.
//
// All persistent state is in the objects, the providers and the Nodes. Therefore a new process continues where the last
// one stopped. Objects that do not change are not written.
package controllers
