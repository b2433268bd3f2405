package provider

// Working is the reason while a step is in progress. Retrying is the reason after a failure that will be retried.
const (
	Working  = "Working"
	Retrying = "Retrying"
)

// Reasons of an instance whose settings differ from the desired ones.
const (
	// Reconfiguring means that the instance is applying the settings and may be out of service.
	Reconfiguring = "Reconfiguring"
	// SettingsAwaited means that the instance is waiting for its turn to apply the settings.
	SettingsAwaited = "SettingsAwaited"
	// SettingsRefused means that the instance has reverted the settings. It waits until they change.
	SettingsRefused = "SettingsRefused"
)
