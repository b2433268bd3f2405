// Package fsm holds the finite state machines with which decide finds a route: questions, answers and a transition
// table that tests check and enumerate. One is for a cluster, one for a single worker of a Machine. The caller answers
// the questions.
package fsm

// Route names an exit state, and so what to do.
type Route string

// The routes.
const (
	Install Route = "install" // no control plane exists: create one, join everything
	Join    Route = "join"    // a healthy cluster lacks hosts of the manifest
	// units to start, files to regenerate or restore, certificates to renew, dead etcd members to remove
	Repair           Route = "repair"
	MoveEndpoint     Route = "move-endpoint"     // the API is not yet at the manifest's endpoint
	Instruct         Route = "instruct"          // the operator must act; Also lists what can be done before
	DisasterRecovery Route = "disaster-recovery" // etcd has lost quorum
	// another version, of the cluster or of some workers, or a forced roll-out
	Upgrade     Route = "upgrade"
	Reconfigure Route = "reconfigure" // the configuration of hosts differs from the manifest
	Encrypt     Route = "encrypt"     // the encryption of Secrets in etcd differs from the manifest
	Resources   Route = "resources"   // addons, node labels or the record differ
	Nothing     Route = "nothing"     // the cluster matches the manifest
	Error       Route = "error"       // something is wrong and must be fixed first

	// for a Machine's worker only
	Wait    Route = "wait"    // something is unknown, or settles by itself: check again later
	Return  Route = "return"  // no longer desired: it leaves the cluster, and its host becomes bare
	Abandon Route = "abandon" // likewise, but its host is given up: the cluster deletes its Node
)

// State is a state of the machine: a question, or an exit state whose name is a route.
type State string

// The questions about a cluster, in order.
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

// The questions about a worker, in order; AskConfiguration is the last.
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

// Visit is one transition of a decision, with its reason in words.
type Visit struct {
	State State  `json:"state"`
	Event Event  `json:"event"`
	To    State  `json:"to"`
	Why   string `json:"why"`
}
