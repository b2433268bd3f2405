// Package controllers reconciles the Machine API in a running cluster. One reconciler handles Machines through
// providers. Two others handle families: MachineDeployments with their MachineSets, and MachineSets alone. They make
// the writes that package rollout plans.
//
// All lasting state is in the objects, the providers and the Nodes, so a new process resumes where the last one
// stopped. Unchanged objects are not written.
package controllers
