package provider

// Working is the reason while a step is in progress, and Retrying after a failure that is retried.
const (
	Working  = "Working"
	Retrying = "Retrying"
)

// Reasons of an instance whose settings differ from the desired ones.
const (
	// Reconfiguring: the instance is applying the settings and may be out of service.
	Reconfiguring = "Reconfiguring"
	// SettingsAwaited: it is not yet the instance's turn.
	SettingsAwaited = "SettingsAwaited"
	// SettingsRefused: the instance has reverted the settings and waits for others.
	SettingsRefused = "SettingsRefused"
)
