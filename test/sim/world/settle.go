package world

import "slices"

// Settle applies the rules of the world: kubelets start static pods, members find their quorum and catch up, Nodes
// report, pods are scheduled. It is called after every event.
func (w *World) Settle() {
	w.writeSecret()
	if w.Version == w.settled && w.Now%32 != 0 {
		if r := w.EtcdCluster(); r != nil && w.Now%4 == 1 {
			w.catchUp(r)
		}
		return
	}
	w.settleWorld()
	w.settled = w.Version
}

func (w *World) settleWorld() {
	for _, h := range w.Hosts {
		w.settleHost(h)
	}
	r := w.EtcdCluster()
	if r == nil {
		return
	}
	w.catchUp(r)
	for _, h := range w.Hosts {
		w.registerNode(r, h)
	}
	w.updateNodes(r)
	if w.APIUp() {
		w.placePods(r)
	}
}

// settleHost starts and stops components on one host.
func (w *World) settleHost(h *Host) {
	if !h.Up {
		return
	}
	if h.Run.Etcd && !w.etcdRuns(h) {
		h.Run.Etcd = false
		w.Version++
	}
	if h.Run.API != "" && (h.Disk.API == "" || !h.Run.Etcd) && h.Run.Kubelet {
		h.Run.API = ""
		w.Version++
	}
	if !h.Run.Kubelet || !h.Run.Containerd {
		return
	}
	if !h.Run.Etcd && h.Disk.Etcd && w.etcdRuns(h) {
		h.Run.Etcd, h.Run.Trusts = true, slices.Clone(h.Disk.Authority.Whole().Trusts)
		w.nameMember(h)
		w.Version++
	}
	if h.Run.Etcd && h.Disk.API != h.Run.API && h.Disk.API != "" && h.Disk.Has(h.Disk.API) &&
		!h.Disk.KeysGone {
		h.Run.API, h.Run.Told = h.Disk.API, slices.Clone(h.Disk.Told)
		w.Version++
	}
}

// etcdRuns reports whether etcd can run with the host's data: its cluster must still list the member.
func (w *World) etcdRuns(h *Host) bool {
	d := h.Disk.Data
	return d != nil && h.Disk.CA != 0 && !h.Disk.Expired && w.etcdCluster(d.EtcdCluster).findMember(d.Member) != nil
}

// nameMember gives a member its name at its first start.
func (w *World) nameMember(h *Host) {
	if r, m := w.memberOf(h); m != nil && m.Name == "" && w.Quorum(r) {
		m.Name = h.Name
	}
}

// APIReady reports whether the host's own API server works. It needs the host's own etcd member.
func (w *World) APIReady(h *Host) bool { return h.Up && h.Run.API != "" && w.Voting(h) }

// APIUp reports whether an API server works.
func (w *World) APIUp() bool {
	for _, h := range w.Hosts {
		if h.ControlPlane && w.APIReady(h) {
			return true
		}
	}
	return false
}

// APIReached reports whether operators reach a working API server.
func (w *World) APIReached() bool { return w.apiVia() != nil }

func (w *World) apiVia() *Host {
	for _, h := range w.Hosts {
		if h.ControlPlane && !h.Outside && h.Reached() && h.Disk.AdminCA != 0 && w.APIReady(h) {
			return h
		}
	}
	return nil
}

// Asks reports whether the host's kubelet reaches its API server: its own, or any behind the cluster's endpoint.
func (w *World) Asks(h *Host) bool {
	if !h.Up || !h.Run.Kubelet || h.Disk.KubeletCA == 0 || h.Disk.Expired {
		return false
	}
	if h.Disk.Local {
		return w.APIReady(h)
	}
	return w.asksAPI(h) && w.Believed(h.Disk.Dials)
}

// registerNode creates the Node of a kubelet that has just started.
func (w *World) registerNode(r *EtcdCluster, h *Host) {
	if h.Run.Registered || !w.Asks(h) {
		return
	}
	h.Run.Registered = true
	w.Version++
	if r.Objects.Node(h.Name) == nil {
		n := &Node{Name: h.Name, Address: h.Address}
		if m := h.Disk.Marker; m != nil && m.Machine != "" {
			n.Labels = map[string]string{OwnerLabel: m.Machine}
		}
		r.Objects.Nodes = append(r.Objects.Nodes, n)
	}
}

// updateNodes updates the status of Nodes.
func (w *World) updateNodes(r *EtcdCluster) {
	for _, n := range r.Objects.Nodes {
		h := w.Host(n.Name)
		ready := h != nil && w.Asks(h) && h.Run.Registered && h.Run.Containerd && !h.Unready &&
			r.Objects.Addons[w.want.Network.CNI.Name] != ""
		if ready != n.Ready {
			n.Ready, n.Since = ready, w.Now
			w.Version++
		}
		if ready && n.Kubelet != h.Run.KubeletVersion {
			n.Kubelet = h.Run.KubeletVersion
			w.Version++
		}
		if h != nil && !ready && w.Asks(h) && n.Kubelet != h.Run.KubeletVersion {
			n.Kubelet = h.Run.KubeletVersion
			w.Version++
		}
	}
}
