package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"kubeone/internal/decide"
	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/decide/preflight"
	"kubeone/internal/desired"
	"kubeone/internal/observed"
	"kubeone/internal/problem"
	"kubeone/internal/step"
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
	b := newBuilder(in.Decide)
	b.plan.FirstContacts = in.FirstContacts
	decisions := b.routes()
	why := ""
	if fields := in.Decide.Want.SecurityNotCarriedOut; len(fields) > 0 && b.plan.Blocked == "" {
		why = "this version does not carry out " + strings.Join(fields, ", ") +
			", and a cluster without what makes it safer is not what the manifest asks for; " +
			"take it out of the manifest to do without it"
	}
	if err := errors.Join(b.refused...); err != nil {
		why = err.Error()
	}
	if why != "" {
		return Plan{
			Format: FormatVersion, Cluster: b.plan.Cluster, Routes: b.plan.Routes, Hosts: b.names, Blocked: why,
		}, decisions
	}
	b.finish(decisions[0])
	return b.plan, decisions
}

// routes decides and plans, again and again, until nothing more can be planned. It returns the decisions.
func (b *builder) routes() []decide.Decision {
	var decisions []decide.Decision
	for len(decisions) < maxRoutes {
		next := b.in
		next.Is, next.CA = b.world.Is, b.world.CA
		if len(decisions) > 0 {
			next.Now = b.in.Is.Etcd.Members
		}
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
	in      decide.Input // with the world as it is
	world   *step.World  // as predicted so far
	names   map[string]string
	plan    Plan
	barrier []string // IDs that every later step needs: repairs come first
	first   string   // ID of the host whose uploads go before the other hosts'
	init    string   // ID of the step that creates the cluster, if there is one
	begun   []string // ID of the step that finishes a join which has reached etcd already
	addons  []string // IDs of the addons' steps
	// settings is the ID of the step that sets what is said of kube-proxy and cluster DNS, if there is one
	settings []string
	// published is the ID of the step that names the endpoint in the cluster's objects, if there is one
	published string
	refused   []error // why etcd does not allow steps of the plan
}

// newBuilder begins a plan that does these routes.
func newBuilder(in decide.Input, routes ...string) *builder {
	names := displayNames(in)
	return &builder{
		in: in, names: names, world: step.NewWorld(in, names, condition.EpochBegun(&in.Want, &in.Is)),
		plan: Plan{Format: FormatVersion, Cluster: in.Want.Name, Routes: routes, Hosts: names},
	}
}

// follow plans one route. It returns whether another one may follow.
func (b *builder) follow(d decide.Decision) bool {
	if d.Route != fsm.Nothing || len(b.plan.Routes) == 0 {
		b.plan.Routes = append(b.plan.Routes, string(d.Route))
	}
	switch d.Route {
	case fsm.Install:
		if cni := b.in.Want.Network.CNI; !cni.CarriedOut() {
			b.block(fmt.Sprintf("the network plugin %s is not deployed by this version: use %s, or external and "+
				"install it yourself",
				cni.Name, strings.Join(cni.Deployed(), ", ")))
			return false
		}
		b.install(d)
	case fsm.Join:
		b.join(d)
	case fsm.Repair:
		return b.repair(d)
	case fsm.MoveEndpoint:
		b.moveEndpoint(d)
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
	b.init = b.onHost(leader, Step{
		Intent: only(step.Init), Action: Create, Title: "create the cluster",
		Reason: "no control-plane host belongs to a cluster",
		Needs:  []string{b.id(step.Images, leader)},
		Changes: []string{
			"certificate authorities", "etcd, a single member", "API server, controller manager, scheduler",
			"kube-proxy and CoreDNS",
		},
	})
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
	if b.has(b.id(step.Prepare, h)) {
		return
	}
	seen := b.world.Is.Hosts[h.ID]
	reason := "no Kubernetes on it"
	if d.Hosts[h.ID].Resume {
		reason = "an installation of ours that has not ended"
	}
	packages := preflight.Packages(&seen)
	if len(packages) > 0 {
		reason += "; installs " + strings.Join(packages, " and ") + " from the host's own package source"
	}
	artifacts := b.artifacts(h)
	binaries, images := artifacts.BinariesFor(h.Role), artifacts.ImagesFor(h.Role)
	prepared := b.onHost(h, Step{
		Intent: step.With(step.PrepareParams{
			Content: missingBinaries(binaries, artifacts.Pushed, seen), Packages: packages,
		}),
		Action: Create, Title: "install container runtime and kubelet", Reason: reason,
		Needs: b.afterFirst(step.Prepare, h), Changes: append(packageChanges(seen), binaryChanges(binaries, seen)...),
	})
	b.onHost(h, Step{
		Intent: step.With(step.ImagesParams{Content: imageContent(images, artifacts.Pushed)}),
		Action: Create, Title: "import images",
		Reason: fmt.Sprintf("%s of Kubernetes %s", count(len(images), "image"), b.in.Want.KubernetesVersion),
		Needs:  append([]string{prepared}, b.afterFirst(step.Images, h)...), Changes: imageChanges(images),
	})
}

// afterFirst is the step of that kind on the host that goes first, unless that is this host.
func (b *builder) afterFirst(k step.Kind, h desired.Host) []string {
	if b.first == "" || b.first == h.ID {
		return nil
	}
	return []string{b.id(k, b.host(b.first))}
}

// joinHost plans a host's way into the cluster and predicts that it is a healthy member after it.
func (b *builder) joinHost(h, leader desired.Host, d decide.Decision) {
	needs := append(b.clearNode(h, d.Hosts[h.ID]), b.id(step.Images, h))
	if b.init != "" {
		needs = append(needs, b.init)
	}
	needs = append(needs, b.ownTokens()...)
	reason := "not a member of the cluster"
	if d.Hosts[h.ID].Resume {
		reason = "its join has not ended"
	}
	if h.Role == desired.ControlPlane {
		b.nodeReady(h, b.joinControlPlane(h, leader, reason, needs))
		return
	}
	b.nodeReady(h, b.onHost(h, Step{
		Intent: only(step.JoinWorker), Action: Create, Title: "join as worker", Reason: reason,
		Needs: needs, Changes: []string{"kubelet started", "Node " + b.node(h)},
	}))
}

// joinControlPlane plans how a control-plane host joins, and returns the last step of that.
func (b *builder) joinControlPlane(h, leader desired.Host, reason string, needs []string) string {
	pki := b.onHost(h, Step{
		Intent: step.With(step.CopyPKIParams{Peer: leader.ID}), Action: Create,
		Title:  "copy the CAs from " + b.names[leader.ID],
		Reason: reason, Needs: needs, Changes: []string{"/etc/kubernetes/pki"},
	})
	prepared := b.onHost(h, Step{
		Intent: only(step.JoinPrepare), Action: Create, Title: "join: certificates and kubelet", Reason: reason,
		Needs: []string{pki}, Changes: []string{"certificates", "kubelet started"},
	})
	begun := b.hasBegun(h)
	etcd := b.onHost(h, Step{
		Intent: only(step.JoinEtcd), Action: Create, Title: "join: etcd member", Reason: reason,
		Needs: union([]string{prepared}, b.begun), Changes: []string{"etcd member, first as a learner"},
	})
	if begun {
		b.begun = []string{etcd}
	}
	return b.onHost(h, Step{
		Intent: only(step.JoinFinish), Action: Create, Title: "join: control plane", Reason: reason,
		Needs: []string{etcd}, Changes: []string{"API server, controller manager, scheduler", "Node " + b.node(h)},
	})
}

// hasBegun reports whether the host's unfinished join has got as far as etcd. Etcd takes one learner at a time: nobody
// else can be added before this one is finished.
func (b *builder) hasBegun(h desired.Host) bool {
	return b.in.Is.Hosts[h.ID].EtcdData == observed.Yes || b.in.Is.Etcd.Reached == observed.Yes && b.member(h) >= 0
}

// ownTokens plans, once and where it is not so, that a join token is good for its own Node only. Whatever is given one
// needs that.
func (b *builder) ownTokens() []string {
	if b.world.Is.API.AutoApproval == observed.Yes {
		b.onCluster(string(step.RemoveAutoApproval), Step{
			Intent: only(step.RemoveAutoApproval), Action: Remove,
			Title:   "remove kubeadm's approval of any Node's certificate",
			Reason:  "with it, every join token is good for every Node",
			Changes: []string{"ClusterRoleBinding kubeadm:node-autoapprove-bootstrap"},
		})
	}
	if b.has(string(step.RemoveAutoApproval)) {
		return []string{string(step.RemoveAutoApproval)}
	}
	return nil
}

// nodeReady plans the end of a join: labels, annotations and taints on the Node, and the wait for it to be Ready. The
// addon that gives it a network is added to its needs when it is planned.
func (b *builder) nodeReady(h desired.Host, after string) {
	b.onHost(h, Step{
		Intent: nodeMeta(h), Action: Create, Title: "Node Ready",
		Reason: "labels, annotations and taints of the manifest",
		Needs:  []string{after},
	})
}

func nodeMeta(h desired.Host) step.Intent {
	return step.With(step.NodeReadyParams{Labels: h.Labels, Annotations: h.Annotations, Taints: h.Taints})
}

func (b *builder) resources(d decide.Decision) {
	for _, name := range d.Addons {
		var needs []string
		if b.init != "" {
			needs = []string{b.init}
		}
		had, intent := b.world.Is.API.Addons[name], step.With(step.ApplyAddonParams{Addon: name})
		intent.Digest = b.in.Addons[name]
		b.addons = append(b.addons, b.onCluster("addon/"+name, Step{
			Intent: intent, Action: addonAction(had), Title: "apply addon " + name,
			Reason: b.addonReason(name, had), Needs: needs,
		}))
	}
	for _, id := range d.Metadata {
		if h := b.host(id); !b.has(b.id(step.NodeReady, h)) {
			b.onHost(h, Step{
				Intent: nodeMeta(h), Action: Change, Title: "set labels, annotations and taints",
				Reason: "the Node's differ from the manifest", Changes: []string{"Node " + b.node(h)},
			})
		}
	}
	b.uncordonLeft(d)
	b.staleNodes(d.StaleNodes)
	if d.AutoApproval {
		b.ownTokens()
	}
	if len(d.Serving) > 0 {
		b.onCluster(string(step.ApproveServing), Step{
			Intent: only(step.ApproveServing), Action: Change,
			Title:   "approve serving certificates",
			Reason:  "kubelets wait for them: " + problem.List(d.Serving),
			Changes: []string{"CertificateSigningRequests of kubelets"},
		})
	}
	b.systemSettings(d)
	b.systemAddons(d)
	if len(d.Addons)+len(d.System)+len(d.Settings) > 0 && !b.has("await-workloads") {
		reason := "addons were applied"
		if len(d.Addons)+len(d.System) == 0 {
			reason = "settings were changed"
		}
		b.onCluster("await-workloads", Step{
			Intent: only(step.AwaitWorkloads), Action: Change, Title: "wait for cluster DNS and addons",
			Reason: reason,
			Needs:  b.addons,
		})
	}
	if d.Record {
		b.saveRecord("the cluster's record is of another manifest")
	}
}

func (b *builder) addonReason(name, had string) string {
	switch {
	case had == "":
		return "not in the cluster"
	case had != b.in.Addons[name]:
		return "the cluster has an older version of it"
	}
	return differences(b.world.Is.API.Compared[name].Differences)
}

// namedDifferences is how many are named in a reason.
const namedDifferences = 3

// differences says which objects are not as they must be.
func differences(of []observed.Difference) string {
	var parts []string
	for i, d := range of {
		if i == namedDifferences {
			parts = append(parts, fmt.Sprintf("and %d more", len(of)-i))
			break
		}
		parts = append(parts, d.String())
	}
	return strings.Join(parts, "; ")
}

func addonAction(had string) Action {
	if had == "" {
		return Create
	}
	return Change
}

// finish adds what every run that changes something ends with, and what the reader should know.
func (b *builder) finish(first decide.Decision) {
	b.revokeTokens()
	if len(b.plan.Steps) > 0 && (b.init != "" || b.in.Is.API.Reached == observed.Yes) {
		b.saveRecord("record this run")
	}
	for i := range b.plan.Steps {
		s := &b.plan.Steps[i]
		if s.Intent.Kind == step.NodeReady {
			s.Needs = union(s.Needs, b.addons)
		}
		if s.ID == "await-workloads" {
			s.Needs = union(union(s.Needs, b.nodesReady()), b.addons)
		}
		if s.Intent.Kind == step.SaveRecord {
			s.Needs = b.others(s.ID)
		}
	}
	if b.in.Want.Endpoint.Later != "" && b.in.Limit == nil && b.in.About == nil && len(b.plan.Steps) > 0 {
		b.plan.Again = cmp.Or(b.plan.Again, "the API's endpoint moves once the control plane is healthy")
	}
	for _, w := range first.Warnings {
		b.plan.Unlike = append(b.plan.Unlike, b.unlike(w)...)
		b.plan.Notes = append(b.plan.Notes, problemText(b.names, w))
	}
	b.plan.NotCarriedOut = b.in.Want.NotCarriedOut
	for _, f := range b.in.Want.NotCarriedOut {
		b.plan.Notes = append(b.plan.Notes, f+" is not carried out by this version")
	}
}

// unlike is what a warning says that is other than it must be and that no step of the plan changes.
func (b *builder) unlike(w problem.Problem) []string {
	var out []string
	switch w.Code {
	case problem.EndpointChanged:
		out = append(out, "apiEndpoint (the cluster still has "+fmt.Sprint(w.Parameters["endpoint"])+")")
	case problem.NotCompared:
		out = append(out, fmt.Sprint(w.Parameters["component"])+" (could not be compared)")
	case problem.FilesEdited, problem.StaticPodsEdited:
		for _, file := range b.world.Is.Hosts[w.Host].Edited { // those that no step makes anew
			if condition.IsStaticPod(file) == (w.Code == problem.StaticPodsEdited) {
				out = append(out, b.names[w.Host]+" "+file+" (edited)")
			}
		}
	}
	return out
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

// revokeTokens plans the end of the join tokens, if there are any, after the last steps that read one.
func (b *builder) revokeTokens() {
	var readers []Step
	for _, s := range b.plan.Steps {
		if s.Intent.NeedsToken() {
			readers = append(readers, s)
		}
	}
	var last []string
	for _, s := range readers {
		if !slices.ContainsFunc(readers, func(next Step) bool { return slices.Contains(next.Needs, s.ID) }) {
			last = append(last, s.ID)
		}
	}
	if len(last) > 0 {
		b.onCluster("revoke-tokens", Step{
			Intent: only(step.RevokeTokens), Action: Remove, Title: "revoke the join tokens",
			Reason: "every host has joined", Needs: last,
		})
	}
}

func (b *builder) saveRecord(reason string) {
	if b.has("record") || b.in.About != nil {
		return
	}
	b.onCluster("record", Step{
		Intent: only(step.SaveRecord), Action: Change, Title: "save manifest and record", Reason: reason,
		Changes: []string{"ConfigMap kube-system/kubeone, without secrets"},
	})
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
		if s.Intent.Kind == step.NodeReady {
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
