package controllers

import "kubeone/api/cluster/v1alpha1"

// Reasons of the conditions of Machines and MachineDeployments, beside those that providers give. docs/machines.md says
// what to do about each.
const (
	reasonAllocated    = "Allocated"
	reasonAsWanted     = "AsWanted"
	reasonAsRecorded   = "AsRecorded"
	reasonNodeReady    = "NodeReady"
	reasonNodeNotReady = "NodeNotReady"
	reasonNodeSilent   = "NodeSilent"
	reasonNoNode       = "NoNode"
	reasonUnknown      = "Unknown"

	reasonAllAvailable     = "AllAvailable"
	reasonUnavailable      = "Unavailable"
	reasonRollingOut       = "RollingOut"
	reasonComplete         = "Complete"
	reasonStalled          = "ProgressDeadlineExceeded"
	reasonNotHeld          = "NotHeld"
	reasonTooManyUnhealthy = "TooManyUnhealthy"

	// reasonOtherProvider is of Events only: nothing is written to what is another program's.
	reasonOtherProvider = "OtherProvider"

	reasonInvalid     = string(v1alpha1.InvalidConfiguration)
	reasonUnsupported = string(v1alpha1.UnsupportedChange)
)
