// Package controllers carries out the Machine API's objects in a running cluster: one reconciler for Machines, which
// knows providers and no host, and one for families of them (MachineDeployments with their MachineSets, or MachineSets
// alone), which makes the writes that package rollout plans.
//
// Nothing is remembered between two calls that the objects, the providers and the Nodes do not say; a process that ends
// anywhere is gone on from by the next one. Nothing is written where nothing changes.
package controllers
