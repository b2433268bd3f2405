package ssh

// Reasons of what waits, beside those that every provider may have. docs/machines.md says what to do about each.
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
