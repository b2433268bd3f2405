package step

import (
	"cmp"
	"maps"
	"slices"

	"kubeone/internal/decide"
	"kubeone/internal/decide/match"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
)

// World is the predicted world after the steps planned so far. Effects change Is, CA and Epoch.
type World struct {
	decide.Input
	Names map[string]string // of Nodes, by host ID
	Epoch int               // number of recoveries of the cluster
}

// NewWorld returns the world before the first step. It does not change what the input holds.
func NewWorld(in decide.Input, names map[string]string, epoch int) *World {
	in.Is.Hosts = maps.Clone(in.Is.Hosts)
	if in.Is.Hosts == nil {
		in.Is.Hosts = map[string]observed.Host{}
	}
	in.Is.API.Nodes = slices.Clone(in.Is.API.Nodes)
	in.Is.API.Addons = maps.Clone(in.Is.API.Addons)
	in.Is.Etcd.Members = slices.Clone(in.Is.Etcd.Members)
	return &World{Input: in, Names: names, Epoch: epoch}
}

// Predict applies the effect of a step that succeeds. A step that concerns no host in the manifest has the zero host.
func (w *World) Predict(h desired.Host, i Intent) { i.Kind.row().effect(w, h, i) }

// noEffect is the effect of a step that changes nothing for later decisions.
func noEffect(*World, desired.Host, Intent) {}

// makeMember makes the host a healthy member, as after init, join, repair or upgrade: these steps succeed only once the
// host's components answer.
func (w *World) makeMember(h desired.Host) {
	seen := w.Is.Hosts[h.ID]
	kubelet := seen.Kubelet.Version // "" if unknown
	seen.Marker = &observed.Marker{
		Cluster: w.Want.Name, Role: string(h.Role), ID: h.ID, Derived: !h.HasOwnID, Node: w.Names[h.ID],
		Machine:  h.Machine,
		Complete: true, Epoch: w.Epoch,
	}
	seen.KubeletConf, seen.KubeletCert, seen.Healthz = observed.Yes, observed.Yes, observed.Yes
	seen.Certificates = renewedCertificates(seen.Certificates)
	unit := observed.Unit{Installed: true, Enabled: true, Active: true, State: "active/running"}
	for _, u := range []*observed.Unit{&seen.Containerd, &seen.Kubelet} {
		version := u.Version
		*u = unit
		u.Version = version
	}
	if seen.Kubelet.Version == "" {
		seen.Kubelet.Version = w.Want.KubeletVersion(h)
	}
	seen.CAHash = w.caHash()
	if h.Role == desired.ControlPlane {
		seen.AdminConf, seen.PKI, seen.EtcdData, seen.EtcdLost = observed.Yes, observed.Yes, observed.Yes, ""
		seen.Manifests = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}
		seen.APIServer, seen.ControllerManager, seen.Scheduler = observed.Yes, observed.Yes, observed.Yes
		seen.EtcdHealth = observed.Yes
		if seen.APIServerVersion == "" { // its manifest is missing; the new one has the kubelet's version
			seen.APIServerVersion = seen.Kubelet.Version
		}
		w.makeVoter(h)
	}
	w.Is.Hosts[h.ID] = seen
	w.apiAnswers()
	w.nodeOf(h, kubelet)
}

// renewedCertificates returns the certificates as renewed: none has expired or expires soon.
func renewedCertificates(certificates []observed.Certificate) []observed.Certificate {
	out := slices.Clone(certificates)
	for i := range out {
		out[i].Expired, out[i].Soon, out[i].Left = false, false, 0
	}
	return out
}

// joinKeepingCertificates is makeMember for a step that does not renew certificates: their remaining lifetimes stay as
// they are.
func (w *World) joinKeepingCertificates(h desired.Host) {
	before := w.Is.Hosts[h.ID].Certificates
	w.makeMember(h)
	for i, c := range before {
		w.Is.Hosts[h.ID].Certificates[i].Left = c.Left
	}
}

// caHash returns the hash of the cluster CA, or a stand-in if the CA does not exist yet.
func (w *World) caHash() string {
	for _, h := range w.Want.ControlPlane {
		if seen := w.Is.Hosts[h.ID]; seen.CAHash != "" && seen.Marker != nil && seen.Marker.Complete {
			return seen.CAHash
		}
	}
	return cmp.Or(w.CA, "sha256:to-be-made")
}

func (w *World) apiAnswers() {
	w.Is.API.Reached, w.Is.Etcd.Reached = observed.Yes, observed.Yes
	if w.Is.API.Version == "" {
		w.Is.API.Version = w.Want.KubernetesVersion
	}
}

// makeVoter makes the host's etcd member a healthy voter.
func (w *World) makeVoter(h desired.Host) {
	name := w.Names[h.ID]
	if i := match.MemberIndex(w.Is.Etcd.Members, h, name); i >= 0 {
		m := &w.Is.Etcd.Members[i]
		m.Name, m.Healthy, m.Learner = name, observed.Yes, false
		return
	}
	w.Is.Etcd.Members = append(w.Is.Etcd.Members, observed.Member{
		ID: "new-" + name, Name: name, PeerURLs: []string{"https://" + h.PrivateAddress + ":2380"},
		Healthy: observed.Yes,
	})
}

// nodeOf makes the host's Node Ready. It then reports the given version of the kubelet, if that is known.
func (w *World) nodeOf(h desired.Host, kubelet string) {
	if !slices.ContainsFunc(w.Is.API.Nodes, func(n observed.Node) bool { return n.Name == w.Names[h.ID] }) {
		w.Is.API.Nodes = append(w.Is.API.Nodes, observed.Node{
			Name: w.Names[h.ID], KubeletVersion: w.Want.KubeletVersion(h), Addresses: w.Want.Network.NodeAddresses(h),
		})
	}
	w.changeNode(w.Names[h.ID], func(n *observed.Node) {
		n.Ready, n.ControlPlane = observed.Yes, h.Role == desired.ControlPlane
		n.MachineID = w.Is.Hosts[h.ID].MachineID
		if kubelet != "" {
			n.KubeletVersion = kubelet
		}
	})
}

// Cluster DNS: the app label of its pods, and its Deployment, which kubeadm creates with 2 replicas.
const (
	dns             = "kube-dns"
	dnsDeployment   = "Deployment kube-system/coredns"
	kubeadmReplicas = 2
)

// dnsMade predicts kubeadm's Deployment of cluster DNS. Its replicas are changed later, if the manifest sets others.
func (w *World) dnsMade() {
	if n := w.Want.Network.DNS.Replicas; n == 0 || n == kubeadmReplicas {
		return
	}
	w.Is.API.Compared = maps.Clone(w.Is.API.Compared)
	if w.Is.API.Compared == nil {
		w.Is.API.Compared = map[string]observed.Comparison{}
	}
	c := w.Is.API.Compared[dns]
	c.Settings = []observed.Difference{{Object: dnsDeployment, Fields: []string{"spec.replicas"}}}
	w.Is.API.Compared[dns] = c
}

// changeComparison changes what is known of a component, if it is known.
func (w *World) changeComparison(name string, change func(*observed.Comparison)) {
	c, ok := w.Is.API.Compared[name]
	if !ok {
		return
	}
	change(&c)
	w.Is.API.Compared = maps.Clone(w.Is.API.Compared)
	w.Is.API.Compared[name] = c
}

// networkCame makes Nodes Ready that have waited for their network plugin.
func (w *World) networkCame() {
	for i := range w.Is.API.Nodes {
		if n := &w.Is.API.Nodes[i]; n.Ready == observed.No {
			n.Ready = observed.Yes
		}
	}
}

// changeNode changes the Node with that name, if there is one.
func (w *World) changeNode(name string, change func(*observed.Node)) {
	for i := range w.Is.API.Nodes {
		if n := &w.Is.API.Nodes[i]; n.Name == name {
			change(n)
		}
	}
}
