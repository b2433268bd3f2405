package world

import (
	"cmp"
	"errors"

	"kubeone/internal/model/desired"
	"kubeone/internal/plan/step"
)

// The phases of installing and joining, in the order of the scripts. Each resumes from the state that an earlier run
// left.

func markBegun(w *World, h *Host, u *Unit) (bool, error) {
	if m := h.Disk.Marker; m != nil && m.Cluster != w.Name {
		return false, errors.New("this host belongs to another cluster")
	}
	machine := w.orders[u.By.Run].Machine
	if m := h.Disk.Marker; m != nil && m.Machine != machine && !w.Flaws.NoOwner {
		return false, errors.New("this host has another owner")
	}
	if m := h.Disk.Marker; m != nil && m.Complete && m.Role != u.Intent.Role {
		return false, errors.New("this host has joined as " + string(m.Role))
	}
	if other := w.Host(u.Intent.NodeName); other != nil && other != h {
		return false, errors.New("another host has the name " + u.Intent.NodeName)
	}
	w.reportEffect(Effect{Verb: Wrote, By: u.By, Host: h})
	if h.Disk.Marker == nil {
		h.Disk.Marker = &Marker{Cluster: w.Name}
	}
	if m := h.Disk.Marker; !m.Complete {
		m.Role = u.Intent.Role
		if m.Node == "" || !h.Disk.Holds() { // its kubelet keeps its name
			m.ID, m.Node, m.Machine = h.ID, u.Intent.NodeName, machine
		}
		h.Name, h.ControlPlane = m.Node, m.Role == desired.ControlPlane
	}
	if w.Flaws.WipeData && h.Disk.Data != nil {
		w.reportEffect(Effect{Verb: Deleted, By: u.By, Host: h})
		h.Disk.Data = nil
	}
	return true, nil
}

func installRuntime(_ *World, h *Host, u *Unit) (bool, error) {
	if h.Full {
		return false, errFull
	}
	if !h.Disk.Joined() {
		h.Disk.Kubelet = u.Intent.Version
	}
	h.Disk.Enabled, h.Run.Containerd = true, true
	return true, nil
}

var errFull = errors.New("no space left on device")

func fetchImages(w *World, h *Host, u *Unit) (bool, error) {
	if h.Full {
		return false, errFull
	}
	w.reportEffect(Effect{Verb: Wrote, By: u.By, Host: h})
	if !h.Disk.Has(u.Intent.Version) {
		h.Disk.Fetched = append(h.Disk.Fetched, u.Intent.Version)
	}
	return true, nil
}

func initPKI(w *World, h *Host, u *Unit) (bool, error) {
	if h.Disk.CA == 0 {
		w.reportEffect(Effect{Verb: CAMade, By: u.By, Host: h})
		h.Disk.CA = len(w.Rings)*1000 + h.Machine
	}
	h.Disk.AdminCA, h.Disk.KubeletCA, h.Disk.Local = h.Disk.CA, h.Disk.CA, true
	e := w.wantedBy(u.By.Run)
	h.Disk.Admin, h.Disk.Names = e.Host, e.Required()
	w.configureKubelet(h, u)
	if h.Disk.Data == nil && w.orders[u.By.Run].Encrypted {
		h.Disk.Keys = []string{firstKey}
	}
	startKubelet(h, u.Intent.Version)
	return true, nil
}

// configureKubelet writes the kubelet configuration of the run's manifest.
func (w *World) configureKubelet(h *Host, u *Unit) {
	h.Disk.Settings, h.Disk.Edited = w.settingsOf(u.By.Run), false
}

// startKubelet starts the kubelet in that version. With refused settings it exits at once.
func startKubelet(h *Host, version string) {
	h.Disk.Kubelet, h.Disk.Enabled = version, true
	h.Run.Kubelet, h.Run.KubeletVersion, h.Run.Registered = true, version, false
	h.Run.Edited = h.Disk.Edited
	if h.Disk.Settings == Refused {
		h.Run.Kubelet, h.Run.KubeletVersion = false, ""
	}
}

func initEtcd(w *World, h *Host, u *Unit) (bool, error) {
	if h.Disk.Data == nil || w.Flaws.FreshInit {
		w.reportEffect(Effect{Verb: RingMade, By: u.By, Host: h})
		w.beginEtcd(h, Objects{
			Addons: map[string]string{}, Endpoint: w.wantedBy(u.By.Run).Host, Secrets: newSecrets(h.Disk.Keys),
		}, 0)
	}
	h.Disk.Etcd = true
	return true, nil
}

// writeAPI writes the API server's manifest in the desired version. The kubelet then restarts the API server.
func writeAPI(w *World, h *Host, u *Unit) (bool, error) {
	if !h.Disk.Has(u.Intent.Version) {
		return false, errors.New("its image is not there")
	}
	if h.Disk.KeysGone || w.cannotRead(h, h.Disk.Keys) {
		return false, errBlind
	}
	if h.Disk.API != u.Intent.Version {
		u.Disrupted = u.Disrupted || w.APIReady(h)
		w.reportEffect(Effect{Verb: APIChanged, By: u.By, Host: h, Old: h.Disk.API, New: u.Intent.Version})
		h.Disk.API = u.Intent.Version
	}
	h.tellAPI()
	h.Disk.Controllers = true
	return true, nil
}

func awaitAPI(w *World, h *Host, _ *Unit) (bool, error) {
	return h.Disk.API == "" || w.APIReady(h) && h.Run.API == h.Disk.API, nil
}

func awaitEtcd(w *World, h *Host, _ *Unit) (bool, error) { return !h.ControlPlane || w.Voting(h), nil }

func awaitKubelet(_ *World, h *Host, _ *Unit) (bool, error) {
	return h.Run.Kubelet && h.Run.Containerd, nil
}

// markControlPlane gives the Node its label and taint.
func markControlPlane(w *World, h *Host, _ *Unit) (bool, error) {
	r := w.EtcdCluster()
	if r == nil || !w.asksAPI(h) {
		return false, nil
	}
	n := r.Objects.Node(h.Name)
	if n == nil {
		return false, nil
	}
	n.ControlPlane = true
	return true, nil
}

func markJoined(w *World, h *Host, u *Unit) (bool, error) {
	h.Disk.Digest = w.settingsOf(u.By.Run)
	return markRestored(w, h, u)
}

// markRestored marks the host as joined, with its recorded settings.
func markRestored(w *World, h *Host, u *Unit) (bool, error) {
	m := h.Disk.Marker
	if m == nil { // it was lost meanwhile
		m = &Marker{
			Cluster: w.Name, Role: u.Intent.Role, ID: h.ID, Node: u.Intent.NodeName,
			Machine: w.orders[u.By.Run].Machine,
		}
		h.Disk.Marker = m
	}
	if !m.Complete {
		m.Epoch = w.orders[u.By.Run].Epoch
	}
	m.Complete, m.Fenced, m.Restoring = true, "", false
	return true, nil
}

// Config is the configuration digest of every host in the initial manifest.
const Config = "config-1"

// Refused is the digest of settings with which no kubelet starts, and so no control plane.
const Refused = "config-refused"

// settingsOf returns the configuration digest in the run's manifest.
func (w *World) settingsOf(run string) string { return cmp.Or(w.orders[run].Config, Config) }

func writePKI(w *World, h *Host, u *Unit) (bool, error) {
	peer := w.Host(step.ParamsOf[step.CopyPKIParams](u.Intent).Peer)
	if h.Disk.CA != 0 && peer.Disk.CA != 0 && h.Disk.CA != peer.Disk.CA {
		return false, errors.New("/etc/kubernetes/pki/ca.crt is another cluster's CA")
	}
	w.reportEffect(Effect{Verb: Wrote, By: u.By, Host: h})
	h.Disk.CA = peer.Disk.CA
	w.copyKeys(h, peer)
	copyAuthority(h, peer)
	return true, nil
}

// joinKubelet creates certificates and kubeconfigs, and starts the kubelet with the cluster's endpoint.
func joinKubelet(w *World, h *Host, u *Unit) (bool, error) {
	if h.Disk.CA == 0 {
		return false, errors.New("the CA is not there")
	}
	w.reportEffect(Effect{Verb: Wrote, By: u.By, Host: h})
	e := w.wantedBy(u.By.Run)
	h.Disk.AdminCA, h.Disk.Admin, h.Disk.Names = h.Disk.CA, e.Host, e.Required()
	if h.Disk.KubeletCA == 0 {
		h.Disk.KubeletCA, h.Disk.Local, h.Disk.Dials = h.Disk.CA, false, e.Host
	}
	if h.Disk.Settings != w.settingsOf(u.By.Run) || h.Disk.Edited {
		w.configureKubelet(h, u)
		h.Run.Kubelet = false // it restarts
	}
	if !h.Run.Kubelet {
		w.reportEffect(Effect{Verb: KubeletChanged, By: u.By, Host: h, Old: h.Run.KubeletVersion,
			New: u.Intent.Version})
		startKubelet(h, u.Intent.Version)
	}
	return true, nil
}

// addMember adds this host to etcd as a learner through the cluster's endpoint, unless it is a member.
func addMember(w *World, h *Host, u *Unit) (bool, error) {
	r := w.EtcdCluster()
	switch {
	case w.Voting(h):
		return true, nil
	case r == nil || !w.asksAPI(h) || !w.Quorum(r):
		return false, nil
	case r.memberAt(h.Address) != nil:
		return true, nil
	}
	return true, w.addLearner(r, h, u.By)
}

// startMember starts etcd. A member that has lost its data does not rejoin its cluster.
func startMember(w *World, h *Host, u *Unit) (bool, error) {
	r := w.EtcdCluster()
	m := r.memberAt(h.Address)
	if m == nil {
		return false, errors.New("no member of this host's address")
	}
	if h.Disk.Data == nil {
		if m.Name != "" {
			return false, errors.New("etcd: tocommit is out of range: the data of this member is lost")
		}
		h.Disk.Data = &Data{EtcdCluster: r.ID, Member: m.ID}
	}
	h.Disk.Etcd = true
	if w.Flaws.HastyPromotion && m.Learner {
		w.reportEffect(Effect{Verb: Promoted, By: u.By, Host: h, Member: m.ID})
		m.Learner = false
	}
	return true, nil
}

// promoteMember makes the learner a voter when it has caught up.
func promoteMember(w *World, h *Host, u *Unit) (bool, error) {
	r, m := w.memberOf(h)
	if m == nil || !w.Serving(h) {
		return false, nil
	}
	if !m.Learner {
		return true, nil
	}
	if h.Disk.Data.Revision < w.newestRevision(r) {
		return false, nil
	}
	w.reportEffect(Effect{Verb: Promoted, By: u.By, Host: h, Member: m.ID})
	m.Learner = false
	w.commitEntry(r)
	return true, nil
}

// kubeletLocal points the host's kubelet to the host's own API server.
func kubeletLocal(w *World, h *Host, u *Unit) (bool, error) {
	if !h.Disk.Local {
		w.reportEffect(Effect{Verb: KubeletChanged, By: u.By, Host: h, Old: h.Run.KubeletVersion,
			New: h.Run.KubeletVersion})
		h.Disk.Local = true
	}
	return true, nil
}

// finalizeKubelet is kubeletLocal with a restart of the kubelet, like kubeadm. The kubelet creates its Node if there is
// none.
func finalizeKubelet(w *World, h *Host, u *Unit) (bool, error) {
	h.Run.Registered = false
	return kubeletLocal(w, h, u)
}

func joinWorker(w *World, h *Host, u *Unit) (bool, error) {
	r := w.EtcdCluster()
	switch {
	case h.Disk.KubeletCA != 0:
		w.configureKubelet(h, u)
		startKubelet(h, h.Disk.Kubelet) // it creates its Node if there is none
	case r == nil || !w.asksAPI(h):
		return false, nil
	default:
		w.reportEffect(Effect{Verb: Wrote, By: u.By, Host: h})
		w.configureKubelet(h, u)
		h.Disk.KubeletCA, h.Run.Kubelet = w.caOf(r), false // kubeadm restarts it
		h.Disk.Dials = w.wantedBy(u.By.Run).Host
	}
	if !h.Run.Kubelet {
		w.reportEffect(Effect{Verb: KubeletChanged, By: u.By, Host: h, Old: h.Run.KubeletVersion, New: h.Disk.Kubelet})
		startKubelet(h, h.Disk.Kubelet)
	}
	return true, nil
}

// CA returns the CA of the current cluster, or 0.
func (w *World) CA() int {
	if r := w.EtcdCluster(); r != nil {
		return w.caOf(r)
	}
	return 0
}

// caOf returns the CA of the etcd cluster's Kubernetes cluster, from a host that serves it.
func (w *World) caOf(r *EtcdCluster) int {
	for _, h := range w.Hosts {
		if d := h.Disk.Data; d != nil && d.EtcdCluster == r.ID && h.Disk.CA != 0 {
			return h.Disk.CA
		}
	}
	return 0
}
