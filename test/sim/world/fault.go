package world

import (
	"cmp"
	"slices"
)

// External faults. They are not Effects, because no run is responsible for them.

// Die stops the machine.
func (w *World) Die(h *Host) {
	w.Version++
	h.Up, h.Run, h.Held, h.Boots = false, Running{}, nil, h.Boots+1
}

// Boot starts the machine again, with its enabled units.
func (w *World) Boot(h *Host) {
	w.Version++
	h.Up, h.Run = true, Running{}
	if h.Disk.Enabled {
		h.Run.Containerd = h.Disk.Kubelet != ""
	}
	if h.Disk.Enabled && h.Disk.KubeletCA != 0 {
		startKubelet(h, h.Disk.Kubelet)
	}
}

// Replace replaces the machine by an empty one with the same name and address. The old disk is lost.
func (w *World) Replace(h *Host) {
	w.Version++
	w.machines++
	h.Boots++
	h.Machine, h.Up, h.Run, h.Held, h.Disk = w.machines, true, Running{}, nil, Disk{}
	h.Cut, h.Split, h.Full, h.Slow, h.FailAll, h.FailNext = false, false, false, false, false, false
	h.Unready = false
}

// ForgetNode has a person delete a host's Node, unless it belongs to a Machine with that UID. It reports whether there
// was one.
func (w *World) ForgetNode(host, uid string) bool {
	r := w.EtcdCluster()
	if r == nil {
		return false
	}
	n := r.Objects.Node(host)
	if n == nil || n.Labels[OwnerLabel] == uid {
		return false
	}
	w.Version++
	r.Objects.Nodes = slices.DeleteFunc(r.Objects.Nodes, func(o *Node) bool { return o == n })
	return true
}

// Scrap removes the machine. Its place is empty until Replace.
func (w *World) Scrap(h *Host) {
	w.Die(h)
	w.machines++
	h.Machine, h.Disk = w.machines, Disk{}
}

// StopUnits stops the kubelet, and optionally containerd. Containers keep running.
func (w *World) StopUnits(h *Host, containerd bool) {
	w.Version++
	h.Run.Kubelet, h.Run.Registered = false, false
	if containerd {
		h.Run.Containerd = false
	}
}

// LoseData destroys etcd's data directory.
func (w *World) LoseData(h *Host) {
	w.Version++
	h.Disk.Data, h.Run.Etcd = nil, false
}

// LoseManifest deletes the API server's manifest.
func (w *World) LoseManifest(h *Host) {
	w.Version++
	if h.Disk.API != "" {
		h.Disk.Lost, h.Disk.API = h.Disk.API, ""
	}
}

// CollectImages removes the images without a container.
func (w *World) CollectImages(h *Host) {
	w.Version++
	kept := h.Disk.Fetched[:0:0]
	for _, v := range h.Disk.Fetched {
		if v == h.Run.API || v == h.Run.KubeletVersion {
			kept = append(kept, v)
		}
	}
	h.Disk.Fetched = kept
}

// BringImages restores the image of the host's API server, and reports whether it was missing.
func (w *World) BringImages(h *Host) bool {
	d := &h.Disk
	if d.API == "" || d.Has(d.API) {
		return false
	}
	w.Version++
	d.Fetched = append(d.Fetched, d.API)
	return true
}

// Set changes a condition of a host.
func (w *World) Set(condition *bool, to bool) {
	if *condition != to {
		w.Version++
		*condition = to
	}
}

// Sever separates operators: odd ones reach only the hosts up to last, even ones only the others.
func (w *World) Sever(last int) {
	w.Version++
	for i, h := range w.Hosts {
		h.Part = 2
		if i <= last {
			h.Part = 1
		}
	}
}

// Halve separates the hosts up to last from the others.
func (w *World) Halve(last int) {
	w.Version++
	for i, h := range w.Hosts {
		h.Side = 0
		if i > last {
			h.Side = 1
		}
	}
}

// Join reconnects all hosts.
func (w *World) Join() {
	w.Version++
	for _, h := range w.Hosts {
		h.Side = 0
	}
}

// Mingle lets all operators reach all hosts again.
func (w *World) Mingle() {
	w.Version++
	for _, h := range w.Hosts {
		h.Part, h.Hidden = 0, false
	}
}

// CordonByHand cordons a Node like a person.
func (w *World) CordonByHand(h *Host) {
	if r := w.EtcdCluster(); r != nil {
		if n := r.Objects.Node(h.Name); n != nil && !n.Cordoned {
			w.Version++
			n.Cordoned = true
		}
	}
}

// Expire makes a member's certificates expire.
func (w *World) Expire(h *Host) {
	if h.Disk.Joined() && h.Disk.KubeletCA != 0 {
		w.Version++
		h.Disk.Expired = true
	}
}

// LoseConf deletes the kubelet's kubeconfig.
func (w *World) LoseConf(h *Host) {
	w.Version++
	h.Disk.KubeletCA = 0
}

// Edit changes the configuration of a member's kubelet by hand, and restarts the kubelet.
func (w *World) Edit(h *Host) {
	if h.Disk.Joined() && h.Disk.Kubelet != "" {
		w.Version++
		h.Disk.Edited, h.Run.Edited = true, h.Run.Kubelet
	}
}

// OpenByHand uncordons a Node like a person.
func (w *World) OpenByHand(h *Host) {
	if r := w.EtcdCluster(); r != nil {
		if n := r.Objects.Node(h.Name); n != nil && n.Cordoned {
			w.Version++
			n.Cordoned, n.CordonedBy = false, ""
		}
	}
}

// Repair repairs what a person can repair on a member that has its data: manifests, certificates and units. With
// keysGone, which means that the person was told of lost keys, it also repairs those with mendKeys. It reports whether
// it changed anything.
func (w *World) Repair(h *Host, keysGone bool) bool {
	d := &h.Disk
	if !h.Up || h.ControlPlane && (d.CA == 0 || d.Data == nil || !w.etcdListed(h)) {
		return false
	}
	if !d.Joined() {
		return w.finishJoin(h)
	}
	r := w.EtcdCluster()
	mended := h.ControlPlane && keysGone && w.mendKeys(h)
	whole := !mended && !d.Expired && d.KubeletCA != 0 && h.Run.Kubelet && h.Run.Containerd &&
		(r == nil || r.Objects.Node(h.Name) != nil) &&
		(!h.ControlPlane || d.Etcd && d.API != "" && d.Has(d.API) && d.Controllers)
	if whole {
		return false
	}
	w.Version++
	if h.ControlPlane {
		d.KubeletCA, d.Local, d.Etcd, d.Controllers = d.CA, true, true, true
		if d.API == "" {
			d.API = cmp.Or(d.Lost, d.Kubelet)
		}
		w.BringImages(h)
	}
	if d.KubeletCA == 0 && r != nil {
		d.KubeletCA = w.caOf(r)
		if !h.ControlPlane {
			d.Dials = r.Objects.Endpoint
		}
	}
	d.Expired, h.Run.Containerd = false, true
	startKubelet(h, d.Kubelet)
	return true
}

// mendKeys repairs an API server that cannot start because its keys are lost. Keys without stored Secrets are dropped;
// others come from a backup if no other host has them. It reports whether it changed anything.
func (w *World) mendKeys(h *Host) bool {
	d := &h.Disk
	switch {
	case !d.KeysGone:
		return false
	case h.Run.API == "" && !w.cannotRead(h, nil):
		d.Keys, d.Told, d.KeysGone = nil, nil, false
		return true
	case !w.othersHaveKeys(h):
		d.KeysGone = false
		return true
	}
	return false
}

// finishJoin starts the kubelet of a control-plane host whose unfinished join has reached etcd.
func (w *World) finishJoin(h *Host) bool {
	if !h.ControlPlane || h.Run.Kubelet && h.Run.Containerd {
		return false
	}
	w.Version++
	h.Disk.KubeletCA, h.Run.Containerd = h.Disk.CA, true
	startKubelet(h, h.Disk.Kubelet)
	return true
}

// HalfJoined reports whether the host's join is unfinished and cannot finish. Its etcd data belongs to a member that
// was removed since, or has Secrets with keys that are lost on all hosts.
func (w *World) HalfJoined(h *Host) bool {
	return h.Up && !h.Disk.Joined() && h.Disk.Data != nil &&
		(!w.etcdListed(h) || h.Disk.KeysGone && !w.othersHaveKeys(h))
}

func (w *World) etcdListed(h *Host) bool {
	r := w.etcdCluster(h.Disk.Data.EtcdCluster)
	return r != nil && r.findMember(h.Disk.Data.Member) != nil
}
