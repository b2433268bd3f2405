package world

import (
	"errors"

	"kubeone/internal/plan/step"
)

// The phases of a recovery: the stages fence and restore. They move a host's data aside and delete nothing.

// fenceMark records that a recovery takes the host out of service.
func fenceMark(w *World, h *Host, u *Unit) (bool, error) { return w.outOfService(h, u, false) }

// restoreMark records that the cluster restarts on the host. The work of an earlier, unfinished restore counts.
func restoreMark(w *World, h *Host, u *Unit) (bool, error) {
	if m := h.Disk.Marker; m == nil || !m.Restoring {
		h.Disk.Restored = false
	}
	return w.outOfService(h, u, true)
}

func (w *World) outOfService(h *Host, u *Unit, restoring bool) (bool, error) {
	m := h.Disk.Marker
	switch {
	case m != nil && m.Cluster != w.Name:
		return false, errors.New("this host belongs to another cluster")
	case (m == nil || m.Fenced == "") && w.Voting(h) && !w.Flaws.Anyhow:
		return false, errors.New("etcd has its quorum again, and nothing was stopped here")
	}
	w.reportEffect(Effect{Verb: Wrote, By: u.By, Host: h})
	if m == nil {
		m = &Marker{Cluster: w.Name, ID: h.ID}
		h.Disk.Marker = m
	}
	m.Role, m.Node = u.Intent.Role, u.Intent.NodeName
	m.Complete, m.Fenced, m.Restoring = false, u.By.Run, restoring
	return true, nil
}

// takeAway moves aside everything that a fenced host could serve with.
func takeAway(w *World, h *Host, u *Unit) (bool, error) {
	w.reportEffect(Effect{Verb: MovedAside, By: u.By, Host: h})
	d := &h.Disk
	d.putAside()
	d.Etcd, d.API, d.Lost, d.Controllers = false, "", "", false
	d.KubeletCA, d.AdminCA, d.Expired, d.Restored = 0, 0, false, false
	return true, nil
}

// restoreData replaces the old data by that of a new etcd, once.
func restoreData(w *World, h *Host, u *Unit) (bool, error) {
	d, old := &h.Disk, w.EtcdCluster()
	if d.Restored && d.Data != nil {
		return true, nil
	}
	if step.ParamsOf[step.RestoreParams](u.Intent).From == step.SurvivingMember {
		d.takeBack()
	}
	switch {
	case d.Data == nil || old == nil:
		return false, errors.New("there is no etcd data on this host")
	case h.Full:
		return false, errFull
	}
	if _, err := stopAll(w, h, u); err != nil {
		return false, err
	}
	w.reportEffect(Effect{Verb: RingMade, By: u.By, Host: h})
	before := *d.Data
	d.Aside = append(d.Aside, before)
	w.beginEtcd(h, old.Objects.cloneObjects(), before.Revision)
	d.Restored = true
	return true, nil
}

// takeBack restores what a fence took away, unless it was replaced.
func (d *Disk) takeBack() {
	if n := len(d.AsideCA); d.CA == 0 && n > 0 {
		d.CA, d.AsideCA = d.AsideCA[n-1], d.AsideCA[:n-1]
	}
	if n := len(d.Aside); d.Data == nil && n > 0 {
		last := d.Aside[n-1]
		d.Data, d.Aside = &last, d.Aside[:n-1]
	}
}

// beginAnew starts the control plane on the restored data.
func beginAnew(w *World, h *Host, u *Unit) (bool, error) {
	d := &h.Disk
	if d.CA == 0 || d.Data == nil {
		return false, errors.New("the CA is not there, or etcd's data")
	}
	w.reportEffect(Effect{Verb: Wrote, By: u.By, Host: h})
	if d.API != u.Intent.Version {
		w.reportEffect(Effect{Verb: APIChanged, By: u.By, Host: h, Old: d.API, New: u.Intent.Version})
	}
	if made := d.KubeletCA == 0 || d.API == "" || d.Digest == ""; made || d.Upgrading != "" {
		w.configureKubelet(h, u)
		if made { // by kubeadm, around the data
			d.Digest, d.Upgrading = d.Settings, ""
		}
	}
	e := w.wantedBy(u.By.Run)
	if d.AdminCA == 0 { // a renewed certificate keeps its names
		d.Admin, d.Names = e.Host, e.Required()
	}
	d.AdminCA, d.KubeletCA, d.Local, d.Expired = d.CA, d.CA, true, false
	if d.KeysGone {
		return false, errBlind
	}
	d.Etcd, d.API, d.Controllers = true, u.Intent.Version, true
	h.tellAPI()
	w.BringImages(h)
	h.Run.Containerd = true
	startKubelet(h, d.Kubelet)
	return true, nil
}
