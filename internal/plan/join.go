package plan

import (
	"fmt"
	"slices"
	"strings"

	"kubeone/internal/decide"
	"kubeone/internal/decide/preflight"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/text/set"
	"kubeone/internal/plan/step"
	"kubeone/internal/text/phrase"
)

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
	if files := preflight.ForeignCNI(b.in.Want.Network.CNI, &seen); len(files) > 0 {
		reason += "; moves aside, until a reset, other CNI configuration in /etc/cni/net.d: " +
			strings.Join(files, ", ")
	}
	if changes := b.firewallChanges(h); len(changes) > 0 {
		reason += "; " + strings.Join(changes, "; ")
	}
	artifacts := b.artifacts(h)
	binaries, images := artifacts.BinariesFor(h.Role), artifacts.ImagesFor(h.Role)
	prepared := b.onHost(h, Step{
		Intent: step.With(step.PrepareParams{
			Content: missingBinaries(binaries, artifacts.Pushed, seen), Packages: packages,
		}),
		Action: Create, Title: "install container runtime and kubelet", Reason: reason,
		Needs: b.afterFirst(step.Prepare, h),
		Changes: slices.Concat(packageChanges(seen), b.firewallChanges(h), binaryChanges(binaries, seen),
			swapChanges(seen)),
	})
	b.onHost(h, Step{
		Intent: step.With(step.ImagesParams{Content: imageContent(images, artifacts.Pushed)}),
		Action: Create, Title: "import images",
		Reason: fmt.Sprintf("%s of Kubernetes %s", phrase.Count(len(images), "image"), b.in.Want.KubernetesVersion),
		Needs:  append([]string{prepared}, b.afterFirst(step.Images, h)...), Changes: imageChanges(images),
	})
	if h.Role == desired.ControlPlane {
		b.controllerFiles(h)
	}
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
		Needs: set.Union([]string{prepared}, b.begun), Changes: []string{"etcd member, first as a learner"},
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
