package plan

import (
	"fmt"
	"sort"
	"strings"

	"kubeone/internal/decide"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/desired"
	"kubeone/internal/observed"
	"kubeone/internal/problem"
)

// Input is all that a plan depends on.
type Input struct {
	Decide decide.Input // the world as it is
	// FirstContacts are fingerprints of host keys that approval of the plan records, by host ID.
	FirstContacts map[string]string
}

// Build decides, plans the route, imagines the world after it, and decides again, until nothing remains to do, or what
// follows cannot be known before the steps have run. It returns the decisions too, the first one first.
func Build(in Input) (Plan, []decide.Decision) {
	b := &builder{in: in.Decide, is: clone(in.Decide.Is), names: displayNames(in.Decide)}
	b.plan = Plan{Format: FormatVersion, Cluster: in.Decide.Want.Name, FirstContacts: in.FirstContacts, Hosts: b.names}
	decisions := b.routes()
	b.finish(decisions[0])
	return b.plan, decisions
}

// routes decides and plans, again and again, until nothing more can be planned. It returns the decisions.
func (b *builder) routes() []decide.Decision {
	var decisions []decide.Decision
	for len(decisions) < maxRoutes {
		next := b.in
		next.Is = b.is
		d := decide.Decide(next)
		decisions = append(decisions, d)
		if !b.follow(d) {
			break
		}
	}
	return decisions
}

// maxRoutes ends a plan that would not; each route of a plan leaves less to do.
const maxRoutes = 16

type builder struct {
	in      decide.Input
	is      observed.World // as predicted so far
	names   map[string]string
	plan    Plan
	barrier []string // IDs that every later step needs: repairs come first
	first   string   // ID of the host whose uploads go before the other hosts'
	init    string   // ID of the step that creates the cluster, if there is one
	token   string   // ID of the step that makes the join token
	begun   []string // ID of the step that finishes a join which has reached etcd already
	addons  []string // IDs of the addons' steps
}

// follow plans one route. It returns whether another one may follow.
func (b *builder) follow(d decide.Decision) bool {
	if d.Route != fsm.Nothing || len(b.plan.Routes) == 0 {
		b.plan.Routes = append(b.plan.Routes, string(d.Route))
	}
	switch d.Route {
	case fsm.Install:
		if cni := b.in.Want.Network.CNI; !cni.CarriedOut() {
			b.block(fmt.Sprintf("the network plugin %s is not deployed by this version: use %s, or external and install it yourself",
				cni.Name, strings.Join(cni.Deployed(), ", ")))
			return false
		}
		b.install(d)
	case fsm.Join:
		b.join(d)
	case fsm.Repair:
		return b.repair(d)
	case fsm.Resources:
		b.resources(d)
	case fsm.Instruct:
		b.instruct(d)
		return false
	case fsm.Upgrade:
		return b.upgrade(d)
	case fsm.Reconfigure, fsm.DisasterRecovery:
		b.blocked(d)
		return false
	case fsm.Error:
		b.erred(d)
		return false
	default: // nothing
		return false
	}
	return true
}

func (b *builder) install(d decide.Decision) {
	leader := b.host(d.Leader)
	// What the leader needs travels first: while it creates the cluster, the others' follows.
	b.first = leader.ID
	for _, id := range d.Prepare {
		b.prepare(b.host(id), d)
	}
	b.prepare(leader, d)
	b.init = b.step(leader, Init, "create the cluster", "no control-plane host belongs to a cluster", Create, NoRisk,
		[]string{b.id(Images, leader)}, []string{"certificate authorities", "etcd, a single member", "API server, controller manager, scheduler", "kube-proxy and CoreDNS"})
	b.predictJoined(leader)
	for _, id := range d.Joins {
		if id != leader.ID {
			b.joinHost(b.host(id), leader, d)
		}
	}
	b.nodeReady(leader, b.init)
}

func (b *builder) join(d decide.Decision) {
	leader := b.host(d.Leader)
	for _, id := range d.Joins {
		h := b.host(id)
		b.prepare(h, d)
		b.joinHost(h, leader, d)
	}
}

// prepare plans what makes a bare host ready to join, unless that is planned already.
func (b *builder) prepare(h desired.Host, d decide.Decision) {
	if b.has(b.id(Prepare, h)) {
		return
	}
	seen := b.is.Hosts[h.ID]
	reason := "no Kubernetes on it"
	if d.Hosts[h.ID].Resume {
		reason = "an installation of ours that has not ended"
	}
	artifacts := b.in.Want.Artifacts[seen.Arch]
	id := b.step(h, Prepare, "install container runtime and kubelet", reason, Create, NoRisk, b.afterFirst(Prepare, h), binaryChanges(artifacts.BinariesFor(h.Role), seen))
	b.intent(id, func(i *Intent) {
		i.Uploads, i.Downloads = missingBinaries(artifacts.BinariesFor(h.Role), artifacts.Pushed, seen)
		i.Packages = seen.Tools
	})
	images := artifacts.ImagesFor(h.Role)
	id = b.step(h, Images, "import images", fmt.Sprintf("%s of Kubernetes %s", count(len(images), "image"), b.in.Want.KubernetesVersion), Create, NoRisk,
		append([]string{id}, b.afterFirst(Images, h)...), imageChanges(images))
	b.intent(id, func(i *Intent) { i.Uploads, i.Downloads = missingImages(images, artifacts.Pushed, seen) })
}

// afterFirst is the step of that kind on the host that goes first, unless that is this host.
func (b *builder) afterFirst(k Kind, h desired.Host) []string {
	if b.first == "" || b.first == h.ID {
		return nil
	}
	return []string{b.id(k, b.host(b.first))}
}

// joinHost plans a host's way into the cluster and predicts that it is a healthy member after it.
func (b *builder) joinHost(h, leader desired.Host, d decide.Decision) {
	needs := append(b.clearNode(h, d.Hosts[h.ID]), b.id(Images, h))
	if b.init != "" {
		needs = append(needs, b.init)
	} else {
		needs = append(needs, b.joinToken())
	}
	reason := "not a member of the cluster"
	if d.Hosts[h.ID].Resume {
		reason = "its join has not ended"
	}
	var last string
	if h.Role == desired.ControlPlane {
		pki := b.step(h, CopyPKI, "copy the CAs from "+b.names[leader.ID], reason, Create, NoRisk, needs, []string{"/etc/kubernetes/pki"})
		b.intent(pki, func(i *Intent) { i.Peer = leader.ID })
		prepared := b.step(h, JoinPrepare, "join: certificates and kubelet", reason, Create, NoRisk, []string{pki}, []string{"certificates", "kubelet started"})
		etcd := b.step(h, JoinEtcd, "join: etcd member", reason, Create, NoRisk, union([]string{prepared}, b.begun), []string{"etcd member, first as a learner"})
		if b.hasBegun(h) {
			b.begun = []string{etcd}
		}
		last = b.step(h, JoinFinish, "join: control plane", reason, Create, NoRisk, []string{etcd}, []string{"API server, controller manager, scheduler", "Node " + b.node(h)})
	} else {
		last = b.step(h, JoinWorker, "join as worker", reason, Create, NoRisk, needs, []string{"kubelet started", "Node " + b.node(h)})
	}
	b.predictJoined(h)
	b.nodeReady(h, last)
}

// hasBegun reports whether the host's unfinished join has got as far as etcd. Etcd takes one learner at a time: nobody else
// can be added before this one is finished.
func (b *builder) hasBegun(h desired.Host) bool {
	return b.in.Is.Hosts[h.ID].EtcdData == observed.Yes || b.in.Is.Etcd.Reached == observed.Yes && b.member(h) >= 0
}

// joinToken plans the token that joins a running cluster need, once.
func (b *builder) joinToken() string {
	if b.token == "" {
		b.token = b.clusterStep(JoinToken, "join-token", "make a join token", "hosts are to join", Create, nil, []string{"bootstrap token, valid for 15 minutes"})
	}
	return b.token
}

// nodeReady plans the end of a join: labels, annotations and taints on the Node, and the wait for it to be Ready. The
// addon that gives it a network is added to its needs when it is planned.
func (b *builder) nodeReady(h desired.Host, after string) {
	id := b.step(h, NodeReady, "Node Ready", "labels, annotations and taints of the manifest", Create, NoRisk, []string{after}, nil)
	b.intent(id, func(i *Intent) { i.Labels, i.Annotation, i.Taints = h.Labels, h.Annotations, h.Taints })
}

func (b *builder) resources(d decide.Decision) {
	for _, name := range d.Addons {
		var needs []string
		if b.init != "" {
			needs = []string{b.init}
		}
		id := b.clusterStep(ApplyAddon, "addon/"+name, "apply addon "+name, addonReason(b.is.API.Addons[name]), addonAction(b.is.API.Addons[name]), needs, nil)
		b.intent(id, func(i *Intent) { i.Addon, i.Digest = name, b.in.Addons[name] })
		b.addons = append(b.addons, id)
	}
	for _, id := range d.Metadata {
		if h := b.host(id); !b.has(b.id(NodeReady, h)) {
			step := b.step(h, NodeReady, "set labels, annotations and taints", "the Node's differ from the manifest", Change, NoRisk, nil, []string{"Node " + b.node(h)})
			b.intent(step, func(i *Intent) { i.Labels, i.Annotation, i.Taints = h.Labels, h.Annotations, h.Taints })
		}
	}
	b.uncordonLeft(d)
	b.staleNodes(d.StaleNodes)
	b.systemAddons(d)
	if len(d.Addons)+len(d.System) > 0 && !b.has("await-workloads") {
		b.clusterStep(AwaitWorkloads, "await-workloads", "wait for cluster DNS and addons", "addons were applied", Change, b.addons, nil)
	}
	if d.Record {
		b.saveRecord("the cluster's record is of another manifest")
	}
	b.predictResources()
}

func addonReason(had string) string {
	if had == "" {
		return "not in the cluster"
	}
	return "the cluster has an older version of it"
}

func addonAction(had string) Action {
	if had == "" {
		return Create
	}
	return Change
}

// finish adds what every run that changes something ends with, and what the reader should know.
func (b *builder) finish(first decide.Decision) {
	if b.joins() {
		b.revokeToken()
	}
	if len(b.plan.Steps) > 0 && (b.init != "" || b.in.Is.API.Reached == observed.Yes) {
		b.saveRecord("what this run did")
	}
	for i := range b.plan.Steps {
		s := &b.plan.Steps[i]
		if s.Intent.Kind == NodeReady {
			s.Needs = union(s.Needs, b.addons)
		}
		if s.ID == "await-workloads" {
			s.Needs = union(s.Needs, b.nodesReady())
		}
		if s.Intent.Kind == SaveRecord {
			s.Needs = b.others(s.ID)
		}
	}
	for _, w := range first.Warnings {
		b.plan.Notes = append(b.plan.Notes, problemText(b.names, w))
	}
	for _, f := range b.in.Want.NotCarriedOut {
		b.plan.Notes = append(b.plan.Notes, f+" is not carried out by this version")
	}
}

func problemText(names map[string]string, p problem.Problem) string {
	text := p.What()
	if p.Host != "" {
		text = names[p.Host] + ": " + text
	}
	if do := p.Do(); do != "" {
		text += "; " + do
	}
	return text
}

func (b *builder) joins() bool {
	for _, s := range b.plan.Steps {
		switch s.Intent.Kind {
		case Init, JoinToken, JoinWorker, JoinPrepare:
			return true
		}
	}
	return false
}

// revokeToken plans the token's end, after the last host that needs it.
func (b *builder) revokeToken() {
	var needs []string
	for _, s := range b.plan.Steps {
		switch s.Intent.Kind {
		case Init, JoinWorker, JoinFinish, Rewrite:
			needs = append(needs, s.ID)
		}
	}
	b.clusterStep(RevokeToken, "revoke-token", "revoke the join token", "every host has joined", Remove, needs, nil)
}

func (b *builder) saveRecord(reason string) {
	if b.has("record") {
		return
	}
	b.clusterStep(SaveRecord, "record", "save manifest and record", reason, Change, nil, []string{"ConfigMap kube-system/kubeone, without secrets"})
}

func (b *builder) others(id string) []string {
	var out []string
	for _, s := range b.plan.Steps {
		if s.ID != id {
			out = append(out, s.ID)
		}
	}
	return out
}

func (b *builder) nodesReady() []string {
	var out []string
	for _, s := range b.plan.Steps {
		if s.Intent.Kind == NodeReady {
			out = append(out, s.ID)
		}
	}
	return out
}

func union(a, more []string) []string {
	seen := map[string]bool{}
	var out []string
	for _, s := range append(append([]string{}, a...), more...) {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
