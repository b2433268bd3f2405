package world

import (
	"errors"
	"slices"

	"kubeone/internal/plan/step"
)

// The phases of a cluster's later life: repair, upgrade, removal, recovery.

func restartUnits(w *World, h *Host, u *Unit) (bool, error) {
	w.effect(Effect{Verb: UnitsRestarted, By: u.By, Host: h})
	if slices.Contains(step.ParamsOf[step.RestartUnitsParams](u.Intent).Units, "containerd") {
		h.Run.Containerd = true
	}
	if slices.Contains(step.ParamsOf[step.RestartUnitsParams](u.Intent).Units, "kubelet") && h.Disk.Kubelet != "" {
		startKubelet(h, h.Disk.Kubelet)
	}
	h.Disk.Enabled = true
	return true, nil
}

// stopUnits comes before files change that units read when they start.
func stopUnits(w *World, h *Host, u *Unit) (bool, error) {
	w.effect(Effect{Verb: UnitsRestarted, By: u.By, Host: h})
	h.Run.Kubelet, h.Run.Registered = false, false
	return true, nil
}

func restoreFiles(w *World, h *Host, u *Unit) (bool, error) {
	if h.Full {
		return false, errFull
	}
	w.effect(Effect{Verb: Wrote, By: u.By, Host: h})
	h.Disk.Edited = false
	return true, nil
}

func startUnits(_ *World, h *Host, _ *Unit) (bool, error) {
	h.Run.Containerd = true
	startKubelet(h, h.Disk.Kubelet)
	return true, nil
}

// checkUpgrade finds out whether all that the host's upgrade needs is there. It changes nothing.
func checkUpgrade(w *World, h *Host, u *Unit) (bool, error) {
	switch {
	case !h.Disk.Has(u.Intent.Version):
		return false, errors.New("binaries and images of " + u.Intent.Version + " are not on this host any more")
	case h.Full:
		return false, errFull
	}
	begun := h.Disk.Upgrading == u.Intent.Version || !h.ControlPlane && h.Disk.Upgrading != ""
	return begun || h.Run.Kubelet && (!h.ControlPlane || w.APIReady(h)), nil
}

// beginUpgrade notes that the upgrade has begun. A kubelet that does not run is started: nothing else would
// start etcd again.
func beginUpgrade(w *World, h *Host, u *Unit) (bool, error) {
	h.Disk.Upgrading = u.Intent.Version
	if !h.Run.Kubelet {
		w.configure(h, u)
		startKubelet(h, h.Disk.Kubelet)
	}
	return true, nil
}

func endUpgrade(_ *World, h *Host, _ *Unit) (bool, error) {
	h.Disk.Upgrading = ""
	return true, nil
}

// checkRunning finds out whether the host is well: only then are its settings changed.
func checkRunning(w *World, h *Host, _ *Unit) (bool, error) {
	if h.Full {
		return false, errFull
	}
	return h.Run.Kubelet && (!h.ControlPlane || w.APIReady(h) && w.Voting(h)), nil
}

// stopForSettings stops what reads the settings when it starts: on a control-plane host all of it, at worst.
func stopForSettings(w *World, h *Host, u *Unit) (bool, error) {
	if h.ControlPlane {
		return stopAll(w, h, u)
	}
	return stopUnits(w, h, u)
}

// markChange notes that a change of the host's settings has begun.
func markChange(_ *World, h *Host, u *Unit) (bool, error) {
	h.Disk.Upgrading = u.Intent.Version
	return true, nil
}

// changeSettings writes the wanted ones.
func changeSettings(w *World, h *Host, u *Unit) (bool, error) {
	w.effect(Effect{Verb: Wrote, By: u.By, Host: h})
	u.before = h.Disk.Settings
	w.configure(h, u)
	return true, nil
}

// trySettings starts what reads them. Those that are refused are taken back, and the host is as it was.
func trySettings(_ *World, h *Host, u *Unit) (bool, error) {
	refused := h.Disk.Settings == Refused
	if refused {
		h.Disk.Settings, h.Disk.Upgrading = u.before, ""
	}
	startKubelet(h, h.Disk.Kubelet)
	if refused {
		return false, errors.New("the kubelet does not start; this host has again what it had before")
	}
	return true, nil
}

func snapshot(w *World, h *Host, u *Unit) (bool, error) {
	if h.Full {
		return false, errFull
	}
	if !w.Voting(h) {
		return false, nil
	}
	w.effect(Effect{Verb: Wrote, By: u.By, Host: h})
	h.Disk.Snapshots = append(h.Disk.Snapshots, h.Disk.Data.Revision)
	return true, nil
}

// awaitOthers waits until etcd has its quorum without the host's member, or cannot have one without it.
func awaitOthers(w *World, h *Host, _ *Unit) (bool, error) {
	r := w.EtcdCluster()
	if r == nil || !h.Run.Etcd || w.Flaws.NoQuorum {
		return true, nil
	}
	voters, together := w.heard(r, h)
	if voters <= 2 {
		return together == voters, nil
	}
	return 2*(together-1) > voters, nil
}

func changeKubelet(w *World, h *Host, u *Unit) (bool, error) {
	w.effect(Effect{Verb: KubeletChanged, By: u.By, Host: h, Old: h.Run.KubeletVersion, New: u.Intent.Version})
	w.configure(h, u)
	startKubelet(h, u.Intent.Version)
	h.Run.Containerd = true
	return true, nil
}

func stopAll(w *World, h *Host, u *Unit) (bool, error) {
	if h.Run.Etcd {
		u.Disrupted = u.Disrupted || w.Serving(h)
		w.effect(Effect{Verb: EtcdStopped, By: u.By, Host: h})
	}
	h.Run.Kubelet, h.Run.KubeletVersion, h.Run.Registered = false, "", false
	h.Run.Etcd, h.Run.API = false, ""
	return true, nil
}

// keep moves aside what a reset keeps: etcd's data and the PKI.
func keep(w *World, h *Host, u *Unit) (bool, error) {
	d := &h.Disk
	if w.Flaws.Delete || d.Data == nil && d.CA == 0 {
		return true, nil
	}
	w.effect(Effect{Verb: MovedAside, By: u.By, Host: h})
	d.putAside()
	return true, nil
}

// putAside takes etcd's data and the CA out of use.
func (d *Disk) putAside() {
	if d.Data != nil {
		d.Aside = append(d.Aside, *d.Data)
	}
	if d.CA != 0 {
		d.AsideCA = append(d.AsideCA, d.CA)
	}
	d.Data, d.CA = nil, 0
}

// deleteAll makes the host bare.
func deleteAll(w *World, h *Host, u *Unit) (bool, error) {
	w.effect(Effect{Verb: Deleted, By: u.By, Host: h})
	h.Disk = Disk{Generation: h.Disk.Generation, Marker: h.Disk.Marker, Aside: h.Disk.Aside, AsideCA: h.Disk.AsideCA}
	h.Run.Containerd = false
	return true, nil
}

// deleteAside deletes what was kept.
func deleteAside(w *World, h *Host, u *Unit) (bool, error) {
	w.effect(Effect{Verb: Purged, By: u.By, Host: h})
	h.Disk.Aside, h.Disk.AsideCA = nil, nil
	return true, nil
}

// moveAside keeps etcd's data and the manifests where nothing finds them.
func moveAside(w *World, h *Host, u *Unit) (bool, error) {
	w.effect(Effect{Verb: MovedAside, By: u.By, Host: h})
	if h.Disk.Data != nil {
		h.Disk.Aside = append(h.Disk.Aside, *h.Disk.Data)
	}
	h.Disk.Data, h.Disk.Etcd, h.Disk.API, h.Disk.Controllers = nil, false, "", false
	return true, nil
}

// markUnfinished makes the host one whose join has not ended; its kubelet waits for the join, which makes its
// certificates anew.
func markUnfinished(w *World, h *Host, u *Unit) (bool, error) {
	if h.Disk.Marker == nil {
		h.Disk.Marker = &Marker{Cluster: w.Name, Role: u.Intent.Role, ID: h.ID, Node: u.Intent.NodeName}
	}
	h.Disk.Marker.Complete, h.Disk.Marker.Epoch = false, w.orders[u.By.Run].Epoch
	h.Disk.KubeletCA, h.Disk.AdminCA, h.Disk.Expired = 0, 0, false
	return true, nil
}

// renew makes certificates that have expired anew; what uses them starts again.
func renew(w *World, h *Host, u *Unit) (bool, error) {
	if !slices.Contains(step.ParamsOf[step.RegenerateParams](u.Intent).Parts, "certificates") {
		return true, nil
	}
	if h.Run.Etcd && !w.Voting(h) {
		u.Disrupted = u.Disrupted || w.Serving(h)
		w.effect(Effect{Verb: EtcdStopped, By: u.By, Host: h})
		h.Run.Etcd = false
	}
	w.effect(Effect{Verb: Wrote, By: u.By, Host: h})
	h.Disk.Expired, h.Run.API = false, ""
	return true, nil
}

// signKubelet gives the kubelet new credentials. A worker needs the cluster for that.
func signKubelet(w *World, h *Host, u *Unit) (bool, error) {
	if slices.Contains(step.ParamsOf[step.RegenerateParams](u.Intent).Parts, "kubelet-credentials") {
		if !h.ControlPlane && !w.asksAPI(h) {
			return false, nil
		}
		w.effect(Effect{Verb: Wrote, By: u.By, Host: h})
		h.Disk.KubeletCA, h.Disk.Local, h.Disk.Expired = w.caOf(w.EtcdCluster()), h.ControlPlane, false
		if h.ControlPlane {
			h.Disk.KubeletCA = h.Disk.CA
		} else {
			h.Disk.Dials = w.wantedBy(u.By.Run).Host
		}
	}
	return true, nil
}

// writeManifests writes the static pods that are missing, in the version that the host has, and starts
// the kubelet anew.
func writeManifests(w *World, h *Host, u *Unit) (bool, error) {
	w.effect(Effect{Verb: Wrote, By: u.By, Host: h})
	for _, part := range step.ParamsOf[step.RegenerateParams](u.Intent).Parts {
		switch part {
		case "kubelet-settings":
			w.configure(h, u)
		case "etcd":
			if h.Disk.Data == nil {
				return false, errors.New("an etcd without its data must not start as the member that it was")
			}
			h.Disk.Etcd = true
		case "kube-apiserver":
			w.effect(Effect{Verb: APIChanged, By: u.By, Host: h, New: h.Disk.Kubelet})
			if h.Disk.KeysGone || w.blind(h, h.Disk.Keys) {
				return false, errBlind
			}
			h.Disk.API = h.Disk.Kubelet
			h.tellAPI()
		case "kube-controller-manager", "kube-scheduler":
			h.Disk.Controllers = true
		}
	}
	h.Run.Containerd = true
	startKubelet(h, h.Disk.Kubelet)
	return true, nil
}

// applySystem applies kube-proxy and cluster DNS, whose pods the simulated world does not have.
func applySystem(w *World, h *Host, _ *Unit) (bool, error) { return w.asksAPI(h), nil }

// LoseMarker deletes the host's marker, and returns it; nil where there is none.
func (w *World) LoseMarker(h *Host) *Marker {
	m := h.Disk.Marker
	h.Disk.Marker = nil
	w.Version++
	return m
}

// PutBackMarker gives the host a marker back, unless it has one, or was reset.
func (w *World) PutBackMarker(h *Host, m *Marker) {
	if h.Disk.Marker == nil && h.Disk.Kubelet != "" {
		h.Disk.Marker = m
		w.Version++
	}
}
