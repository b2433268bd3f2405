package step

import (
	"strings"

	"kubeone/internal/decide/atrest"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
)

// The kinds that change how Secrets are stored in etcd.
const (
	EncryptLearn   Kind = encrypting + Kind(atrest.Learn)
	EncryptUse     Kind = encrypting + Kind(atrest.Use)
	EncryptForget  Kind = encrypting + Kind(atrest.Forget)
	EncryptGive    Kind = encrypting + Kind(atrest.Give)
	RewriteSecrets Kind = "rewrite-secrets"
	CheckSecrets   Kind = "check-secrets"
)

// encrypting is before the phase in the name of the kind that brings it about.
const encrypting = "encrypt-"

// EncryptParams say how a host's API server is to store Secrets, and what all that is stored may be stored by.
type EncryptParams struct {
	Phase atrest.Phase `json:"phase,omitempty"`
	// Providers are the names of keys, and "identity", the one that writes first; none: no configuration.
	Providers []string `json:"providers,omitempty"`
	// NewKey is the one of them that is made, where no control-plane host has it yet.
	NewKey string `json:"newKey,omitempty"`
}

// Kind is that of its phase.
func (p EncryptParams) Kind() Kind { return encrypting + Kind(p.Phase) }

func (p EncryptParams) variables() []Variable {
	return []Variable{Words("ENCRYPT_"+strings.ToUpper(string(p.Phase)), p.Providers...)}
}

// encryptRow is the row of a phase: a plan may have all of them for one host, each with a list of its own.
func encryptRow(phase atrest.Phase) row {
	params := paramsOf[EncryptParams]()
	params.zero = EncryptParams{Phase: phase}
	return row{
		kind: params.zero.Kind(),
		about: "the API server of a host started with another list of keys for Secrets, if etcd has nothing that it " +
			"could not read",
		traits: writesStaticPods | installsRelease,
		place:  OnHost, group: groupEncryption, params: params, event: "KubeOneReconfigured",
		secrets: []Secret{EncryptionSecret}, begins: always, halts: always, disrupts: stops,
		effect: encrypted,
	}
}

// encrypted makes a host one that runs with the configuration. A key that was not made yet has no digest.
func encrypted(w *World, h desired.Host, i Intent) {
	p := ParamsOf[EncryptParams](i)
	if p.Phase == atrest.Give {
		w.sameCertificates(h)
	}
	seen := w.Is.Hosts[h.ID]
	seen.Encryption = w.encryption(p.Providers)
	w.Is.Hosts[h.ID] = seen
}

// encryption is that of a host which runs with these providers.
func (w *World) encryption(names []string) *observed.Encryption {
	if len(names) == 0 {
		return nil
	}
	c := observed.EncryptionConfig{Digest: "planned:" + strings.Join(names, ",")}
	for _, name := range names {
		c.Providers = append(c.Providers, observed.EncryptedBy{Name: name, Key: w.keyDigest(name)})
	}
	return &observed.Encryption{Running: []observed.EncryptionConfig{c}, Next: c}
}

// keyDigest is the digest of the key of that name, as far as some host has it.
func (w *World) keyDigest(name string) string {
	for _, h := range w.Want.ControlPlane {
		if e := w.Is.Hosts[h.ID].Encryption; e != nil {
			for _, p := range e.Next.Providers {
				if p.Name == name && p.Key != "" {
					return p.Key
				}
			}
		}
	}
	return ""
}

// encryptedLikeOthers gives a host that joins what the others have, and the first one of a cluster its first key.
func (w *World) encryptedLikeOthers(id string, seen *observed.Host) {
	var others []atrest.Host
	for _, h := range w.Want.ControlPlane {
		is := w.Is.Hosts[h.ID]
		if h.ID != id && is.Marker != nil && is.Marker.Complete && is.Reach == observed.Reached {
			others = append(others, atrest.Of(h.ID, is.Encryption))
		}
	}
	names := atrest.Join(others)
	if len(others) == 0 && w.Want.EncryptSecrets {
		names = []string{atrest.FirstKey}
	}
	seen.Encryption = w.encryption(names)
}

func rewriteSecretsRow() row {
	return row{
		kind: RewriteSecrets, about: "every Secret written again as it is, so that it is stored by the key of now",
		place: ThroughAPI, group: groupEncryption, halts: always, effect: unchanged,
	}
}

// CheckSecretsParams say by what all Secrets are to be stored.
type CheckSecretsParams struct {
	StoredBy string `json:"storedBy,omitempty"` // the name of a key, or "identity"
}

// Kind is CheckSecrets.
func (CheckSecretsParams) Kind() Kind { return CheckSecrets }

func (p CheckSecretsParams) variables() []Variable { return []Variable{Text("STORED_BY", p.StoredBy)} }

func checkSecretsRow() row {
	return row{
		kind: CheckSecrets, about: "a look at etcd's own bytes: all Secrets are stored by one key; nothing is changed",
		place: OnHost, group: groupEncryption, params: paramsOf[CheckSecretsParams](), halts: always, effect: unchanged,
	}
}
