// Package decide determines what a cluster needs next. It compares the desired state with the results of the probes. A
// finite state machine asks one question a state, and the answers are its events. The exit state is the route: install,
// join, repair, and so on. The transition table is data (fsm.Machine.Table), which tests check and enumerate.
//
// The package is pure: no I/O, no clock, no log, no environment, no goroutine. Equal inputs give equal decisions.
//
// Unknown never counts as absent or healthy. Before a change, whatever a host or member did not say counts as the worst
// case, so that missing information can only make a route milder.
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

// Input is everything that a decision depends on.
type Input struct {
	Options
	Want desired.Cluster
	Is   observed.World
	// Now holds the etcd members as observed, where Is predicts the world after steps that have not run yet; nil if Is
	// itself was observed. An operator may act before those steps have run.
	Now []observed.Member
	// Moved lists hosts whose machine answers at another address than the manifest's. Contradictions lists the reasons
	// why hosts cannot be told apart; nothing may be done while there is one.
	Moved          []identity.Move
	Contradictions []identity.Contradiction
	// CA is the hash of the CA that the caller knows for the cluster; "" if it does not know it yet.
	CA string
	// Config holds the desired configuration digests by host ID and name. A name with another value on the host is
	// drift. A name that is missing on the host is not drift, because kubeone has never configured it. With
	// desired.DNSImageDigest and the addons on hosts, every difference is drift.
	Config map[string]map[string]string
	// Addons holds the desired addon digests by name. An addon is applied if the cluster lacks it, has another digest,
	// or has an object of it that was changed since.
	Addons map[string]string
	// AddonManifests holds the digests of the published manifests with the objects of addons, by addon; "" for none.
	AddonManifests map[string]string
	// AddonObjects holds the objects of the desired addons, and of kubeone's own addons that are not desired, by addon.
	// It lacks addons whose published manifest is not available.
	AddonObjects map[string][]observed.AddonObject
	// CustomAddons lists the operator's own addons, in the order in which they are applied.
	CustomAddons []string
	// KnowsAddons says that every desired addon is in Addons: others that are in the cluster are removed.
	KnowsAddons bool
	// DeletedAddons lists the addons that the manifest asks to delete with everything that they created.
	DeletedAddons []string
	// HelmReleases lists the desired Helm releases, in the order in which they are applied. If KnowsAddons is true, other
	// releases that kubeone installed are uninstalled.
	HelmReleases []desired.HelmRelease
	// System holds the desired images of what kubeadm applies to the cluster, by the pods' app: "kube-proxy",
	// "kube-dns". Apps that are missing here are not compared.
	System map[string]string
	// About holds the IDs of the hosts that the decision is about; nil means all. Other hosts may not have been probed:
	// the API's Node, and etcd's member if known, stand for them. Nothing is done outside.
	About map[string]bool
	// Limit holds the IDs of the only hosts that may be changed; nil means all. Hosts outside still count.
	Limit map[string]bool
}

// Decision is the route and everything that a plan needs to follow it. Each list holds only what may be done now, on
// hosts inside the limit, in the manifest's order unless noted. What the route and Also do not need is empty.
type Decision struct {
	Route fsm.Route `json:"route"`
	// Also lists what route instruct can safely do before the operator acts: repair, join, resources.
	Also  []fsm.Route                     `json:"also,omitempty"`
	Trace []fsm.Visit                     `json:"trace"`
	Hosts map[string]condition.Assessment `json:"hosts"` // by host ID; has every host of the manifest
	// ComingUp lists members that answer, are unhealthy, and may recover by themselves, because they may have started a
	// moment ago. It is empty if etcd's quorum needs a host that does not answer or has no data.
	ComingUp []string `json:"comingUp,omitempty"`

	// Leader is, for install, the host where the cluster begins; for join, the healthy control-plane host that provides
	// the PKI; for System, the host where kubeadm applies it. Otherwise empty.
	Leader string `json:"leader,omitempty"`
	// Prepare lists every host that gets binaries, images and a runtime: an installation's leader and all hosts that
	// join.
	Prepare []string `json:"prepare,omitempty"`
	// Joins lists the hosts that join, control plane first. etcd grows in this order, so a join that has already
	// reached etcd precedes all others. Assessment.Resume marks a join that continues.
	Joins         []string            `json:"joins,omitempty"`
	Restarts      map[string][]string `json:"restarts,omitempty"`      // units to start again, in order, by host ID
	Regenerations map[string][]string `json:"regenerations,omitempty"` // what to regenerate, in order, by host ID
	// Restores lists changed files to restore, in order, by host ID. Stopped units are started with that.
	Restores map[string][]string `json:"restores,omitempty"`
	// Renewals lists the certificates that expire soon, by host ID. All certificates of kubeadm on those hosts are
	// renewed.
	Renewals map[string][]string `json:"renewals,omitempty"`
	Removals []Removal           `json:"removals,omitempty"` // dead etcd members to remove, in this order
	// Quarantines lists hosts that lost their etcd data. What is left of it is quarantined; then their members count as
	// dead.
	Quarantines []string `json:"quarantines,omitempty"`
	// Names holds the changes to the names in API server certificates, by host ID. Diallers lists the hosts whose
	// kubeconfigs must change to the desired endpoint, control plane first. Publish says that the cluster's own objects
	// must name the endpoint and the names in the certificates.
	Names    map[string]Names `json:"names,omitempty"`
	Diallers []string         `json:"diallers,omitempty"`
	Publish  bool             `json:"publish,omitempty"`
	// Upgrades lists hosts of another version, or all when forced, control plane first.
	Upgrades []string `json:"upgrades,omitempty"`
	Uncordon []string `json:"uncordon,omitempty"` // hosts whose Node an interrupted run left cordoned
	// Drift lists the names of configurations that differ, sorted, by host ID. An upgrade applies them to its hosts.
	Drift map[string][]string `json:"drift,omitempty"`

	// Encryption is the next phase of a change to the encryption of Secrets in etcd.
	Encryption *atrest.Decision `json:"encryption,omitempty"`

	Addons []string `json:"addons,omitempty"` // names of addons to apply, sorted
	// System lists the apps of Input.System with another image or with changed objects, sorted.
	System []string `json:"system,omitempty"`
	// Settings lists the apps of Input.System with other settings than the desired ones, sorted.
	Settings []string `json:"settings,omitempty"`
	// RemoveAddons lists the names of addons to remove.
	RemoveAddons []string `json:"removeAddons,omitempty"`
	// HelmReleases lists the Helm releases to install or upgrade, in their order, and RemoveReleases those to uninstall,
	// sorted; both as "namespace/name".
	HelmReleases   []string `json:"helmReleases,omitempty"`
	RemoveReleases []string `json:"removeReleases,omitempty"`
	// RemoveKubeProxy says that kube-proxy still runs, but the network plugin is to do its work.
	RemoveKubeProxy bool `json:"removeKubeProxy,omitempty"`
	// CreateMachines lists desired MachineDeployments that do not exist. UpgradeMachines lists those whose kubelet
	// version must change. Both as "namespace/name".
	CreateMachines  []string `json:"createMachines,omitempty"`
	UpgradeMachines []string `json:"upgradeMachines,omitempty"`
	// ControllerFiles lists the hosts that lack the controllers' image, or a bundle for them.
	ControllerFiles []string `json:"controllerFiles,omitempty"`

	Metadata []string `json:"metadata,omitempty"` // hosts whose Node lacks desired labels, annotations or taints
	// StaleNodes names control-plane Nodes without a host in the manifest and without a member of etcd.
	StaleNodes []string `json:"staleNodes,omitempty"`
	// AutoApproval says that kubeadm's rule that makes any join token good for any Node must be removed. No host joins
	// before that.
	AutoApproval bool `json:"autoApproval,omitempty"`
	// Serving lists the Nodes that wait for a serving certificate and may have it, sorted.
	Serving []string `json:"serving,omitempty"`
	Record  bool     `json:"record,omitempty"` // the record in the cluster is missing or of another manifest

	Problems     []problem.Problem     `json:"problems,omitempty"` // why the route is error; otherwise empty
	Warnings     []problem.Problem     `json:"warnings,omitempty"` // what the operator should know; stops nothing
	Instructions []problem.Instruction `json:"instructions,omitempty"`
}

// Removal is a dead etcd member whose host was replaced or removed from the manifest. Apply checks again for 30 seconds
// before it removes the member.
type Removal struct {
	Member string `json:"member"`         // etcd's member ID, hex
	Name   string `json:"name,omitempty"` // its name; empty when it never started
	// Learner says that the member has no vote; it is removed whether it answers or not.
	Learner bool   `json:"learner,omitempty"`
	Host    string `json:"host,omitempty"` // the host ID that took its place; empty if none did
	Why     string `json:"why"`
}

// Decide asks the questions of the state machine until it reaches a route. It never fails: what cannot be decided
// becomes route error, with Problems.
func Decide(in Input) Decision {
	v := newView(in)
	d := Decision{Hosts: v.assessmentsByID(), ComingUp: v.comingUp(), Warnings: v.warnings}
	d.Route, d.Trace = fsm.Cluster.Walk(v.answerQuestion)
	fillDecision(&d, v)
	return d
}

// view is an Input with the facts that the questions need, computed once.
type view struct {
	in       *Input
	hosts    []hostState // every host in the manifest, control plane first, in its order
	cps      int         // how many of hosts are control plane
	ca       string
	claims   []string // CA hashes claimed to be this cluster's, if there are several
	epoch    int      // number of recoveries of the cluster
	etcd     membership
	running  versions
	taken    nodename.Names
	nodes    match.Nodes
	unfit    []problem.Problem // why nothing can be done at all
	warnings []problem.Problem
}

// hostState is one host: desired, observed and assessed.
type hostState struct {
	*desired.Host
	condition.Assessment
	is      observed.Host
	node    *observed.Node // nil if there is none or it is not known
	inLimit bool           // inside the limit
	// wantKubelet is the desired version of the host's kubelet.
	wantKubelet string
	// midUpgrade says that the host's upgrade has begun, and that the rest of it may repair what is wrong with the
	// host.
	midUpgrade bool
	// leftAlone says that the host is a worker with a fault that does not stop the other hosts.
	leftAlone bool
	// refused is why the host must not have the name that it reports; nil if the name is accepted or comes from the
	// manifest.
	refused *problem.Problem
	// reported says that the host was not probed, because the decision is not about it, and that the API speaks for it.
	reported bool
}

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
		v.hosts[i].midUpgrade = v.canResumeUpgrade(&v.hosts[i])
	}
	v.running = v.collectVersions()
	v.unfit, v.warnings = v.checkFitness()
	return v
}

// limitedTo returns the hosts of limit that are also in about; nil means all.
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

// workersOnly reports whether the decision is about workers only, so that the API speaks for the control plane.
func (v *view) workersOnly() bool {
	return v.in.About != nil && !slices.ContainsFunc(v.controlPlane(), func(s hostState) bool {
		return v.in.About[s.ID]
	})
}

// etcdKnown reports whether enough is known of etcd for this decision. If the API answers, etcd has a quorum, and
// workers need no more than that.
func (v *view) etcdKnown() bool {
	return v.etcd.listed || v.workersOnly() && v.in.Is.API.Reached == observed.Yes
}

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

// hasMemberList reports whether the etcd member list is known.
func (v *view) hasMemberList() observed.Tri {
	if v.in.Is.Etcd.Reached == observed.Yes && len(v.in.Is.Etcd.Members) > 0 {
		return observed.Yes
	}
	return observed.Unknown
}

// withoutCNI reports whether kubeone deploys the network plugin and has not applied it yet.
func (v *view) withoutCNI() bool {
	if release, wanted := v.networkRelease(); wanted {
		_, applied := v.in.Is.API.HelmReleases[release.Key()]
		return !applied && v.in.About == nil && v.in.Is.API.Reached == observed.Yes
	}
	name := v.in.Want.Network.CNI.Name
	_, wanted := v.in.Addons[name]
	_, applied := v.in.Is.API.Addons[name]
	return wanted && !applied && !v.addonsUnknown() && v.in.Is.API.Reached == observed.Yes
}

func (v *view) controlPlane() []hostState { return v.hosts[:v.cps] }

func (v *view) workers() []hostState { return v.hosts[v.cps:] }

// idsWhere returns the IDs of the hosts that satisfy the predicate, in order.
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

// displayName returns the host's name for a sentence: its Node's name if known, else its ID.
func (s *hostState) displayName() string {
	switch {
	case s.Hostname != "":
		return s.Hostname
	case s.Node != "":
		return s.Node
	}
	return s.ID
}

// namesOf returns the names of the hosts that satisfy the predicate, in order.
func namesOf(hosts []hostState, is func(*hostState) bool) []string {
	var out []string
	for i := range hosts {
		if is(&hosts[i]) {
			out = append(out, hosts[i].displayName())
		}
	}
	return out
}

// joinedNames lists the hosts that satisfy the predicate, for a sentence.
func joinedNames(hosts []hostState, is func(*hostState) bool) string {
	return problem.List(namesOf(hosts, is))
}
