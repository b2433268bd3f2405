// Package plan turns a route into steps: a directed acyclic graph of typed intents, each with its host, its reason, its
// risk and what it will change. A Plan is a value with a digest: it is what is printed, confirmed, saved, compared and
// run. Nothing runs that is not in it.
package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"kubeone/internal/desired"
	"kubeone/internal/problem"
)

// Plan is all that one run will do.
type Plan struct {
	Format  int      `json:"format"` // FormatVersion
	Cluster string   `json:"cluster"`
	Routes  []string `json:"routes"` // the exit states that led here, in order
	Steps   []Step   `json:"steps"`
	// Operator is what a person must do; apply cannot.
	Operator []problem.Instruction `json:"operator,omitempty"`
	// Notes are facts that the reader should know before saying yes: warnings, first contacts, fields not carried out.
	Notes []string `json:"notes,omitempty"`
	// Again says why the plan ends before the cluster is as wanted: what follows cannot be known before it has run.
	Again string `json:"again,omitempty"`
	// Blocked is a route that this version plans and does not carry out; apply stops before the first step.
	Blocked string `json:"blocked,omitempty"`
	// Unresolved says, line by line, what could not be found out of what the steps install. Such a plan is for reading: it has
	// no digest, and is not carried out.
	Unresolved []string `json:"unresolved,omitempty"`
	// FirstContacts are fingerprints of host keys, by host ID, that approval of this plan records.
	FirstContacts map[string]string `json:"firstContacts,omitempty"`
	Hosts         map[string]string `json:"hosts"` // display name by host ID
}

// FormatVersion is the version of a saved plan's format.
const FormatVersion = 1

// Step is one intent on one host, or on the cluster when Host is empty.
type Step struct {
	ID     string   `json:"id"` // unique in the plan and stable: "join-etcd/cp-2"
	Host   string   `json:"host,omitempty"`
	Intent Intent   `json:"intent"`
	Needs  []string `json:"needs,omitempty"` // IDs of steps that must have succeeded
	After  []string `json:"after,omitempty"` // IDs of steps that must be over, however they ended
	Action Action   `json:"action"`
	Title  string   `json:"title"`  // "join as control plane"
	Reason string   `json:"reason"` // "not a member of the cluster"
	Risk   Risk     `json:"risk"`
	// Changes is what a reader will find changed: files, units, members, objects.
	Changes []string `json:"changes,omitempty"`
}

// Action is what a step means for its host; its value is the symbol that is printed.
type Action string

// The actions.
const (
	Create  Action = "+"
	Change  Action = "~"
	Replace Action = "-/+"
	Remove  Action = "-"
	MustAct Action = "!"
)

// Risk is what running workloads notice of a step.
type Risk string

// The risks, least first.
const (
	NoRisk   Risk = "none"
	Restarts Risk = "restarts a component"
	Drains   Risk = "drains a node"
)

// Intent is what a step is to bring about: its kind, and the parameters of that kind. The script package renders those
// that concern a host, the cluster package carries out those that concern the API.
type Intent struct {
	Kind Kind `json:"kind"`

	Role       desired.Role      `json:"role,omitempty"`
	NodeName   string            `json:"nodeName,omitempty"`
	Version    string            `json:"version,omitempty"`
	Arch       string            `json:"arch,omitempty"`
	Units      []string          `json:"units,omitempty"`     // RestartUnits: which
	Parts      []string          `json:"parts,omitempty"`     // Rewrite: which, in order
	Peer       string            `json:"peer,omitempty"`      // host ID of the other side: where the PKI comes from, which member goes
	Member     string            `json:"member,omitempty"`    // etcd member ID
	Addon      string            `json:"addon,omitempty"`     // ApplyAddon: which
	Digest     string            `json:"digest,omitempty"`    // of the content that the step brings: configuration, addon, script stage
	Uploads    []string          `json:"uploads,omitempty"`   // sha256 digests of what is uploaded before the step runs
	Downloads  []string          `json:"downloads,omitempty"` // URLs that the host fetches itself
	Packages   []string          `json:"packages,omitempty"`  // distribution packages that are missing
	Labels     map[string]string `json:"labels,omitempty"`    // NodeMeta: to set; a key ending in "-" is removed
	Annotation map[string]string `json:"annotations,omitempty"`
	Taints     []desired.Taint   `json:"taints,omitempty"`
	Resume     bool              `json:"resume,omitempty"` // goes on with our own unfinished installation
	// Confirm makes a removal wait until what goes is known to be dead. RemoveEtcd and, of a host that did not answer,
	// DeleteNode: three probes over 30 seconds must find it so. DeleteNode otherwise: the Node must not be Ready. ResetHost:
	// the host's member must have left etcd.
	Confirm bool   `json:"confirm,omitempty"`
	Drain   *Drain `json:"drain,omitempty"` // DrainNode: how; nil is five minutes and then an error
	// Recovery is, for Restore, what the data comes from; nil otherwise.
	Recovery *Recovery `json:"recovery,omitempty"`
}

// Recovery is what a cluster's data is restored from.
type Recovery struct {
	From     Source `json:"from"`
	Snapshot string `json:"snapshot,omitempty"` // sha256 (hex) of the snapshot that is uploaded; "" for the member's own data
	Epoch    int    `json:"epoch"`              // how often the cluster has been recovered, this time included
	// EncryptionPath is where the backup's configuration of encryption at rest belongs; "" where it has none.
	EncryptionPath string `json:"encryptionPath,omitempty"`
}

// Source is a sort of copy of a cluster's data.
type Source string

// The sources.
const (
	SurvivingMember Source = "surviving-member" // what a control-plane host's own member has
	BareSnapshot    Source = "snapshot"         // a snapshot of etcd, without the cluster's keys
	FullBackup      Source = "backup"           // a snapshot with the CAs and service-account keys
)

// Drain is how a node is drained.
type Drain struct {
	TimeoutSeconds int `json:"timeoutSeconds,omitempty"` // 0 is five minutes
	// OnTimeout is what happens with pods that do not leave: "stop" (the default) opens the node again and ends the run,
	// "skip" opens it again and goes on with the next host, "force" deletes them.
	OnTimeout    string `json:"onTimeout,omitempty"`
	GraceSeconds *int   `json:"graceSeconds,omitempty"` // nil is each pod's own
	// Upgrade says that the node comes back: its etcd member must be dispensable meanwhile, and no other turn begins when this
	// fails.
	Upgrade bool `json:"upgrade,omitempty"`
}

// What happens with pods that do not leave in time.
const (
	StopOnTimeout  = "stop"
	SkipOnTimeout  = "skip"
	ForceOnTimeout = "force"
)

// Kind is what sort of change an intent is.
type Kind string

// The kinds that are one stage of a host's script.
const (
	Prepare      Kind = "prepare"       // packages, kernel settings, binaries, container runtime, kubelet unit
	Images       Kind = "images"        // images into the runtime
	Init         Kind = "init"          // a new cluster's first control-plane host
	CopyPKI      Kind = "pki"           // CAs and service-account keys from a living control-plane host
	JoinPrepare  Kind = "join-prepare"  // control plane: certificates, kubeconfigs, kubelet, up to etcd
	JoinEtcd     Kind = "join-etcd"     // control plane: member added as a learner and promoted
	JoinFinish   Kind = "join-finish"   // control plane: API server, controllers, marked as control plane
	JoinWorker   Kind = "join-worker"   // a worker
	RestartUnits Kind = "restart-units" // repair: units enabled and started again
	Rewrite      Kind = "rewrite"       // repair: certificates, kubelet credentials, static-pod manifests written again
	SetAside     Kind = "set-aside"     // repair: the control plane stopped, lost etcd data moved aside; the host joins anew
	ResetHost    Kind = "reset"         // the host bare and usable again

	Check               Kind = "check"                 // upgrade: all that the host's turn needs is there; nothing is changed
	Fetch               Kind = "fetch"                 // upgrade: binaries unpacked and images pinned beside those in use; nothing is switched
	Snapshot            Kind = "snapshot"              // a verified snapshot of etcd, kept on the host
	UpgradeControlPlane Kind = "upgrade-control-plane" // kubeadm, container runtime and kubelet of a drained control-plane host
	UpgradeWorker       Kind = "upgrade-worker"        // kubeadm, container runtime and kubelet of a drained worker
	SystemAddons        Kind = "system-addons"         // kube-proxy and cluster DNS as kubeadm applies them, from a control-plane host
	Fence               Kind = "fence"                 // recovery: etcd and API server stopped, their data moved aside
	Restore             Kind = "restore"               // recovery: etcd begins anew from a snapshot, as a cluster of one
)

// The kinds that are changes of the cluster through its API.
const (
	JoinToken      Kind = "join-token"      // #nosec G101 -- a bootstrap token, valid for 15 minutes
	RevokeToken    Kind = "revoke-token"    // the token gone
	NodeReady      Kind = "node-ready"      // serving certificates approved, labels, annotations and taints set, Ready awaited
	ApplyAddon     Kind = "apply-addon"     // an addon's objects, by server-side apply
	AwaitWorkloads Kind = "await-workloads" // cluster DNS and addons run everywhere they should
	SaveRecord     Kind = "save-record"     // the manifest without secrets and the run's record
	DrainNode      Kind = "drain-node"      // cordoned and drained
	Uncordon       Kind = "uncordon"        // Ready in the wanted version, and open for pods again
	DeleteNode     Kind = "delete-node"     // the Node object gone
	RemoveEtcd     Kind = "remove-etcd"     // a member out of etcd
)

// OnHost reports whether intents of this kind are a stage of a host's script.
func (k Kind) OnHost() bool {
	switch k {
	case Prepare, Images, Init, CopyPKI, JoinPrepare, JoinEtcd, JoinFinish, JoinWorker, RestartUnits, Rewrite, SetAside, ResetHost,
		SystemAddons, Check, Fetch, Snapshot, UpgradeControlPlane, UpgradeWorker, Fence, Restore:
		return true
	}
	return false
}

// Installs reports whether the step puts binaries or images of a release in place, or relies on their being there.
func (k Kind) Installs() bool {
	switch k {
	case Prepare, Images, Fetch, Check, UpgradeControlPlane, UpgradeWorker, Restore:
		return true
	}
	return false
}

// Empty reports whether there is nothing to do and nothing for the operator.
func (p Plan) Empty() bool {
	return len(p.Steps) == 0 && len(p.Operator) == 0 && p.Blocked == ""
}

// Complete reports whether nothing remains to be done when every step has succeeded, as far as that can be known.
func (p Plan) Complete() bool {
	return len(p.Operator) == 0 && p.Blocked == "" && p.Again == ""
}

// Digest is the sha256 (hex) of the plan's steps and what they do; notes and wording do not count. Two plans with equal
// digests do the same. It is empty for a plan with something unresolved: nobody knows what that does.
func (p Plan) Digest() string {
	if len(p.Unresolved) > 0 {
		return ""
	}
	type step struct {
		ID, Host string
		Intent   Intent
		Needs    []string
		After    []string
	}
	steps := make([]step, 0, len(p.Steps))
	for _, s := range p.Steps {
		steps = append(steps, step{s.ID, s.Host, s.Intent, s.Needs, s.After})
	}
	text, err := json.Marshal(struct {
		Format   int
		Cluster  string
		Contacts map[string]string
		Steps    []step
	}{p.Format, p.Cluster, p.FirstContacts, steps})
	if err != nil {
		panic(fmt.Sprintf("plan of %s cannot be encoded: %v", p.Cluster, err)) // only strings, ints and maps of strings
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Step returns the step with that ID, and whether there is one.
func (p Plan) Step(id string) (Step, bool) {
	for _, s := range p.Steps {
		if s.ID == id {
			return s, true
		}
	}
	return Step{}, false
}
