package provider

// Working is the Reason of what waits for work of its own that is under way, and Retrying of what has failed and is
// tried again.
const (
	Working  = "Working"
	Retrying = "Retrying"
)

// Reasons of what waits about other settings of an instance.
const (
	// Reconfiguring waits for the instance, which is being given them: it may be out of service for that.
	Reconfiguring = "Reconfiguring"
	// SettingsAwaited waits until it is the instance's turn to get them.
	SettingsAwaited = "SettingsAwaited"
	// SettingsRefused waits for other settings: the instance has taken these back.
	SettingsRefused = "SettingsRefused"
)
