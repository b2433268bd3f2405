// Package fsm is the finite state machines by which decide finds a route: questions, answers, and a transition table
// that is checked, enumerated and drawn. One is about a cluster, and one about a single worker that is a Machine. What
// the answers are is asked of the caller.
package fsm

// Route is what is to be done: the name of an exit state.
type Route string

// The routes.
const (
	Install Route = "install" // no control plane exists: make one, join everything
	Join    Route = "join"    // a healthy cluster lacks hosts of the manifest
	// units to start, files to regenerate or to restore, certificates to renew, dead etcd members to remove
	Repair           Route = "repair"
	MoveEndpoint     Route = "move-endpoint"     // the API is not yet where the manifest has its users look for it
	Instruct         Route = "instruct"          // the operator must act; Also says what can be done before
	DisasterRecovery Route = "disaster-recovery" // etcd has lost its quorum
	// another version, of the cluster or of some workers, or a forced roll-out
	Upgrade     Route = "upgrade"
	Reconfigure Route = "reconfigure" // the configuration of hosts differs from the manifest
	Encrypt     Route = "encrypt"     // Secrets are stored in etcd otherwise than the manifest wants
	Resources   Route = "resources"   // addons, node labels or our record differ
	Nothing     Route = "nothing"     // the cluster matches the manifest
	Error       Route = "error"       // something is wrong that must be put right first

	// of a Machine's worker alone
	Wait    Route = "wait"    // something is not known, or comes automatically: look again later
	Return  Route = "return"  // it is not wanted any more: it leaves the cluster, and its host becomes bare
	Abandon Route = "abandon" // likewise, but nobody waits for its host any more: the cluster forgets its Node
)

// State is a state of the machine: a question, or an exit state whose name is a route.
type State string

// The questions about a cluster, in the order in which they are asked.
const (
	AskHosts         State = "hosts"
	AskProvisioned   State = "provisioned"
	AskControlPlane  State = "control-plane"
	AskQuorum        State = "quorum"
	AskRepairable    State = "repairable"
	AskEndpoint      State = "endpoint"
	AskMissing       State = "missing"
	AskWorkers       State = "workers"
	AskVersion       State = "version"
	AskConfiguration State = "configuration"
	AskEncryption    State = "encryption"
	AskObjects       State = "objects"
)

// The questions about a worker, in the order in which they are asked; at last there is AskConfiguration.
const (
	AskWanted      State = "wanted"
	AskReturned    State = "returned"
	AskHost        State = "host"
	AskMember      State = "member"
	AskMayJoin     State = "may-join"
	AskHealthy     State = "healthy"
	AskCredentials State = "credentials"
	AskVersions    State = "versions"
	AskNode        State = "node"
)

// Event is an answer to a question.
type Event string

// The answers.
const (
	OnFit           Event = "fit"
	OnUnfit         Event = "unfit"
	OnYes           Event = "yes"
	OnNo            Event = "no"
	OnNotKnown      Event = "not known"
	OnHealthy       Event = "healthy"
	OnUnhealthy     Event = "unhealthy"
	OnSatisfied     Event = "satisfied"
	OnRecoverable   Event = "recoverable"
	OnLost          Event = "lost"
	OnUnitsStopped  Event = "units stopped"
	OnRegenerable   Event = "to be regenerated"
	OnMemberDead    Event = "member dead"
	OnDataLost      Event = "data lost"
	OnEdited        Event = "files edited"
	OnEnding        Event = "certificates ending"
	OnNone          Event = "none"
	OnMissing       Event = "missing"
	OnMissingLater  Event = "missing, other version"
	OnSame          Event = "same"
	OnHigher        Event = "higher"
	OnForced        Event = "forced"
	OnLower         Event = "lower"
	OnSkipsMinor    Event = "skips a minor"
	OnSkew          Event = "skew"
	OnDiffers       Event = "differs"
	OnCurrent       Event = "current"
	OnStale         Event = "stale"
	OnNotRepairable Event = "not repairable"
	OnGivenUp       Event = "given up"
	OnForeign       Event = "somebody else's"
	OnLater         Event = "not now"
)

// Transition is one row of the table: in state From, the answer On leads to To.
type Transition struct {
	From State `json:"from"`
	On   Event `json:"on"`
	To   State `json:"to"`
}

// Visit is one transition that a decision made, and the reason in words.
type Visit struct {
	State State  `json:"state"`
	Event Event  `json:"event"`
	To    State  `json:"to"`
	Why   string `json:"why"`
}
