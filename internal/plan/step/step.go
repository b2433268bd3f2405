// Package step defines the kinds of steps in a plan. Everything about a kind is in one row of one table: where it runs,
// what it changes, its parameters, the secrets that it may read, what etcd must allow before it, the Event that it
// leaves, and its predicted effect. Code that runs, shows or simulates plans uses this table, and does not name kinds.
//
// A kind is a constant, a type for its parameters if it has any, its row, and the function that predicts its effect;
// they stand together in the file of the kinds that serve the same end (join.go, upgrade.go, …). Like all that plans,
// this package sees no network, clock or goroutine.
package step

import (
	"kubeone/internal/model/desired"
)

// Kind is what sort of change a step is. Its methods answer from the table; of a kind that is not in it
// they know nothing.
type Kind string

// Intent is what a step is to bring about: its kind, what most kinds need to know, and the parameters of that kind.
type Intent struct {
	Kind     Kind         `json:"kind"`
	Role     desired.Role `json:"role,omitempty"`
	NodeName string       `json:"nodeName,omitempty"`
	Version  string       `json:"version,omitempty"` // of Kubernetes
	Arch     string       `json:"arch,omitempty"`
	// Digest is the sha256 (hex) of the content that the step brings: the script of its host, the objects of its addon.
	Digest string `json:"digest,omitempty"`
	// Params are the kind's own parameters; nil is their zero value. In JSON they are next to the fields above.
	Params Params `json:"-"`
}

// Params are the parameters of one kind: a value type in that kind's file.
type Params interface {
	Kind() Kind
}

// ParamsOf returns an intent's parameters, which are zero for an intent of another kind.
func ParamsOf[P Params](i Intent) P {
	params, _ := i.Params.(P)
	return params
}

// With returns the intent that has these parameters, and nothing else yet.
func With(p Params) Intent { return Intent{Kind: p.Kind(), Params: p} }

// Content is what must be uploaded to a host for a step. It is part of the parameters of the kinds that need any.
type Content struct {
	Uploads   []string `json:"uploads,omitempty"`   // sha256 digests (hex) of what is uploaded before the step runs
	Downloads []string `json:"downloads,omitempty"` // URLs and images that the host fetches itself
}

func (c Content) content() Content { return c }

// Content returns what must be uploaded to the host for the step.
func (i Intent) Content() Content {
	if of, ok := i.Params.(interface{ content() Content }); ok {
		return of.content()
	}
	return Content{}
}

// Death is part of the parameters of steps that remove what is dead.
type Death struct {
	// Peer is the ID of the host whose member or Node goes; "" if it has no host.
	Peer string `json:"peer,omitempty"`
	// Confirm makes the step wait until what goes is known to be dead; its kind says how.
	Confirm bool `json:"confirm,omitempty"`
}

func (d Death) death() Death { return d }

// ConfirmDead returns the ID of the host that must be found dead before the step; "" if there is none.
func (i Intent) ConfirmDead() string {
	if of, ok := i.Params.(interface{ death() Death }); ok && of.death().Confirm {
		return of.death().Peer
	}
	return ""
}

// Place says where a step runs.
type Place string

// The places.
const (
	OnHost      Place = "on a host"       // as a stage of the host's script, of the kind's name
	ThroughAPI  Place = "through the API" // of Kubernetes
	ThroughEtcd Place = "through etcd"    // with no API server needed
	OnOperator  Place = "where kubeone runs"
)

// Concern is whose business a step is, and so what must be locked before it.
type Concern string

// The concerns.
const (
	TheCluster Concern = ""     // also of a kind that is known nowhere
	ItsHost    Concern = "host" // if the host is a worker, only that host
	ItsRun     Concern = "run"  // what no other run knows of
)

// Secret is something that only a stage may read, and only while it runs.
type Secret string

// The secrets.
const (
	NewTokenSecret  Secret = "new token"       // a join token that the cluster is to begin with
	TokenSecret     Secret = "join token"      // one that the cluster knows
	DiscoverySecret Secret = "discovery"       // the cluster's address and CA, for the verification by a join
	PKISecret       Secret = "pki"             // CAs and service-account keys of another control-plane host
	BackupSecret    Secret = "backup"          // the same, and the configuration of encryption, of a backup
	ComponentSecret Secret = "component files" // those of the control plane's components that are secret
	// CredentialsSecret is what the host is to have for registries and proxies, if there is anything.
	CredentialsSecret Secret = "credentials"
	// EncryptionSecret is the API server's configuration for the encryption of Secrets, with its keys.
	EncryptionSecret Secret = "encryption"
	// RotationSecret is what a host is to have of the authorities whose keys are rotated.
	RotationSecret Secret = "rotation"
)

// Group is the part of a run to which a step belongs, in a reader's words.
type Group string

// The groups.
const (
	groupPrepare    Group = "prepare"
	groupImages     Group = "images"
	groupInit       Group = "init"
	groupJoins      Group = "joins"
	groupReady      Group = "node ready"
	groupAddons     Group = "addons"
	groupFetch      Group = "fetch"
	groupSnapshots  Group = "snapshots"
	groupUpgrade    Group = "upgrade"
	groupEncryption Group = "encryption"
	groupRotation   Group = "rotation"
	groupRecovery   Group = "recovery"
	groupRepairs    Group = "repairs"
	groupEndpoint   Group = "endpoint"
	groupDrain      Group = "drain"
	groupRemovals   Group = "removals"
	groupBooks      Group = "tokens and record"
	groupHooks      Group = "hooks"
)
