// Package decide says what a cluster needs next. It compares what is wanted with what the probes found: the answers are
// events that drive a finite state machine, one question a state, and the exit state is the route: install, join,
// repair, and so on. The transition table is data (Table); it is checked, enumerated and drawn from there.
//
// The package is pure: no I/O, no clock, no log, no environment, no goroutine. Decide of equal inputs is equal.
//
// Unknown is never absent and never healthy. What a host or a member did not say counts as the worst it could be for
// everything that would change something, so that ignorance can only make a route milder.
package decide

import (
	"kubeone/internal/decide/atrest"
	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/decide/identity"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
)

// Input is all that a decision rests on.
type Input struct {
	Options
	Want desired.Cluster
	Is   observed.World
	// Now is etcd's members as they were observed, where Is is what steps that nobody has carried out yet would
	// leave; nil where Is itself was observed. A person may act before those steps have run.
	Now []observed.Member
	// Moved are hosts whose machine answers at another address than the manifest gives them. Contradictions are why
	// some host cannot be told from another: nothing may be done while there is one.
	Moved          []identity.Move
	Contradictions []identity.Contradiction
	// CA is the hash of the CA by which the caller knows the cluster; "" where it does not know it yet.
	CA string
	// Config is the wanted configuration digests by host ID and name. Drift is a name that the host has with another
	// value; a name that the host does not have is not drift, it has never been ours. With desired.DNSImageDigest every
	// difference is drift.
	Config map[string]map[string]string
	// Addons is the wanted addon digests by name. One that is missing in the cluster, or is another there, or of which
	// an object is not as it was applied, is to be applied.
	Addons map[string]string
	// System is the wanted image of what kubeadm applies to the cluster, by the pods' app: "kube-proxy", "kube-dns".
	// What is missing is not asked for.
	System map[string]string
	// About holds the IDs of the hosts that the decision is about; nil means all. The others may not have been
	// asked: such a host is what the API says of its Node, and etcd of its member where that is known. Nothing
	// is done outside.
	About map[string]bool
	// Limit holds the IDs of the only hosts that may be acted on; nil means all. Hosts outside are still looked at.
	Limit map[string]bool
}

// Decision is the route and all that a plan needs to follow it. Each list holds only what may be done now, on hosts
// inside the limit, in the manifest's order unless said otherwise; what the route and Also do not need is empty.
type Decision struct {
	Route fsm.Route `json:"route"`
	// Also is, for the route instruct, what can safely be done before the operator has acted: repair, join, resources.
	Also  []fsm.Route                     `json:"also,omitempty"`
	Trace []fsm.Visit                     `json:"trace"`
	Hosts map[string]condition.Assessment `json:"hosts"` // by host ID, every host of the manifest
	// ComingUp are members that answer, are not healthy, and may become so by themselves: what runs there may
	// have been started a moment ago. None of them may where etcd's quorum needs a host that does not answer, or
	// that has no data.
	ComingUp []string `json:"comingUp,omitempty"`

	// Leader is, for install, the host on which the cluster begins; for join, the healthy control-plane host from which
	// the PKI comes; for System, the one on which kubeadm applies it. Otherwise empty.
	Leader string `json:"leader,omitempty"`
	// Prepare is every host that gets binaries, images and a runtime: the leader of an installation and all that join.
	Prepare []string `json:"prepare,omitempty"`
	// Joins are the hosts that join, control plane first; etcd grows in this order, in which a join that has reached
	// etcd already goes before all others. Assessment.Resume says whose join goes on.
	Joins         []string            `json:"joins,omitempty"`
	Restarts      map[string][]string `json:"restarts,omitempty"`      // units to start again, in order, by host ID
	Regenerations map[string][]string `json:"regenerations,omitempty"` // what to regenerate, in order, by host ID
	// Restores are files that somebody has changed and that become again what they were, in order, by host ID. Where
	// the host's units do not run, they are started with that.
	Restores map[string][]string `json:"restores,omitempty"`
	// Renewals are the certificates near their end, by the ID of the host on which all that kubeadm made are renewed.
	Renewals map[string][]string `json:"renewals,omitempty"`
	Removals []Removal           `json:"removals,omitempty"` // dead etcd members that may go, in this order
	// Quarantines are hosts that lost their etcd data: what is left of it is quarantined, and then their members
	// are dead ones.
	Quarantines []string `json:"quarantines,omitempty"`
	// Names are what is to change in the names of API servers' certificates, by host ID. Diallers are the hosts whose
	// kubeconfigs are to dial the wanted endpoint, control plane first. Publish says that the cluster's own objects are
	// to name it, and the names that certificates have.
	Names    map[string]Names `json:"names,omitempty"`
	Diallers []string         `json:"diallers,omitempty"`
	Publish  bool             `json:"publish,omitempty"`
	// hosts of another version, or all when forced, control plane first
	Upgrades []string `json:"upgrades,omitempty"`
	Uncordon []string `json:"uncordon,omitempty"` // hosts whose Node an interrupted run of ours left cordoned
	// Drift are names of configurations that differ, sorted, by host ID; an upgrade brings them to its hosts.
	Drift map[string][]string `json:"drift,omitempty"`

	// Encryption is the next phase of a change of how Secrets are stored in etcd.
	Encryption *atrest.Decision `json:"encryption,omitempty"`

	Addons []string `json:"addons,omitempty"` // names of addons to apply, sorted
	// System are the apps of Input.System that run another image, or whose objects are not as they must be, sorted.
	System []string `json:"system,omitempty"`
	// Settings are the apps of Input.System whose settings are not as they must be, sorted.
	Settings []string `json:"settings,omitempty"`
	// RemoveAddons are names of addons that are to go.
	RemoveAddons []string `json:"removeAddons,omitempty"`
	// CreateMachines are the wanted MachineDeployments that are not there, and UpgradeMachines those that are there
	// with another version of the kubelet than they are to have, as "namespace/name".
	CreateMachines  []string `json:"createMachines,omitempty"`
	UpgradeMachines []string `json:"upgradeMachines,omitempty"`
	// ControllerFiles are the hosts that lack the controllers' image, or a bundle for them.
	ControllerFiles []string `json:"controllerFiles,omitempty"`

	Metadata []string `json:"metadata,omitempty"` // hosts whose Node lacks wanted labels, annotations or taints
	// StaleNodes are names of control-plane Nodes that are nobody's: no host's, and without a member of etcd.
	StaleNodes []string `json:"staleNodes,omitempty"`
	// AutoApproval says that kubeadm's rule is to go by which any join token is good for any Node. Nobody joins before.
	AutoApproval bool `json:"autoApproval,omitempty"`
	// Serving are the Nodes that wait for a serving certificate which they may have, sorted.
	Serving []string `json:"serving,omitempty"`
	Record  bool     `json:"record,omitempty"` // our record in the cluster is missing or of another manifest

	Problems     []problem.Problem     `json:"problems,omitempty"` // why the route is error; otherwise empty
	Warnings     []problem.Problem     `json:"warnings,omitempty"` // what does not stop anything
	Instructions []problem.Instruction `json:"instructions,omitempty"`
}

// Removal is an etcd member that is dead and whose host was replaced or taken out of the manifest. Apply makes sure
// again, by looks over 30 seconds, before it removes it.
type Removal struct {
	Member string `json:"member"`         // etcd's member ID, hex
	Name   string `json:"name,omitempty"` // its name; empty when it never started
	// Learner says that it is one: it has no vote, and goes whether it answers or not.
	Learner bool   `json:"learner,omitempty"`
	Host    string `json:"host,omitempty"` // the host ID that took its place; empty when none did
	Why     string `json:"why"`
}

// Decide asks the questions of the state machine until one ends at a route. It never fails: what cannot be decided is
// the route error, with its Problems.
func Decide(in Input) Decision {
	v := look(in)
	d := Decision{Hosts: v.assessments(), ComingUp: v.comingUp(), Warnings: v.warnings}
	d.Route, d.Trace = fsm.Cluster.Walk(v.ask)
	fill(&d, v)
	return d
}
