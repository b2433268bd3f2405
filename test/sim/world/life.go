package world

import (
	"errors"
	"slices"

	"kubeone/internal/plan/step"
)

// The phases of repair, upgrade, removal and recovery.

func restartUnits(w *World, h *Host, u *Unit) (bool, error) {
	w.reportEffect(Effect{Verb: UnitsRestarted, By: u.By, Host: h})
	if slices.Contains(step.ParamsOf[step.RestartUnitsParams](u.Intent).Units, "containerd") {
		h.Run.Containerd = true
	}
	if slices.Contains(step.ParamsOf[step.RestartUnitsParams](u.Intent).Units, "kubelet") && h.Disk.Kubelet != "" {
		startKubelet(h, h.Disk.Kubelet)
	}
	h.Disk.Enabled = true
	return true, nil
}

// stopUnits stops the units before files change that they read at their start.
func stopUnits(w *World, h *Host, u *Unit) (bool, error) {
	w.reportEffect(Effect{Verb: UnitsRestarted, By: u.By, Host: h})
	h.Run.Kubelet, h.Run.Registered = false, false
	return true, nil
}

func restoreFiles(w *World, h *Host, u *Unit) (bool, error) {
	if h.Full {
		return false, errFull
	}
	w.reportEffect(Effect{Verb: Wrote, By: u.By, Host: h})
	h.Disk.Edited = false
	return true, nil
}

func startUnits(_ *World, h *Host, _ *Unit) (bool, error) {
	h.Run.Containerd = true
	startKubelet(h, h.Disk.Kubelet)
	return true, nil
}

// checkUpgrade checks the requirements of the host's upgrade. It changes nothing.
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

// beginUpgrade records that the upgrade has begun. It starts a stopped kubelet, because nothing else would restart
// etcd.
func beginUpgrade(w *World, h *Host, u *Unit) (bool, error) {
	h.Disk.Upgrading = u.Intent.Version
	if !h.Run.Kubelet {
		w.configureKubelet(h, u)
		startKubelet(h, h.Disk.Kubelet)
	}
	return true, nil
}

func endUpgrade(_ *World, h *Host, _ *Unit) (bool, error) {
	h.Disk.Upgrading = ""
	return true, nil
}

// checkRunning checks that the host is healthy, the condition for a change of its settings.
func checkRunning(w *World, h *Host, _ *Unit) (bool, error) {
	if h.Full {
		return false, errFull
	}
	return h.Run.Kubelet && (!h.ControlPlane || w.APIReady(h) && w.Voting(h)), nil
}

// stopForSettings stops everything that reads the settings at its start: in the worst case, the whole control plane of
// the host.
func stopForSettings(w *World, h *Host, u *Unit) (bool, error) {
	if h.ControlPlane {
		return stopAll(w, h, u)
	}
	return stopUnits(w, h, u)
}

// markChange records that a change of the host's settings has begun.
func markChange(_ *World, h *Host, u *Unit) (bool, error) {
	h.Disk.Upgrading = u.Intent.Version
	return true, nil
}

// changeSettings writes the desired settings.
func changeSettings(w *World, h *Host, u *Unit) (bool, error) {
	w.reportEffect(Effect{Verb: Wrote, By: u.By, Host: h})
	u.before = h.Disk.Settings
	w.configureKubelet(h, u)
	return true, nil
}

// trySettings starts the readers of the settings. Refused settings are rolled back.
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

func takeSnapshot(w *World, h *Host, u *Unit) (bool, error) {
	if h.Full {
		return false, errFull
	}
	if !w.Voting(h) {
		return false, nil
	}
	w.reportEffect(Effect{Verb: Wrote, By: u.By, Host: h})
	h.Disk.Snapshots = append(h.Disk.Snapshots, h.Disk.Data.Revision)
	return true, nil
}

// awaitOthers waits until etcd has its quorum without the host's member, or cannot have one without it.
func awaitOthers(w *World, h *Host, _ *Unit) (bool, error) {
	r := w.EtcdCluster()
	if r == nil || !h.Run.Etcd || w.Flaws.NoQuorum {
		return true, nil
	}
	voters, together := w.countHeard(r, h)
	if voters <= 2 {
		return together == voters, nil
	}
	return 2*(together-1) > voters, nil
}

func changeKubelet(w *World, h *Host, u *Unit) (bool, error) {
	w.reportEffect(Effect{Verb: KubeletChanged, By: u.By, Host: h, Old: h.Run.KubeletVersion, New: u.Intent.Version})
	w.configureKubelet(h, u)
	startKubelet(h, u.Intent.Version)
	h.Run.Containerd = true
	return true, nil
}

func stopAll(w *World, h *Host, u *Unit) (bool, error) {
	if h.Run.Etcd {
		u.Disrupted = u.Disrupted || w.Serving(h)
		w.reportEffect(Effect{Verb: EtcdStopped, By: u.By, Host: h})
	}
	h.Run.Kubelet, h.Run.KubeletVersion, h.Run.Registered = false, "", false
	h.Run.Etcd, h.Run.API = false, ""
	return true, nil
}

// keepAside moves aside what a reset keeps: etcd's data and the PKI.
func keepAside(w *World, h *Host, u *Unit) (bool, error) {
	d := &h.Disk
	if w.Flaws.Delete || d.Data == nil && d.CA == 0 {
		return true, nil
	}
	w.reportEffect(Effect{Verb: MovedAside, By: u.By, Host: h})
	d.putAside()
	return true, nil
}

// putAside moves etcd's data and the CA aside.
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
	w.reportEffect(Effect{Verb: Deleted, By: u.By, Host: h})
	h.Disk = Disk{Generation: h.Disk.Generation, Marker: h.Disk.Marker, Aside: h.Disk.Aside, AsideCA: h.Disk.AsideCA}
	h.Run.Containerd = false
	return true, nil
}

// deleteAside deletes the kept data.
func deleteAside(w *World, h *Host, u *Unit) (bool, error) {
	w.reportEffect(Effect{Verb: Purged, By: u.By, Host: h})
	h.Disk.Aside, h.Disk.AsideCA = nil, nil
	return true, nil
}

// moveAside moves etcd's data and the manifests aside.
func moveAside(w *World, h *Host, u *Unit) (bool, error) {
	w.reportEffect(Effect{Verb: MovedAside, By: u.By, Host: h})
	if h.Disk.Data != nil {
		h.Disk.Aside = append(h.Disk.Aside, *h.Disk.Data)
	}
	h.Disk.Data, h.Disk.Etcd, h.Disk.API, h.Disk.Controllers = nil, false, "", false
	return true, nil
}

// markUnfinished marks the join of the host as unfinished. The kubelet waits for the join, which creates its
// certificates again.
func markUnfinished(w *World, h *Host, u *Unit) (bool, error) {
	if h.Disk.Marker == nil {
		h.Disk.Marker = &Marker{Cluster: w.Name, Role: u.Intent.Role, ID: h.ID, Node: u.Intent.NodeName}
	}
	h.Disk.Marker.Complete, h.Disk.Marker.Epoch = false, w.orders[u.By.Run].Epoch
	h.Disk.KubeletCA, h.Disk.AdminCA, h.Disk.Expired = 0, 0, false
	return true, nil
}

// renewCertificates renews expired certificates and restarts their users.
func renewCertificates(w *World, h *Host, u *Unit) (bool, error) {
	if !slices.Contains(step.ParamsOf[step.RegenerateParams](u.Intent).Parts, "certificates") {
		return true, nil
	}
	if h.Run.Etcd && !w.Voting(h) {
		u.Disrupted = u.Disrupted || w.Serving(h)
		w.reportEffect(Effect{Verb: EtcdStopped, By: u.By, Host: h})
		h.Run.Etcd = false
	}
	w.reportEffect(Effect{Verb: Wrote, By: u.By, Host: h})
	h.Disk.Expired, h.Run.API = false, ""
	return true, nil
}

// signKubelet gives the kubelet new credentials. For a worker that requires the cluster.
func signKubelet(w *World, h *Host, u *Unit) (bool, error) {
	if slices.Contains(step.ParamsOf[step.RegenerateParams](u.Intent).Parts, "kubelet-credentials") {
		if !h.ControlPlane && !w.asksAPI(h) {
			return false, nil
		}
		w.reportEffect(Effect{Verb: Wrote, By: u.By, Host: h})
		h.Disk.KubeletCA, h.Disk.Local, h.Disk.Expired = w.caOf(w.EtcdCluster()), h.ControlPlane, false
		if h.ControlPlane {
			h.Disk.KubeletCA = h.Disk.CA
		} else {
			h.Disk.Dials = w.wantedBy(u.By.Run).Host
		}
	}
	return true, nil
}

// writeManifests writes missing static pods in the version of the host, and restarts the kubelet.
func writeManifests(w *World, h *Host, u *Unit) (bool, error) {
	w.reportEffect(Effect{Verb: Wrote, By: u.By, Host: h})
	for _, part := range step.ParamsOf[step.RegenerateParams](u.Intent).Parts {
		switch part {
		case "kubelet-settings":
			w.configureKubelet(h, u)
		case "etcd":
			if h.Disk.Data == nil {
				return false, errors.New("an etcd without its data must not start as the member that it was")
			}
			h.Disk.Etcd = true
		case "kube-apiserver":
			w.reportEffect(Effect{Verb: APIChanged, By: u.By, Host: h, New: h.Disk.Kubelet})
			if h.Disk.KeysGone || w.cannotRead(h, h.Disk.Keys) {
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

// applySystem applies kube-proxy and cluster DNS, whose pods are not simulated.
func applySystem(w *World, h *Host, _ *Unit) (bool, error) { return w.asksAPI(h), nil }

// LoseMarker deletes the host's marker and returns it, or nil.
func (w *World) LoseMarker(h *Host) *Marker {
	m := h.Disk.Marker
	h.Disk.Marker = nil
	w.Version++
	return m
}

// PutBackMarker restores the host's marker, unless it has one or was reset.
func (w *World) PutBackMarker(h *Host, m *Marker) {
	if h.Disk.Marker == nil && h.Disk.Kubelet != "" {
		h.Disk.Marker = m
		w.Version++
	}
}
