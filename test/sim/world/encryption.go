package world

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"kubeone/internal/model/observed"
	"kubeone/internal/plan/step"
)

// How Secrets are stored. An API server has a list of key names: it writes with the first key and reads with all of
// them. An empty list means identity. The API server takes its list from its manifest at its start, and the manifest
// takes it from a patch when it is written.

const (
	identity = "identity"
	firstKey = "kubeone-1"
	// mostSecrets is the number of Secrets of a cluster. changing of them are rewritten now and then, every writeEvery
	// seconds.
	mostSecrets, changing, writeEvery = 5, 3, 3
)

// Knows reports whether an API server with these keys can read what is stored with the key.
func Knows(keys []string, by string) bool {
	return slices.Contains(keys, by) || len(keys) == 0 && by == identity
}

// writeKey returns the key with which an API server with these keys writes.
func writeKey(keys []string) string {
	if len(keys) == 0 {
		return identity
	}
	return keys[0]
}

// newSecrets returns the Secrets of a new cluster.
func newSecrets(keys []string) []string {
	return slices.Repeat([]string{writeKey(keys)}, mostSecrets)
}

// writeSecret writes a Secret, through one API server after the other.
func (w *World) writeSecret() {
	r := w.EtcdCluster()
	if r == nil || w.Now%writeEvery != 0 || w.Now == w.wrote || len(r.Objects.Secrets) == 0 {
		return
	}
	w.wrote = w.Now
	n := int(w.Now / writeEvery)
	if h := w.Hosts[n%len(w.Hosts)]; h.ControlPlane && w.APIReady(h) && w.ofCluster(h, r) {
		r.Objects.Secrets[n%changing] = writeKey(h.Run.Told)
	}
}

// ofCluster reports whether the host has data of that etcd.
func (w *World) ofCluster(h *Host, r *EtcdCluster) bool {
	return h.Disk.Data != nil && h.Disk.Data.EtcdCluster == r.ID
}

// Readers returns the keys of the cluster's API servers by host name: running ones, and those that start next. It omits
// hosts whose etcd was removed from the cluster, because they no longer read there.
func (w *World) Readers() map[string][]string {
	out := map[string][]string{}
	r := w.EtcdCluster()
	for _, h := range w.Hosts {
		if r == nil || !h.ControlPlane || !w.ofCluster(h, r) || r.findMember(h.Disk.Data.Member) == nil ||
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

// LoseKeys deletes the host's keys. Running components have them in memory.
func (w *World) LoseKeys(h *Host) {
	if len(h.Disk.Keys) > 0 {
		h.Disk.KeysGone = true
		w.Version++
	}
}

// tellAPI copies the keys of the patch into the API server's manifest. The kubelet restarts the API server.
func (h *Host) tellAPI() {
	if !slices.Equal(h.Disk.Told, h.Disk.Keys) {
		h.Run.API = ""
	}
	h.Disk.Told = slices.Clone(h.Disk.Keys)
}

var errBlind = errors.New("etcd has Secrets that are stored by a key which the API server would not know")

// cannotRead reports whether an API server with these keys could not read some stored Secret.
func (w *World) cannotRead(h *Host, keys []string) bool {
	r := w.EtcdCluster()
	return !w.Flaws.Unwritten && r != nil && w.ofCluster(h, r) &&
		slices.ContainsFunc(r.Objects.Secrets, func(by string) bool { return !Knows(keys, by) })
}

// copyKeys gives a joining host the keys of the host that provides the CAs, and then those of all others that its
// operator reaches.
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

// othersHaveKeys reports whether another control-plane host has the lost keys of this one.
func (w *World) othersHaveKeys(h *Host) bool {
	return slices.ContainsFunc(w.Hosts, func(other *Host) bool {
		return other != h && other.ControlPlane && len(other.Disk.Keys) > 0 && !other.Disk.KeysGone
	})
}

// mayEncrypt checks that the host is healthy, unless it only gets its keys back.
func mayEncrypt(w *World, h *Host, u *Unit) (bool, error) {
	if step.ParamsOf[step.EncryptParams](u.Intent).Phase == "give" {
		return true, nil
	}
	return checkRunning(w, h, u)
}

// placeKeys puts the keys where the next API server finds them, unless it could not read the stored Secrets.
func placeKeys(w *World, h *Host, u *Unit) (bool, error) {
	keys := step.ParamsOf[step.EncryptParams](u.Intent).Providers
	switch {
	case h.Full:
		return false, errFull
	case w.cannotRead(h, keys):
		return false, errBlind
	}
	w.reportEffect(Effect{Verb: Wrote, By: u.By, Host: h})
	h.Disk.Keys, h.Disk.KeysGone = slices.Clone(keys), false
	return true, nil
}

// tellKeys writes the API server's manifest.
func tellKeys(w *World, h *Host, u *Unit) (bool, error) {
	u.Disrupted = u.Disrupted || w.APIReady(h)
	version := cmp.Or(h.Disk.API, h.Disk.Kubelet) // it may have been deleted
	w.reportEffect(Effect{Verb: APIChanged, By: u.By, Host: h, Old: h.Disk.API, New: version})
	h.Disk.API = version
	h.tellAPI()
	return true, nil
}

// checkSecrets checks how the Secrets are stored in etcd.
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

// rewriteSecrets rewrites one Secret that is not stored with the current key.
func rewriteSecrets(w *World, q query) (bool, error) {
	by := writeKey(w.apiVia().Run.Told)
	secrets := q.etcdCluster.Objects.Secrets
	for i := range secrets {
		if secrets[i] != by && !w.Flaws.Unwritten {
			w.reportEffect(Effect{Verb: Applied, By: q.by})
			secrets[i] = by
			w.Write()
			return false, nil
		}
	}
	return true, nil
}

// observeEncryption adds the host's report of its keys.
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
