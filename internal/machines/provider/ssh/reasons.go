package ssh

// Condition reasons of this provider. docs/machines.md says what to do about each of them.
const (
	reasonPoolBusy         = "PoolBusy"
	reasonPoolEmpty        = "PoolEmpty"
	reasonHostTaken        = "HostTaken"
	reasonHostBusy         = "HostBusy"
	reasonHostFailed       = "HostFailed"
	reasonHostSilent       = "HostSilent"
	reasonWaiting          = "Waiting"
	reasonVersionRefused   = "VersionRefused"
	reasonAPISilent        = "APISilent"
	reasonNoRecord         = "NoRecord"
	reasonRecordUnreadable = "RecordUnreadable"
	reasonNoRelease        = "NoRelease"
)
