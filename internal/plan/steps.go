package plan

import (
	"cmp"
	"fmt"
	"kubeone/internal/decide"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/decide/match"
	"kubeone/internal/decide/preflight"
	"kubeone/internal/decide/quorum"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan/step"
	"kubeone/internal/text/set"
	"net/url"
	"slices"
	"strings"
)

// displayNames returns the hosts' names for messages, by host ID: the manifest's hostname, or the name of the Node that
// the cluster knows as theirs. Otherwise it is the manifest's ID or address, followed by the host's own name. Refused
// names are left out.
func displayNames(want desired.Cluster, nodes map[string]decide.NodeName) map[string]string {
	names := map[string]string{}
	for _, h := range want.Hosts() {
		switch node := nodes[h.ID]; {
		case h.Hostname != "":
			names[h.ID] = strings.ToLower(h.Hostname)
		case node.Known:
			names[h.ID] = node.Name
		case node.Name != "":
			names[h.ID] = h.ID + " (" + node.Name + ")"
		default:
			names[h.ID] = h.ID
		}
	}
	return names
}

// nodeNames returns the names of the hosts' Nodes, by host ID. If a host's own name is refused, its Node is the one in
// the record, so that a host cannot prevent its Node's removal. A host without a Node has a name made of its ID that no
// Node can have: the manifest chooses IDs, and so may a host.
func nodeNames(in decide.Input, nodes map[string]decide.NodeName) map[string]string {
	names, taken := map[string]string{}, map[string]bool{}
	for _, n := range nodes {
		taken[n.Name] = true
	}
	nodesByName := match.IndexNodes(in.Is.API.Nodes)
	for _, h := range in.Want.Hosts() {
		names[h.ID] = nodes[h.ID].Name
		recorded := recordedNode(in.Is.API, h)
		if nodesByName.Named(recorded) != nil && names[h.ID] == "" && !taken[recorded] {
			names[h.ID], taken[recorded] = recorded, true
		}
	}
	for _, n := range in.Is.API.Nodes {
		taken[n.Name] = true
	}
	for id, name := range names {
		own := strings.ToLower(id)
		if taken[own] {
			own = "host:" + own
		}
		names[id] = cmp.Or(name, own)
	}
	return names
}

// recordedNode returns the name of the host's Node in the cluster record; the Node may no longer exist. The record does
// not have Machine hosts.
func recordedNode(api observed.API, h desired.Host) string {
	if api.Record == nil || h.Machine != "" {
		return ""
	}
	return api.Record.Nodes[h.ID]
}

// NodeName returns the name of a host's Node: the manifest's hostname, else what the host calls itself, else (a host
// that did not answer) its address. Node names are lower case.
func NodeName(h desired.Host, seen observed.Host) string {
	for _, name := range []string{h.Hostname, seen.Hostname, h.ID} {
		if name != "" {
			return strings.ToLower(name)
		}
	}
	return ""
}

func (b *builder) hostByID(id string) desired.Host {
	h, ok := b.hosts[id]
	if !ok {
		h, _ = b.in.Want.Host(id) // id may be an address or a hostname
	}
	return h
}

// hostArtifacts returns the host's artifacts, as far as they are resolved.
func (b *builder) hostArtifacts(h desired.Host) desired.Artifacts {
	a, _ := b.in.Want.ArtifactsFor(h, b.world.Is.Hosts[h.ID].Arch)
	return a
}

// nodeName returns the name of the host's Node.
func (b *builder) nodeName(h desired.Host) string { return b.nodeNames[h.ID] }

func (b *builder) displayName(h desired.Host) string { return b.names[h.ID] }

// stepID returns the ID of a step on a host.
func (b *builder) stepID(k step.Kind, h desired.Host) string { return string(k) + "/" + b.nodeName(h) }

func (b *builder) hasStep(id string) bool {
	return b.ids[id]
}

// onHost adds a step on a host, fills in what all such steps have, and returns its ID.
func (b *builder) onHost(h desired.Host, s Step) string {
	s.ID, s.Host = b.stepID(s.Intent.Kind, h), h.ID
	if s.Intent.Kind == step.Uncordon && b.hasStep(s.ID) { // uncordoned first, and again after its upgrade
		s.ID += "-again"
	}
	s.Intent.Role, s.Intent.NodeName, s.Intent.Arch = h.Role, b.nodeName(h), b.world.Is.Hosts[h.ID].Arch
	return b.addStep(h, s)
}

// onCluster adds a step that concerns no host in the manifest and returns its ID.
func (b *builder) onCluster(id string, s Step) string {
	s.ID = id
	return b.addStep(desired.Host{}, s)
}

// addStep adds a step at the end, after the barrier, and returns its ID.
func (b *builder) addStep(h desired.Host, s Step) string {
	s.Needs = set.Union(s.Needs, b.barrier)
	b.afterPublishing(&s)
	return b.insertStep(h, s, len(b.plan.Steps))
}

// insertStep adds a step to the plan, predicts its effect on the world, and returns its ID. Every step of a plan passes
// here, so this is where a step is refused that the predicted etcd does not allow.
func (b *builder) insertStep(h desired.Host, s Step, at int) string {
	part := b.etcdPart(h)
	if s.Intent.Kind == step.RemoveEtcd {
		part.Member = step.ParamsOf[step.RemoveEtcdParams](s.Intent).Member
	}
	if v := quorum.Check(s.Intent.Disrupts(), b.world.Is.Etcd, part); !v.Safe {
		b.refused = append(b.refused, fmt.Errorf("%s (%s): %s", s.ID, s.Title, v.Why))
	}
	s.Intent.Version, s.Risk = b.in.Want.KubeletVersion(h), cmp.Or(s.Risk, NoRisk)
	b.plan.Steps = slices.Insert(b.plan.Steps, at, s)
	b.ids[s.ID] = true
	b.world.Predict(h, s.Intent)
	return s.ID
}

// plainIntent returns an intent without parameters.
func plainIntent(k step.Kind) step.Intent { return step.Intent{Kind: k} }

// Sign records in every step on a host the digest of the script that it will run, so that the plan's own digest covers
// every byte that runs. Digests are by host ID.
func Sign(p *Plan, digests map[string]string) {
	for i := range p.Steps {
		if s := &p.Steps[i]; s.Intent.Kind.OnHost() {
			s.Intent.Digest = digests[s.Host]
		}
	}
}

// packageChanges returns a line with the packages of the distribution that a host lacks.
func packageChanges(seen observed.Host) []string {
	if packages := preflight.Packages(&seen); len(packages) > 0 {
		return []string{"distribution packages: " + strings.Join(packages, ", ")}
	}
	return nil
}

// swapChanges returns a line with the swap that is turned off until a reset.
func swapChanges(seen observed.Host) []string {
	if len(seen.Swaps) == 0 {
		return nil
	}
	return []string{"swap off, until a reset: " + strings.Join(seen.Swaps, ", ")}
}

// firewallChanges returns a line for each firewall of a host that must change.
func (b *builder) firewallChanges(h desired.Host) []string {
	seen, wanted := b.world.Is.Hosts[h.ID], b.in.Want.Firewall
	var out []string
	for _, f := range decide.FirewallsToConfigure(&seen, wanted) {
		switch {
		case wanted == desired.FirewallDisable:
			out = append(out, "switch "+f.Name+" off until a reset")
		case f.Off:
			out = append(out, "open ports in "+f.Name+", and switch it on")
		default:
			out = append(out, "open ports in "+f.Name)
		}
	}
	return out
}

func binaryChanges(binaries []desired.Binary, seen observed.Host) []string {
	return append(newBinaries(binaries, seen), "kernel modules and settings", "containerd.service, kubelet.service")
}

// newBinaries returns a line for each binary that is missing on the host in the desired version.
func newBinaries(binaries []desired.Binary, seen observed.Host) []string {
	var out []string
	for _, b := range binaries {
		have := seen.Binaries[b.Name]
		switch {
		case have == "":
			out = append(out, b.Name+" "+b.Version)
		case have != b.Version:
			out = append(out, fmt.Sprintf("%s %s -> %s", b.Name, have, b.Version))
		}
	}
	return out
}

func imageChanges(images []desired.Image) []string {
	out := make([]string, 0, len(images))
	for _, i := range images {
		out = append(out, i.Name)
	}
	return out
}

// missingBinaries returns the files that a host lacks.
func missingBinaries(binaries []desired.Binary, pushed bool, seen observed.Host) step.Content {
	var c step.Content
	for _, b := range binaries {
		switch {
		case seen.Binaries[b.Name] == b.Version:
		case pushed:
			c.Uploads = append(c.Uploads, b.SHA256)
		default:
			c.Downloads = append(c.Downloads, b.URL)
		}
	}
	return c
}

// imageContent returns the content of a host's images. The step finds out which parts the host has.
func imageContent(images []desired.Image, pushed bool) step.Content {
	var uploads, downloads []string
	for _, i := range images {
		downloads = append(downloads, i.Source+"@"+i.Digest)
		for _, blob := range i.Blobs {
			uploads = append(uploads, strings.TrimPrefix(blob.Digest, "sha256:"))
		}
	}
	if pushed {
		return step.Content{Uploads: set.Union(nil, uploads)}
	}
	return step.Content{Downloads: downloads}
}

// memberIndex returns the index of the host's etcd member, -1 if there is none.
func (b *builder) memberIndex(h desired.Host) int {
	return match.MemberIndex(b.world.Is.Etcd.Members, h, b.nodeName(h))
}

// checkStop reports whether the host's etcd member may be stopped for a while. A host without a member may.
func (b *builder) checkStop(h desired.Host) quorum.Verdict {
	i := b.memberIndex(h)
	if i < 0 {
		return quorum.Verdict{Safe: true}
	}
	return quorum.SafeToStop(b.world.Is.Etcd.Members, b.world.Is.Etcd.Members[i].ID)
}

// blockStop blocks a step that would stop the host's etcd member. insertStep would refuse the whole plan.
func (b *builder) blockStop(h desired.Host, verdict quorum.Verdict) {
	b.addBlocked("the etcd member of " + b.displayName(h) + " must not be stopped: " + verdict.Why)
}

// etcdPart returns the host's part in etcd.
func (b *builder) etcdPart(h desired.Host) quorum.Part {
	if h.ID == "" {
		return quorum.Part{Data: observed.No}
	}
	return match.Part(b.world.Is, h, b.nodeName(h))
}

// isPeerOf reports whether the peer URL contains an address of the host.
func isPeerOf(peer string, h desired.Host) bool {
	u, err := url.Parse(peer)
	return err == nil && (u.Hostname() == h.PrivateAddress || u.Hostname() == h.PublicAddress)
}

// planInstructions plans what can safely be done before the operator follows the instructions.
func (b *builder) planInstructions(d decide.Decision) {
	for _, r := range d.Also {
		b.plan.Routes = append(b.plan.Routes, string(r))
		switch r {
		case fsm.Repair:
			b.planRepair(d)
		case fsm.Join:
			b.addJoinSteps(d)
		case fsm.Resources:
			b.applyResources(d)
		}
	}
	b.addInstructions(d)
	b.plan.Again = "the next steps depend on what you do; apply again afterwards"
}

// addBlocked says that the next steps are known but not carried out. Repairs and joins that are planned already stay.
func (b *builder) addBlocked(why string) {
	if len(b.plan.Steps) > 0 {
		b.plan.Again = why
		return
	}
	b.plan.Blocked = why
}

// addLaterError notes a problem that remains after the planned steps. If the problem exists now, nothing is planned,
// and the decision itself has it.
func (b *builder) addLaterError(d decide.Decision) {
	if len(b.plan.Steps) == 0 {
		return
	}
	b.plan.Again = "the next steps need you to act first"
	for _, p := range d.Problems {
		b.plan.Notes = append(b.plan.Notes, problemText(b.names, p))
	}
}

func (b *builder) addInstructions(d decide.Decision) {
	b.plan.Operator = append(b.plan.Operator, d.Instructions...)
}
