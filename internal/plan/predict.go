package plan

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"kubeone/internal/decide/match"
	"kubeone/internal/desired"
	"kubeone/internal/observed"
)

// clone returns a world whose hosts, nodes and members can be changed without changing the original.
func clone(w observed.World) observed.World {
	w.Hosts = maps.Clone(w.Hosts)
	if w.Hosts == nil {
		w.Hosts = map[string]observed.Host{}
	}
	w.API.Nodes = slices.Clone(w.API.Nodes)
	w.API.Addons = maps.Clone(w.API.Addons)
	w.Etcd.Members = slices.Clone(w.Etcd.Members)
	return w
}

// predictJoined makes the host what it is after init or join: a member that this version of the manifest has made,
// whatever an unfinished installation had left on it.
func (b *builder) predictJoined(h desired.Host) {
	seen := b.is.Hosts[h.ID]
	seen.Kubelet.Version, seen.APIServerVersion = b.in.Want.KubernetesVersion, ""
	seen.Digests = b.in.Config[h.ID]
	b.is.Hosts[h.ID] = seen
	b.predictMember(h)
}

// predictMember makes the host what a host is after init, join or repair have succeeded: those steps end only when its
// components answered.
func (b *builder) predictMember(h desired.Host) {
	seen := b.is.Hosts[h.ID]
	kubelet := seen.Kubelet.Version // "" where the host did not say it
	seen.Marker = &observed.Marker{Cluster: b.in.Want.Name, Role: string(h.Role), Complete: true, Epoch: Epoch(b.plan, b.in.Want, b.in.Is)}
	seen.KubeletConf, seen.KubeletCert, seen.Healthz = observed.Yes, observed.Yes, observed.Yes
	seen.Certificates = renewed(seen.Certificates)
	unit := observed.Unit{Installed: true, Enabled: true, Active: true, State: "active/running"}
	for _, u := range []*observed.Unit{&seen.Containerd, &seen.Kubelet} {
		version := u.Version
		*u = unit
		u.Version = version
	}
	if seen.Kubelet.Version == "" {
		seen.Kubelet.Version = b.in.Want.KubernetesVersion
	}
	seen.CAHash = b.caHash()
	if h.Role == desired.ControlPlane {
		seen.AdminConf, seen.PKI, seen.EtcdData, seen.EtcdLost = observed.Yes, observed.Yes, observed.Yes, ""
		seen.Manifests = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}
		seen.APIServer, seen.ControllerManager, seen.Scheduler, seen.EtcdHealth = observed.Yes, observed.Yes, observed.Yes, observed.Yes
		if seen.APIServerVersion == "" { // its manifest is gone: it comes again in the kubelet's version
			seen.APIServerVersion = seen.Kubelet.Version
		}
		b.predictEtcd(h)
	}
	b.is.Hosts[h.ID] = seen
	b.predictAPI()
	b.predictNode(h, kubelet)
}

// renewed are the certificates when none has expired.
func renewed(certificates []observed.Certificate) []observed.Certificate {
	out := slices.Clone(certificates)
	for i := range out {
		out[i].Expired = false
	}
	return out
}

// caHash is the cluster's CA as known, or a stand-in for one that is still to be made.
func (b *builder) caHash() string {
	for _, h := range b.in.Want.ControlPlane {
		if seen := b.is.Hosts[h.ID]; seen.CAHash != "" && seen.Marker != nil && seen.Marker.Complete {
			return seen.CAHash
		}
	}
	return "sha256:to-be-made"
}

func (b *builder) predictAPI() {
	b.is.API.Reached, b.is.Etcd.Reached = observed.Yes, observed.Yes
	if b.is.API.Version == "" {
		b.is.API.Version = b.in.Want.KubernetesVersion
	}
}

func (b *builder) predictEtcd(h desired.Host) {
	if i := b.member(h); i >= 0 {
		m := &b.is.Etcd.Members[i]
		m.Name, m.Healthy, m.Learner = b.node(h), observed.Yes, false
		return
	}
	b.is.Etcd.Members = append(b.is.Etcd.Members, observed.Member{
		ID: "new-" + b.node(h), Name: b.node(h), PeerURLs: []string{"https://" + h.PrivateAddress + ":2380"}, Healthy: observed.Yes,
	})
}

// member is the index of the host's etcd member, -1 where there is none.
func (b *builder) member(h desired.Host) int {
	return match.MemberIndex(b.is.Etcd.Members, h, b.node(h))
}

func peerOf(peer string, h desired.Host) bool {
	u, err := url.Parse(peer)
	return err == nil && (u.Hostname() == h.PrivateAddress || u.Hostname() == h.PublicAddress)
}

// predictNode makes the host's Node Ready. The version of a kubelet that is known is what the Node says then, whatever it
// said before.
func (b *builder) predictNode(h desired.Host, kubelet string) {
	node := observed.Node{Name: b.node(h), KubeletVersion: b.in.Want.KubernetesVersion, Addresses: []string{h.PrivateAddress}}
	at := -1
	for i, n := range b.is.API.Nodes {
		if n.Name == node.Name {
			node, at = n, i
		}
	}
	node.Ready = observed.Yes
	if kubelet != "" {
		node.KubeletVersion = kubelet
	}
	node.ControlPlane = h.Role == desired.ControlPlane
	if at >= 0 {
		b.is.API.Nodes[at] = node
		return
	}
	b.is.API.Nodes = append(b.is.API.Nodes, withMeta(node, h))
}

// withMeta gives a Node what the manifest wants on it.
func withMeta(n observed.Node, h desired.Host) observed.Node {
	n.Labels = withKeys(n.Labels, h.Labels)
	n.Annotations = withKeys(n.Annotations, h.Annotations)
	for _, t := range h.Taints {
		if taint := (observed.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect}); !slices.Contains(n.Taints, taint) {
			n.Taints = append(slices.Clone(n.Taints), taint)
		}
	}
	return n
}

func withKeys(have, want map[string]string) map[string]string {
	out := maps.Clone(have)
	if out == nil {
		out = map[string]string{}
	}
	for k, v := range want {
		if gone, remove := strings.CutSuffix(k, "-"); remove {
			delete(out, gone)
			continue
		}
		out[k] = v
	}
	return out
}

// predictResources makes addons, record and Node metadata what the manifest wants.
func (b *builder) predictResources() {
	b.is.API.Addons = maps.Clone(b.in.Addons)
	b.is.API.Record = &observed.Record{Cluster: b.in.Want.Name, ManifestDigest: b.in.Want.Digest}
	for i, n := range b.is.API.Nodes {
		for _, h := range b.in.Want.Hosts() {
			if b.node(h) == n.Name {
				b.is.API.Nodes[i] = withMeta(n, h)
			}
		}
	}
}
