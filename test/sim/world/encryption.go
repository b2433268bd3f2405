package world

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"kubeone/internal/model/observed"
	"kubeone/internal/plan/step"
)

// How Secrets are stored. An API server has a list of keys, by their names: it stores by the first one, and reads by
// all of them; no list is identity alone. Its list is that of its manifest when it starts, and the manifest's is that
// of a patch when it is written.

const (
	identity = "identity"
	firstKey = "kubeone-1"
	// mostSecrets is how many Secrets a cluster has, changing how many of them somebody writes now and then, and
	// writeEvery how often, in seconds.
	mostSecrets, changing, writeEvery = 5, 3, 3
)

// Knows reports whether who has these keys can read what is stored by that one.
func Knows(keys []string, by string) bool {
	return slices.Contains(keys, by) || len(keys) == 0 && by == identity
}

// writer is by what somebody stores who has these keys.
func writer(keys []string) string {
	if len(keys) == 0 {
		return identity
	}
	return keys[0]
}

// newSecrets are those of a new cluster.
func newSecrets(keys []string) []string {
	return slices.Repeat([]string{writer(keys)}, mostSecrets)
}

// writeSecret has somebody write a Secret, through one API server after the other.
func (w *World) writeSecret() {
	r := w.EtcdCluster()
	if r == nil || w.Now%writeEvery != 0 || w.Now == w.wrote || len(r.Objects.Secrets) == 0 {
		return
	}
	w.wrote = w.Now
	n := int(w.Now / writeEvery)
	if h := w.Hosts[n%len(w.Hosts)]; h.ControlPlane && w.APIReady(h) && w.ofCluster(h, r) {
		r.Objects.Secrets[n%changing] = writer(h.Run.Told)
	}
}

// ofCluster reports whether the host has data of that etcd.
func (w *World) ofCluster(h *Host, r *EtcdCluster) bool {
	return h.Disk.Data != nil && h.Disk.Data.EtcdCluster == r.ID
}

// Readers are the API servers of the cluster by their keys, by the hosts' names: those that run, and those that start
// next there. One whose etcd was removed from the cluster reads nothing there any more.
func (w *World) Readers() map[string][]string {
	out := map[string][]string{}
	r := w.EtcdCluster()
	for _, h := range w.Hosts {
		if r == nil || !h.ControlPlane || !w.ofCluster(h, r) || r.find(h.Disk.Data.Member) == nil ||
			h.Disk.Marker == nil || !h.Disk.Marker.Complete {
			continue
		}
		if h.Run.API != "" {
			out[h.Name+" (running)"] = h.Run.Told
		}
		if h.Disk.API != "" && !h.Disk.KeysGone {
			out[h.Name+" (next)"] = h.Disk.Told
		}
	}
	return out
}

// LoseKeys deletes the host's keys. What runs has them in memory.
func (w *World) LoseKeys(h *Host) {
	if len(h.Disk.Keys) > 0 {
		h.Disk.KeysGone = true
		w.Version++
	}
}

// tellAPI writes the keys that the patch names into the API server's manifest; the kubelet starts it anew.
func (h *Host) tellAPI() {
	if !slices.Equal(h.Disk.Told, h.Disk.Keys) {
		h.Run.API = ""
	}
	h.Disk.Told = slices.Clone(h.Disk.Keys)
}

var errBlind = errors.New("etcd has Secrets that are stored by a key which the API server would not know")

// blind reports whether an API server with these keys could not read what is stored.
func (w *World) blind(h *Host, keys []string) bool {
	r := w.EtcdCluster()
	return !w.Flaws.Unwritten && r != nil && w.ofCluster(h, r) &&
		slices.ContainsFunc(r.Objects.Secrets, func(by string) bool { return !Knows(keys, by) })
}

// copyKeys gives a host that joins the keys of the host from which it has the CAs, and then those of all others that
// its operator reaches.
func (w *World) copyKeys(h, peer *Host) {
	keys := slices.Clone(peer.Disk.Keys)
	if len(keys) == 0 {
		keys = []string{identity}
	}
	for _, other := range w.Hosts {
		if other != h && other.ControlPlane && other.Reached() && other.Disk.Joined() && !other.Disk.KeysGone {
			for _, key := range other.Disk.Keys {
				if !slices.Contains(keys, key) {
					keys = append(keys, key)
				}
			}
		}
	}
	if slices.Equal(keys, []string{identity}) {
		keys = nil
	}
	h.Disk.Keys, h.Disk.KeysGone = keys, false
}

// othersHaveKeys reports whether another control-plane host has the keys that this one has lost.
func (w *World) othersHaveKeys(h *Host) bool {
	return slices.ContainsFunc(w.Hosts, func(other *Host) bool {
		return other != h && other.ControlPlane && len(other.Disk.Keys) > 0 && !other.Disk.KeysGone
	})
}

// mayEncrypt finds out whether the host is well, unless it is to get its keys again.
func mayEncrypt(w *World, h *Host, u *Unit) (bool, error) {
	if step.ParamsOf[step.EncryptParams](u.Intent).Phase == "give" {
		return true, nil
	}
	return checkRunning(w, h, u)
}

// placeKeys puts the keys where the next API server looks for them, unless it could not read what is stored.
func placeKeys(w *World, h *Host, u *Unit) (bool, error) {
	keys := step.ParamsOf[step.EncryptParams](u.Intent).Providers
	switch {
	case h.Full:
		return false, errFull
	case w.blind(h, keys):
		return false, errBlind
	}
	w.effect(Effect{Verb: Wrote, By: u.By, Host: h})
	h.Disk.Keys, h.Disk.KeysGone = slices.Clone(keys), false
	return true, nil
}

// tellKeys writes the API server's manifest.
func tellKeys(w *World, h *Host, u *Unit) (bool, error) {
	u.Disrupted = u.Disrupted || w.APIReady(h)
	version := cmp.Or(h.Disk.API, h.Disk.Kubelet) // somebody may have deleted it
	w.effect(Effect{Verb: APIChanged, By: u.By, Host: h, Old: h.Disk.API, New: version})
	h.Disk.API = version
	h.tellAPI()
	return true, nil
}

// checkSecrets looks at what etcd has.
func checkSecrets(w *World, h *Host, u *Unit) (bool, error) {
	if !w.Voting(h) {
		return false, nil
	}
	by := step.ParamsOf[step.CheckSecretsParams](u.Intent).StoredBy
	for _, stored := range w.EtcdCluster().Objects.Secrets {
		if stored != by && !w.Flaws.Unwritten {
			return false, errors.New("Secrets in etcd are still stored by " + stored)
		}
	}
	return true, nil
}

// rewriteSecrets writes one Secret that is stored otherwise than the API server stores now.
func rewriteSecrets(w *World, q query) (bool, error) {
	by := writer(w.apiVia().Run.Told)
	secrets := q.etcdCluster.Objects.Secrets
	for i := range secrets {
		if secrets[i] != by && !w.Flaws.Unwritten {
			w.effect(Effect{Verb: Applied, By: q.by})
			secrets[i] = by
			w.Write()
			return false, nil
		}
	}
	return true, nil
}

// observeEncryption is what the host says of its keys.
func (h *Host) observeEncryption(out *observed.Host) {
	d := &h.Disk
	if len(d.Keys)+len(d.Told)+len(h.Run.Told) == 0 {
		return
	}
	e := &observed.Encryption{Next: h.encryptionConfig(d.Keys), Lost: d.KeysGone}
	if h.Run.API != "" {
		e.Running = []observed.EncryptionConfig{h.encryptionConfig(h.Run.Told)}
	}
	out.Encryption = e
}

func (h *Host) encryptionConfig(keys []string) observed.EncryptionConfig {
	if len(keys) == 0 {
		return observed.EncryptionConfig{}
	}
	c := observed.EncryptionConfig{Digest: "digest:" + strings.Join(keys, ",")}
	for _, key := range keys {
		if !h.Disk.KeysGone {
			c.Providers = append(c.Providers, observed.EncryptedBy{Name: key, Key: "digest:" + key})
		}
	}
	return c
}
