package controllers

import "kubeone/api/cluster/v1alpha1"

// Condition reasons of Machines and MachineDeployments, in addition to those of providers. docs/machines.md says what
// to do about each of them.
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

	// reasonOtherProvider is used only in Events, because kubeone does not write objects of other programs.
	reasonOtherProvider = "OtherProvider"

	reasonInvalid     = string(v1alpha1.InvalidConfiguration)
	reasonUnsupported = string(v1alpha1.UnsupportedChange)
)
