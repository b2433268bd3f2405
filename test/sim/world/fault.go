package world

import (
	"cmp"
	"slices"
)

// What happens to a cluster from outside. None of it is an Effect: nobody answers for it.

// Die stops the machine.
func (w *World) Die(h *Host) {
	w.Version++
	h.Up, h.Run, h.Held, h.Boots = false, Running{}, nil, h.Boots+1
}

// Boot starts the machine again; units that are enabled start.
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

// Replace puts an empty machine of the same name and address in the place of the old one, whose disk is lost.
func (w *World) Replace(h *Host) {
	w.Version++
	w.machines++
	h.Boots++
	h.Machine, h.Up, h.Run, h.Held, h.Disk = w.machines, true, Running{}, nil, Disk{}
	h.Cut, h.Split, h.Full, h.Slow, h.FailAll, h.FailNext = false, false, false, false, false, false
	h.Unready = false
}

// ForgetNode has a person delete a host's Node, unless it is of a Machine with that UID. It reports whether there was
// one.
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

// Scrap takes the machine away for good. Nothing is in its place until Replace.
func (w *World) Scrap(h *Host) {
	w.Die(h)
	w.machines++
	h.Machine, h.Disk = w.machines, Disk{}
}

// StopUnits stops the kubelet, or containerd too. Containers go on.
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

// CollectImages removes the images that no container uses.
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

// BringImages brings those of the host's API server, and reports whether they were missing.
func (w *World) BringImages(h *Host) bool {
	d := &h.Disk
	if d.API == "" || d.Has(d.API) {
		return false
	}
	w.Version++
	d.Fetched = append(d.Fetched, d.API)
	return true
}

// Set changes one of the host's conditions.
func (w *World) Set(condition *bool, to bool) {
	if *condition != to {
		w.Version++
		*condition = to
	}
}

// Sever lets operators of odd number reach only the hosts up to that one, and those of even number only the others.
func (w *World) Sever(last int) {
	w.Version++
	for i, h := range w.Hosts {
		h.Part = 2
		if i <= last {
			h.Part = 1
		}
	}
}

// Halve lets the hosts up to that one reach only each other, and the others only each other.
func (w *World) Halve(last int) {
	w.Version++
	for i, h := range w.Hosts {
		h.Side = 0
		if i > last {
			h.Side = 1
		}
	}
}

// Join lets all hosts reach each other again.
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

// CordonByHand closes a Node as a person does.
func (w *World) CordonByHand(h *Host) {
	if r := w.EtcdCluster(); r != nil {
		if n := r.Objects.Node(h.Name); n != nil && !n.Cordoned {
			w.Version++
			n.Cordoned = true
		}
	}
}

// Expire lets a member's certificates run out.
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

// Edit changes the configuration of a member's kubelet by hand, and starts that anew.
func (w *World) Edit(h *Host) {
	if h.Disk.Joined() && h.Disk.Kubelet != "" {
		w.Version++
		h.Disk.Edited, h.Run.Edited = true, h.Run.Kubelet
	}
}

// OpenByHand opens a Node as a person does.
func (w *World) OpenByHand(h *Host) {
	if r := w.EtcdCluster(); r != nil {
		if n := r.Objects.Node(h.Name); n != nil && n.Cordoned {
			w.Version++
			n.Cordoned, n.CordonedBy = false, ""
		}
	}
}

// Repair puts right what a person can put right on a member that has its data: manifests, certificates, units, and, if
// the person was told that they are gone, keys of Secrets: its API server does without where no Secret is stored by
// them, and gets them from a backup where no other host has them. It reports whether there was anything of that sort.
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

// mendKeys has an API server that cannot start, as it is told of keys which are gone, do without them where no Secret
// is stored by them. Else it gets them from a backup where no other host has them. It reports whether there was
// anything of that sort.
func (w *World) mendKeys(h *Host) bool {
	d := &h.Disk
	switch {
	case !d.KeysGone:
		return false
	case h.Run.API == "" && !w.blind(h, nil):
		d.Keys, d.Told, d.KeysGone = nil, nil, false
		return true
	case !w.othersHaveKeys(h):
		d.KeysGone = false
		return true
	}
	return false
}

// finishJoin starts the kubelet of a control-plane host whose join has reached etcd and has not ended.
func (w *World) finishJoin(h *Host) bool {
	if !h.ControlPlane || h.Run.Kubelet && h.Run.Containerd {
		return false
	}
	w.Version++
	h.Disk.KubeletCA, h.Run.Containerd = h.Disk.CA, true
	startKubelet(h, h.Disk.Kubelet)
	return true
}

// HalfJoined reports whether the host's join has not ended and cannot any more: its data of etcd is of a member that
// was removed since, or has Secrets by keys that are gone from it and that nobody else has.
func (w *World) HalfJoined(h *Host) bool {
	return h.Up && !h.Disk.Joined() && h.Disk.Data != nil &&
		(!w.etcdListed(h) || h.Disk.KeysGone && !w.othersHaveKeys(h))
}

func (w *World) etcdListed(h *Host) bool {
	r := w.etcdCluster(h.Disk.Data.EtcdCluster)
	return r != nil && r.find(h.Disk.Data.Member) != nil
}
