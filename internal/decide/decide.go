// Package decide says what a cluster needs next. It compares what is desired with what the probes found: the answers
// are events that drive a finite state machine, one question a state, and the exit state is the route: install, join,
// repair, and so on. The transition table is data (fsm.Machine.Table); it is checked, enumerated and drawn from there.
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
	"kubeone/internal/decide/match"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/nodename"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"slices"
)

// Input is all that a decision rests on.
type Input struct {
	Options
	Want desired.Cluster
	Is   observed.World
	// Now is etcd's members as they were observed, where Is is what steps that nobody has carried out yet would
	// leave; nil if Is itself was observed. A person may act before those steps have run.
	Now []observed.Member
	// Moved are hosts whose machine answers at another address than the manifest gives them. Contradictions are why
	// some host cannot be told from another: nothing may be done while there is one.
	Moved          []identity.Move
	Contradictions []identity.Contradiction
	// CA is the hash of the CA by which the caller knows the cluster; "" if it does not know it yet.
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
	// etcd already goes before all others. Assessment.Resume says whose join continues.
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
	v := newView(in)
	d := Decision{Hosts: v.assessmentsByID(), ComingUp: v.comingUp(), Warnings: v.warnings}
	d.Route, d.Trace = fsm.Cluster.Walk(v.answerQuestion)
	fillDecision(&d, v)
	return d
}

// view is an Input looked at once: what the questions need, worked out from the facts.
type view struct {
	in       *Input
	hosts    []hostState // every host of the manifest, control plane first, in its order
	cps      int         // how many of hosts are control plane
	ca       string
	claims   []string // CA hashes that claim to be this cluster's, if more than one does
	epoch    int      // how often the cluster has been recovered
	etcd     membership
	running  versions
	taken    nodename.Names
	nodes    match.Nodes
	unfit    []problem.Problem // why nothing can be done at all
	warnings []problem.Problem
}

// hostState is one host: wanted, observed and assessed.
type hostState struct {
	*desired.Host
	condition.Assessment
	is      observed.Host
	node    *observed.Node // nil: none, or not known
	inLimit bool           // inside the limit
	// wantKubelet is the desired version of the host's kubelet.
	wantKubelet string
	// midUpgrade says that its upgrade has begun, and that what is wrong with it is what the rest of the upgrade writes
	// and starts again.
	midUpgrade bool
	// leftAlone says that it is a worker that stops no others although it is not what it should be.
	leftAlone bool
	// refused is why the host must not have the name that it gives itself; nil if it may, or the manifest gives it.
	refused *problem.Problem
	// reported says that the host was not asked, because the decision is not about it, and that the API speaks for it.
	reported bool
}

// newView works out the view of an Input.
func newView(in Input) *view {
	in.Limit = limitedTo(in.Limit, in.About)
	v := &view{in: &in, cps: len(in.Want.ControlPlane), nodes: match.IndexNodes(in.Is.API.Nodes)}
	v.epoch = condition.Epoch(&in.Want, &in.Is)
	v.ca, v.claims = condition.ClusterCA(&in.Want, &in.Is)
	if in.CA != "" {
		v.ca, v.claims = in.CA, nil
	}
	v.hosts = make([]hostState, v.cps+len(in.Want.Workers))
	for i := range v.hosts {
		if i < v.cps {
			v.assessHost(&v.hosts[i], &in.Want.ControlPlane[i])
		} else {
			v.assessHost(&v.hosts[i], &in.Want.Workers[i-v.cps])
		}
	}
	v.refuseNames()
	v.leaveAlone()
	v.etcd = v.countVoters()
	for i := range v.hosts {
		v.hosts[i].midUpgrade = v.goesOn(&v.hosts[i])
	}
	v.running = v.collectVersions()
	v.unfit, v.warnings = v.checkFitness()
	return v
}

// limitedTo returns the hosts of a limit that the decision is about, too.
func limitedTo(limit, about map[string]bool) map[string]bool {
	switch {
	case about == nil:
		return limit
	case limit == nil:
		return about
	}
	both := map[string]bool{}
	for id, inside := range limit {
		if inside && about[id] {
			both[id] = true
		}
	}
	return both
}

// workersOnly reports whether the decision is about workers, so that the control plane is what the API says of it.
func (v *view) workersOnly() bool {
	return v.in.About != nil && !slices.ContainsFunc(v.controlPlane(), func(s hostState) bool {
		return v.in.About[s.ID]
	})
}

// etcdKnown reports whether enough is known of etcd for what the decision is about. An API that answers has an etcd
// with a quorum, and workers are not concerned with more.
func (v *view) etcdKnown() bool {
	return v.etcd.listed || v.workersOnly() && v.in.Is.API.Reached == observed.Yes
}

// assessHost assesses one host.
func (v *view) assessHost(s *hostState, w *desired.Host) {
	s.Host, s.is, s.inLimit = w, v.in.Is.Hosts[w.ID], v.in.Limit == nil || v.in.Limit[w.ID]
	s.wantKubelet = v.in.Want.KubeletVersion(*w)
	cx := condition.HostContext{
		Cluster: v.in.Want.Name, CA: v.ca, Version: v.in.Want.KubernetesVersion, API: v.in.Is.API.Reached,
		Etcd: v.hasMemberList(), Epoch: v.epoch, NoCNI: v.withoutCNI(),
	}
	if cx.API == observed.Yes {
		s.node = v.nodes.Of(w, &s.is)
		cx.Node = s.node
	}
	if cx.Etcd == observed.Yes && w.Role == desired.ControlPlane {
		cx.Member = match.Member(v.in.Is.Etcd.Members, w, match.NodeName(w, &s.is, s.node))
	}
	if s.reported = v.in.About != nil && !v.in.About[w.ID] && s.is.Reach == observed.NotAsked; s.reported {
		s.Assessment = condition.Reported(w, cx)
		return
	}
	s.Assessment = condition.Classify(w, &s.is, cx)
}

// hasMemberList reports whether etcd's list of members is known.
func (v *view) hasMemberList() observed.Tri {
	if v.in.Is.Etcd.Reached == observed.Yes && len(v.in.Is.Etcd.Members) > 0 {
		return observed.Yes
	}
	return observed.Unknown
}

// withoutCNI reports whether the network plugin is ours to apply and has not been applied yet.
func (v *view) withoutCNI() bool {
	name := v.in.Want.Network.CNI.Name
	_, wanted := v.in.Addons[name]
	_, applied := v.in.Is.API.Addons[name]
	return wanted && !applied && !v.addonsUnknown() && v.in.Is.API.Reached == observed.Yes
}

func (v *view) controlPlane() []hostState { return v.hosts[:v.cps] }

func (v *view) workers() []hostState { return v.hosts[v.cps:] }

// idsWhere returns the IDs of those hosts that satisfy the condition, in order.
func idsWhere(hosts []hostState, is func(*hostState) bool) []string {
	var ids []string
	for i := range hosts {
		if is(&hosts[i]) {
			ids = append(ids, hosts[i].ID)
		}
	}
	return ids
}

// countConditions counts the hosts in one of the conditions.
func countConditions(hosts []hostState, conditions ...condition.Condition) int {
	n := 0
	for i := range hosts {
		for _, c := range conditions {
			if hosts[i].Condition == c {
				n++
			}
		}
	}
	return n
}

func (v *view) assessmentsByID() map[string]condition.Assessment {
	out := make(map[string]condition.Assessment, len(v.hosts))
	for i := range v.hosts {
		out[v.hosts[i].ID] = v.hosts[i].Assessment
	}
	return out
}

// displayName returns how a sentence names the host: its Node's name where that is known, else its ID.
func (s *hostState) displayName() string {
	switch {
	case s.Hostname != "":
		return s.Hostname
	case s.Node != "":
		return s.Node
	}
	return s.ID
}

// namesOf returns the names of the hosts that satisfy the condition, in order.
func namesOf(hosts []hostState, is func(*hostState) bool) []string {
	var out []string
	for i := range hosts {
		if is(&hosts[i]) {
			out = append(out, hosts[i].displayName())
		}
	}
	return out
}

// joinedNames names the hosts that satisfy the condition, as a sentence has them.
func joinedNames(hosts []hostState, is func(*hostState) bool) string {
	return problem.List(namesOf(hosts, is))
}
