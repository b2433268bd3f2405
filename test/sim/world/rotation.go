package world

import (
	"errors"
	"fmt"
	"slices"

	"kubeone/internal/decide/rotation"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan/step"
)

// Authority is what a control-plane host has of etcd's CA. Its zero value is that of a cluster in which nothing was
// ever rotated.
type Authority struct {
	Trusts      []string // the keys that an etcd trusts which starts here, the one that signs first
	Signs       string   // the private key beside it
	Shows       string   // the key that has signed what this host's etcd shows
	Next, Begun string   // as observed.Authority has it
	Goal        string   // the key to which the phase goes that has begun
}

const firstCA = "ca-1"

// Whole is the authority with what its zero value stands for.
func (a Authority) Whole() Authority {
	if len(a.Trusts) == 0 {
		a.Trusts, a.Signs, a.Shows = []string{firstCA}, firstCA, firstCA
	}
	return a
}

// observed is what the probe says of it.
func (a Authority) observed() observed.Authority {
	a = a.Whole()
	return observed.Authority{Trusted: slices.Clone(a.Trusts), Next: a.Next, Begun: a.Begun}
}

// observeAuthorities is what the host says of those who sign.
func (h *Host) observeAuthorities(out *observed.Host) {
	if h.ControlPlane && h.Disk.CA != 0 {
		out.Authorities = map[string]observed.Authority{observed.EtcdCA: h.Disk.Authority.observed()}
	}
}

// members are the control plane's members as rotation sees them, and whether an operator reaches all of them.
func (w *World) rotationHosts() (hosts []rotation.Host, all bool) {
	all = true
	for _, h := range w.Hosts {
		if !h.ControlPlane || h.Disk.Marker == nil || !h.Disk.Marker.Complete || h.Outside {
			continue
		}
		all = all && h.Reached()
		hosts = append(hosts, rotation.Host{
			ID:          h.ID,
			Authorities: map[string]observed.Authority{observed.EtcdCA: h.Disk.Authority.observed()},
		})
	}
	return hosts, all
}

// rotating is how a host does its part of a phase.
var rotating = []phase{
	checkRunning, noteRotation, placeNext, placeKey, placeTrusted, signAnew, awaitOthers, restartEtcd, awaitEtcd,
	awaitAPI, dropNext, endRotation,
}

var errOtherPhase = errors.New("the hosts are in another phase than when this was planned")

// noteRotation notes the phase, if it is still the next one by what all hosts have, and what was brought for it.
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
	w.effect(Effect{Verb: Wrote, By: u.By, Host: h})
	a.Begun = string(p.Phase)
	h.Disk.Authority = a
	return true, nil
}

// in reports whether the unit's step is in that phase.
func in(u *Unit, p rotation.Phase) bool {
	return step.ParamsOf[step.RotateParams](u.Intent).Phase == p
}

// then is what the host has after the phase.
func (w *World) then(h *Host, u *Unit) observed.Authority {
	hosts, _ := w.rotationHosts()
	return rotation.After(h.Disk.Authority.observed(), step.ParamsOf[step.RotateParams](u.Intent).Phase,
		h.Disk.Authority.Goal, rotation.Signers(hosts, observed.EtcdCA))
}

func placeNext(w *World, h *Host, u *Unit) (bool, error) {
	if in(u, rotation.Learn) {
		h.Disk.Authority.Next = w.then(h, u).Next
	}
	return true, nil
}

func placeKey(_ *World, h *Host, u *Unit) (bool, error) {
	if in(u, rotation.Use) {
		h.Disk.Authority.Signs = h.Disk.Authority.Goal
	}
	return true, nil
}

func placeTrusted(w *World, h *Host, u *Unit) (bool, error) {
	h.Disk.Authority.Trusts = w.then(h, u).Trusted
	return true, nil
}

func signAnew(_ *World, h *Host, u *Unit) (bool, error) {
	if in(u, rotation.Use) {
		h.Disk.Authority.Shows = h.Disk.Authority.Goal
	}
	return true, nil
}

// restartEtcd ends etcd and API server; the kubelet starts them anew.
func restartEtcd(w *World, h *Host, u *Unit) (bool, error) {
	if w.Flaws.Untold {
		return true, nil
	}
	u.Disrupted = u.Disrupted || w.Serving(h)
	w.effect(Effect{Verb: EtcdStopped, By: u.By, Host: h})
	h.Run.Etcd, h.Run.API = false, ""
	return true, nil
}

func dropNext(_ *World, h *Host, u *Unit) (bool, error) {
	if in(u, rotation.Use) {
		h.Disk.Authority.Next = ""
	}
	return true, nil
}

func endRotation(w *World, h *Host, u *Unit) (bool, error) {
	h.Disk.Authority.Begun, h.Disk.Authority.Goal = w.then(h, u).Begun, ""
	return true, nil
}

// copyAuthority gives a host that joins what the peer has: its private key signs, whatever else was cut off there.
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

// Shown are the keys that have signed what each running member of etcd shows the others, and what each trusts, by name.
func (w *World) Shown() (shows map[string]string, trusts map[string][]string) {
	shows, trusts = map[string]string{}, map[string][]string{}
	r := w.EtcdCluster()
	for _, h := range w.Hosts {
		if r == nil || !h.ControlPlane || !h.Run.Etcd || !w.ofCluster(h, r) || r.find(h.Disk.Data.Member) == nil {
			continue
		}
		shows[h.Name] = h.Disk.Authority.Whole().Shows
		trusts[h.Name] = h.Run.Trusts
	}
	return shows, trusts
}
