package world

import (
	"errors"
	"fmt"
	"slices"

	"kubeone/internal/decide/rotation"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan/step"
)

// Authority is a control-plane host's part of etcd's CA. The zero value is that of a cluster without any rotation.
type Authority struct {
	Trusts      []string // keys that an etcd trusts when it starts here, the signing one first
	Signs       string   // its private key
	Shows       string   // the signer of this host's etcd certificates
	Next, Begun string   // as Next and BegunPhase in observed.Authority
	Goal        string   // the goal of the phase that has begun
}

const firstCA = "ca-1"

// Whole returns the authority with explicit defaults.
func (a Authority) Whole() Authority {
	if len(a.Trusts) == 0 {
		a.Trusts, a.Signs, a.Shows = []string{firstCA}, firstCA, firstCA
	}
	return a
}

// observeAuthority returns the probe's result.
func (a Authority) observeAuthority() observed.Authority {
	a = a.Whole()
	return observed.Authority{Trusted: slices.Clone(a.Trusts), Next: a.Next, BegunPhase: a.Begun}
}

// observeAuthorities adds the host's authorities.
func (h *Host) observeAuthorities(out *observed.Host) {
	if h.ControlPlane && h.Disk.CA != 0 {
		out.Authorities = map[string]observed.Authority{observed.EtcdCA: h.Disk.Authority.observeAuthority()}
	}
}

// rotationHosts returns the control plane's members as rotation sees them, and whether an operator reaches all of them.
func (w *World) rotationHosts() (hosts []rotation.Host, all bool) {
	all = true
	for _, h := range w.Hosts {
		if !h.ControlPlane || h.Disk.Marker == nil || !h.Disk.Marker.Complete || h.Outside {
			continue
		}
		all = all && h.Reached()
		hosts = append(hosts, rotation.Host{
			ID:          h.ID,
			Authorities: map[string]observed.Authority{observed.EtcdCA: h.Disk.Authority.observeAuthority()},
		})
	}
	return hosts, all
}

// rotating is a host's part of a phase.
var rotating = []phase{
	checkRunning, noteRotation, placeNext, placeKey, placeTrusted, signAnew, awaitOthers, restartEtcd, awaitEtcd,
	awaitAPI, dropNext, endRotation,
}

var errOtherPhase = errors.New("the hosts are in another phase than when this was planned")

// noteRotation records the phase, if it is still the next one for the state of all hosts, and its uploaded keys.
func noteRotation(w *World, h *Host, u *Unit) (bool, error) {
	p := step.ParamsOf[step.RotateParams](u.Intent)
	hosts, all := w.rotationHosts()
	fresh := len(p.NewKeys) > 0 && !rotation.Given(hosts, observed.EtcdCA)
	next := rotation.Decide(hosts, []string{observed.EtcdCA}, fresh)
	if !all || next.Phase != p.Phase && next.Phase != rotation.Settled || fresh != (len(next.New) > 0) {
		return false, errOtherPhase
	}
	a := h.Disk.Authority.Whole()
	if a.Goal = rotation.Goal(hosts, observed.EtcdCA); fresh {
		w.authorities++
		a.Goal = fmt.Sprintf("ca-%d", w.authorities+1)
	}
	w.reportEffect(Effect{Verb: Wrote, By: u.By, Host: h})
	a.Begun = string(p.Phase)
	h.Disk.Authority = a
	return true, nil
}

// isInPhase reports whether the unit's step belongs to that phase.
func isInPhase(u *Unit, p rotation.Phase) bool {
	return step.ParamsOf[step.RotateParams](u.Intent).Phase == p
}

// authorityAfter returns the host's authority after the phase.
func (w *World) authorityAfter(h *Host, u *Unit) observed.Authority {
	hosts, _ := w.rotationHosts()
	return rotation.After(h.Disk.Authority.observeAuthority(), step.ParamsOf[step.RotateParams](u.Intent).Phase,
		h.Disk.Authority.Goal, rotation.Signers(hosts, observed.EtcdCA))
}

func placeNext(w *World, h *Host, u *Unit) (bool, error) {
	if isInPhase(u, rotation.Learn) {
		h.Disk.Authority.Next = w.authorityAfter(h, u).Next
	}
	return true, nil
}

func placeKey(_ *World, h *Host, u *Unit) (bool, error) {
	if isInPhase(u, rotation.Use) {
		h.Disk.Authority.Signs = h.Disk.Authority.Goal
	}
	return true, nil
}

func placeTrusted(w *World, h *Host, u *Unit) (bool, error) {
	h.Disk.Authority.Trusts = w.authorityAfter(h, u).Trusted
	return true, nil
}

func signAnew(_ *World, h *Host, u *Unit) (bool, error) {
	if isInPhase(u, rotation.Use) {
		h.Disk.Authority.Shows = h.Disk.Authority.Goal
	}
	return true, nil
}

// restartEtcd stops etcd and API server; the kubelet restarts them.
func restartEtcd(w *World, h *Host, u *Unit) (bool, error) {
	if w.Flaws.Untold {
		return true, nil
	}
	u.Disrupted = u.Disrupted || w.Serving(h)
	w.reportEffect(Effect{Verb: EtcdStopped, By: u.By, Host: h})
	h.Run.Etcd, h.Run.API = false, ""
	return true, nil
}

func dropNext(_ *World, h *Host, u *Unit) (bool, error) {
	if isInPhase(u, rotation.Use) {
		h.Disk.Authority.Next = ""
	}
	return true, nil
}

func endRotation(w *World, h *Host, u *Unit) (bool, error) {
	h.Disk.Authority.Begun, h.Disk.Authority.Goal = w.authorityAfter(h, u).BegunPhase, ""
	return true, nil
}

// copyAuthority copies the peer's authority to a joining host. The peer's private key signs, even in an interrupted
// rotation.
func copyAuthority(h, peer *Host) {
	a := peer.Disk.Authority.Whole()
	trusts := append([]string{a.Signs}, slices.DeleteFunc(slices.Clone(a.Trusts), func(key string) bool {
		return key == a.Signs
	})...)
	h.Disk.Authority = Authority{Trusts: trusts, Signs: a.Signs, Shows: a.Signs}
	if a.Begun == observed.Used || a.Begun == string(rotation.Forget) {
		h.Disk.Authority.Begun = observed.Used
	}
}

// Shown returns the signer of each running etcd member's certificate, and the keys that each member trusts, by name.
func (w *World) Shown() (shows map[string]string, trusts map[string][]string) {
	shows, trusts = map[string]string{}, map[string][]string{}
	r := w.EtcdCluster()
	for _, h := range w.Hosts {
		if r == nil || !h.ControlPlane || !h.Run.Etcd || !w.ofCluster(h, r) || r.findMember(h.Disk.Data.Member) == nil {
			continue
		}
		shows[h.Name] = h.Disk.Authority.Whole().Shows
		trusts[h.Name] = h.Run.Trusts
	}
	return shows, trusts
}
