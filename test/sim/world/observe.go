package world

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
)

type taint = desired.Taint

// CordonAnnotation marks Nodes that a run has cordoned; its value is the run.
const CordonAnnotation = "kubeone.k8c.io/cordoned-by"

// Namespace is the namespace of all Machines. Their names equal their UIDs.
const Namespace = "machines/"

// Observe returns the result of probes: of hosts that operators reach, and of the API and etcd through them.
func (w *World) Observe() observed.World {
	out := observed.World{Hosts: make(map[string]observed.Host, len(w.Hosts))}
	for _, h := range w.Hosts {
		if !h.Outside {
			out.Hosts[h.ID] = w.observeHost(h)
		}
	}
	out.API, out.Etcd = w.observeAPI(), w.ObserveEtcd()
	return out
}

func (w *World) observeHost(h *Host) observed.Host {
	if !h.Reached() {
		return observed.Host{
			ID:      h.ID,
			Reach:   observed.Unreachable,
			Class:   "unreachable",
			Problem: "connection timed out",
		}
	}
	d := &h.Disk
	out := observed.Host{
		ID: h.ID, Reach: observed.Reached, Hostname: h.Name, MachineID: "machine-" + strconv.Itoa(h.Machine),
		OS: observed.OS{ID: "debian", VersionID: "13"}, Arch: "amd64", Kernel: "6.12.41", CPUs: 2, MemoryMiB: 4096,
		DiskMiB:     20480,
		ClockSkew:   time.Second,
		KubeletConf: observed.Of(d.KubeletCA != 0), AdminConf: observed.Of(d.AdminCA != 0),
		PKI: observed.Of(d.CA != 0), EtcdData: observed.Of(d.Data != nil),
		Containerd:       observeUnit(d.Kubelet != "", h.Run.Containerd, "2.2.1"),
		Kubelet:          observeUnit(d.Kubelet != "", h.Run.Kubelet, d.Kubelet),
		APIServerVersion: d.API, Upgrading: d.Upgrading, HooksOwed: slices.Clone(d.Owed),
	}
	if h.Full {
		out.DiskMiB, out.Unwritable = 100, "its disk is full"
	}
	if d.Kubelet != "" {
		out.Binaries = map[string]string{desired.BinaryKubelet: d.Kubelet, desired.BinaryContainerd: "2.2.1"}
		out.Healthz = observed.Of(h.Run.Kubelet)
	}
	if m := d.Marker; m != nil {
		out.Marker = &observed.Marker{
			Cluster: m.Cluster, Role: string(m.Role), ID: m.ID, Derived: true, Node: m.Node, Complete: m.Complete,
			Fenced: m.Fenced, Restoring: m.Restoring, Epoch: m.Epoch,
		}
		if m.Machine != "" {
			out.Marker.ID, out.Marker.Derived, out.Marker.Machine = m.Machine, false, Namespace+m.Machine
		}
	}
	h.observeCredentials(&out)
	if d.Digest != "" {
		out.Digests = map[string]string{"kubelet": d.Digest}
	}
	if d.Edited {
		out.Edited = []string{"/var/lib/kubelet/config.yaml"}
		out.Restorable = out.Edited
	}
	h.observeEncryption(&out)
	h.observeAuthorities(&out)
	w.observeRunning(h, &out)
	return out
}

// observeCredentials adds the host's keys and kubeconfigs.
func (h *Host) observeCredentials(out *observed.Host) {
	d := &h.Disk
	if ca := max(d.CA, d.KubeletCA); ca != 0 {
		out.CAHash = "sha256:" + strconv.Itoa(ca)
	}
	if d.KubeletCA != 0 && !d.Local {
		out.Endpoint = endpointURL(d.Dials)
	}
	if d.AdminCA != 0 {
		out.AdminEndpoint = endpointURL(d.Admin)
	}
	if h.ControlPlane && d.CA != 0 {
		out.APINames = d.Names
	}
	if d.Expired {
		past := time.Unix(0, 0)
		out.Certificates = []observed.Certificate{{Name: "kubelet-client", NotAfter: past, Expired: true}}
		if h.ControlPlane {
			out.Certificates = append(out.Certificates,
				observed.Certificate{Name: "apiserver", NotAfter: past, Expired: true},
				observed.Certificate{Name: "etcd/peer", NotAfter: past, Expired: true})
		}
	}
}

// Image returns the name of the release's image.
func Image(version string) string { return "example.com/kube-apiserver:v" + version }

func observeUnit(installed, active bool, version string) observed.Unit {
	out := observed.Unit{Installed: installed, State: "inactive/dead"}
	if installed {
		out.Enabled, out.Version = true, version
	}
	if active {
		out.Active, out.State = true, "active/running"
	}
	return out
}

// observeRunning adds the host's components, its step and its lock.
func (w *World) observeRunning(h *Host, out *observed.Host) {
	if h.Disk.Etcd {
		out.Manifests = append(out.Manifests, "etcd")
	}
	if h.Disk.API != "" {
		out.Manifests = append(out.Manifests, "kube-apiserver")
	}
	if h.Disk.Controllers {
		out.Manifests = append(out.Manifests, "kube-controller-manager", "kube-scheduler")
	}
	if h.ControlPlane && h.Disk.Holds() {
		out.APIServer = observed.Of(w.APIReady(h))
		out.ControllerManager = observed.Of(w.APIReady(h) && h.Disk.Controllers)
		out.Scheduler = out.ControllerManager
		out.EtcdHealth = observed.Of(w.Voting(h))
		if h.Run.Kubelet && h.Disk.Etcd && h.Disk.Data != nil && !w.etcdListed(h) {
			out.EtcdLost = "permanently removed from the cluster"
		}
	}
	for i := range h.Disk.Aside {
		out.Kept = append(out.Kept, "/var/lib/kubeone-old/"+strconv.Itoa(i+1))
	}
	if u := h.Run.Unit; u != nil {
		out.Step = &observed.Step{Unit: "kubeone-step.service", RunID: u.By.Run, Stage: string(u.Intent.Kind)}
	}
	if k := h.Held; k != nil {
		out.Lock = &observed.Lock{
			Holder:     k.Run,
			RunID:      k.Run,
			Generation: h.Disk.Generation,
			Live:       w.Now-k.Beat < StaleAfter,
		}
	}
}

func (w *World) observeAPI() observed.API {
	via := w.apiVia()
	if via == nil {
		return observed.API{Reached: w.hasCredentials(), ReadyAt: w.readyAt()}
	}
	r, _ := w.memberOf(via)
	out := observed.API{
		Reached: observed.Yes, Via: via.ID, Version: via.Run.API, ClusterID: strconv.Itoa(r.ID),
		Addons: map[string]string{}, Inventories: r.Objects.Own.observeInventories(),
		AutoApproval: observed.Of(r.Objects.AnyToken),
	}
	for name, digest := range r.Objects.Addons {
		out.Addons[name] = digest
	}
	if r.Objects.Endpoint != "" {
		out.Endpoint = desired.Endpoint{Host: r.Objects.Endpoint, Port: port}.String()
	}
	if r.Objects.Record != "" || len(r.Objects.Former) > 0 {
		out.Record = &observed.Record{
			Cluster: w.Name, ManifestDigest: r.Objects.Record, FormerEndpoints: r.Objects.Former,
			Nodes: maps.Clone(r.Objects.Known),
		}
	}
	pod := func(app, node string, ready bool) {
		out.Pods = append(out.Pods, observed.Pod{App: app, Node: node, Ready: observed.Of(ready)})
	}
	for _, n := range r.Objects.Nodes {
		out.Nodes = append(out.Nodes, observeNode(w, n))
		pod(w.want.Network.CNI.Name, n.Name, n.Ready) // a Node without it is not Ready
		pod("kube-proxy", n.Name, n.Ready)
	}
	pod(DNSApp, r.Objects.DNS.Node, r.Objects.DNS.Runs)
	return out
}

// DNSApp is the label value of the cluster DNS pods.
const DNSApp = "kube-dns"

func observeNode(w *World, n *Node) observed.Node {
	out := observed.Node{
		Name: n.Name, Addresses: []string{n.Address}, Ready: observed.Of(n.Ready), Unschedulable: n.Cordoned,
		ControlPlane:   n.ControlPlane,
		KubeletVersion: n.Kubelet, Labels: n.Labels, Annotations: n.Annotations,
	}
	if h := w.Host(n.Name); !n.Ready && (h == nil || !w.Asks(h)) {
		out.Ready = observed.Unknown
	}
	if n.CordonedBy != "" {
		out.Annotations = mergeKeys(n.Annotations, map[string]string{CordonAnnotation: n.CordonedBy})
	}
	for _, t := range n.Taints {
		out.Taints = append(out.Taints, observed.Taint{Key: t, Effect: "NoSchedule"})
	}
	return out
}

func (m Member) observeMember() observed.Member {
	return observed.Member{
		ID: m.Hex(), Name: m.Name, PeerURLs: []string{"https://" + m.Address + ":2380"}, Learner: m.Learner,
	}
}

// OnDisk returns the members in the host's etcd data: those that its quorum knows.
func (w *World) OnDisk(h *Host) []observed.Member {
	var out []observed.Member
	if d := h.Disk.Data; d != nil {
		for _, m := range w.etcdCluster(d.EtcdCluster).Members {
			out = append(out, m.observeMember())
		}
	}
	return out
}

// readyAt returns where a client of the endpoint reaches a working API server.
func (w *World) readyAt() string {
	serves := slices.ContainsFunc(w.Hosts, func(h *Host) bool {
		return h.ControlPlane && h.Reached() && w.APIReady(h)
	})
	if !serves {
		return ""
	}
	return w.want.Endpoint.String()
}

// hasCredentials interprets an API that does not answer: No if some host had credentials.
func (w *World) hasCredentials() observed.Tri {
	for _, h := range w.Hosts {
		if h.ControlPlane && !h.Outside && h.Reached() && h.Disk.AdminCA != 0 {
			return observed.No
		}
	}
	return observed.Unknown
}

// ObserveEtcd returns the answers of etcd's members.
func (w *World) ObserveEtcd() observed.Etcd {
	via := w.etcdVia()
	if via == nil {
		return observed.Etcd{Reached: w.hasCredentials()}
	}
	r, _ := w.memberOf(via)
	out := observed.Etcd{Reached: observed.Yes}
	if !w.Serving(via) {
		out.Problem = "no quorum answers"
	}
	for _, m := range r.Members {
		one := m.observeMember()
		one.Healthy = observed.No
		if w.memberAnswers(via, r, m) {
			one.Version, one.Healthy = "3.6.6", observed.Of(w.Serving(w.HostOf(r, m.ID)))
		}
		out.Members = append(out.Members, one)
	}
	return out
}
