package step

import (
	"kubeone/internal/decide/atrest"
	"kubeone/internal/decide/quorum"
	"kubeone/internal/decide/rotation"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"maps"
	"slices"
	"strings"
)

// The kinds that rotate the keys of authorities.
const (
	RotateLearn       Kind = rotating + Kind(rotation.Learn)
	RotateUse         Kind = rotating + Kind(rotation.Use)
	RotateForget      Kind = rotating + Kind(rotation.Forget)
	RenewTokens       Kind = "renew-tokens"
	RenewTokenSecrets Kind = "renew-token-secrets"
	TrimFrontProxyCA  Kind = "trim-front-proxy-ca"
	TrimClientCA      Kind = "trim-client-ca"
	PublishCA         Kind = "publish-ca"
	LearnCA           Kind = "learn-ca"
	ForgetCA          Kind = "forget-ca"
	PodsTrustCA       Kind = "pods-trust-ca"
)

// rotating is the prefix of the kinds that carry out a phase.
const rotating = "rotate-"

// RotateParams say what a control-plane host does in the rotation of authorities.
type RotateParams struct {
	Phase       rotation.Phase `json:"phase,omitempty"`
	Authorities []string       `json:"authorities,omitempty"` // of observed.Authorities()
	// NewKeys lists the authorities whose new key the step creates. No control-plane host has it yet.
	NewKeys []string `json:"newKeys,omitempty"`
}

// Kind returns that of its phase.
func (p RotateParams) Kind() Kind { return rotating + Kind(p.Phase) }

func (p RotateParams) scriptVariables() []Variable {
	return []Variable{Words("ROTATE_"+strings.ToUpper(string(p.Phase)), p.Authorities...)}
}

// rotateRow returns the row of a phase: a plan may have all of them for one host.
func rotateRow(phase rotation.Phase) row {
	params := paramsOf[RotateParams]()
	params.zero = RotateParams{Phase: phase}
	return row{
		kind:  params.zero.Kind(),
		about: "carries out a phase of a key rotation, and restarts the programs that read the keys",
		place: OnHost, group: groupRotation, params: params, event: "KubeOneRotated",
		secrets: []Secret{RotationSecret}, begins: always, halts: always,
		disrupts: func(i Intent) quorum.Disruption {
			if slices.Contains(ParamsOf[RotateParams](i).Authorities, observed.EtcdCA) {
				return quorum.Stop
			}
			return quorum.NoDisruption
		},
		effect: afterRotate,
	}
}

// afterRotate gives a host what it has after the phase. A key that was not made yet has a name of its own.
func afterRotate(w *World, h desired.Host, i Intent) {
	p := ParamsOf[RotateParams](i)
	w.joinKeepingCertificates(h)
	seen, hosts := w.Is.Hosts[h.ID], rotation.HostsOf(w.Want.ControlPlane, w.Is.Hosts)
	seen.Authorities = maps.Clone(seen.Authorities)
	if seen.Authorities == nil {
		seen.Authorities = map[string]observed.Authority{}
	}
	for _, name := range p.Authorities {
		goal := rotation.Goal(hosts, name)
		if slices.Contains(p.NewKeys, name) && !rotation.Given(hosts, name) {
			goal = "planned:" + name
		}
		seen.Authorities[name] = rotation.After(seen.Authorities[name], p.Phase, goal, rotation.Signers(hosts, name))
	}
	w.Is.Hosts[h.ID] = seen
}

func learnCARow() row {
	return trustCARow(LearnCA, "makes a worker trust the cluster CAs, including the next one",
		func(hosts []rotation.Host) []string { return rotation.Trusted(hosts, observed.ClusterCA) })
}

func forgetCARow() row {
	return trustCARow(ForgetCA, "makes a worker trust only the new cluster CA",
		func(hosts []rotation.Host) []string { return []string{rotation.Goal(hosts, observed.ClusterCA)} })
}

// trustCARow returns the row of a step after which a worker trusts those of the control plane's keys.
func trustCARow(kind Kind, about string, keys func([]rotation.Host) []string) row {
	return row{
		kind: kind, about: about + "; the kubelet restarts, and pods keep running",
		place: OnHost, group: groupRotation, event: "KubeOneRotated", secrets: []Secret{RotationSecret}, halts: always,
		effect: func(w *World, h desired.Host, _ Intent) {
			seen := w.Is.Hosts[h.ID]
			seen.Authorities = maps.Clone(seen.Authorities)
			if seen.Authorities == nil {
				seen.Authorities = map[string]observed.Authority{}
			}
			seen.Authorities[observed.ClusterCA] = observed.Authority{
				Trusted: keys(rotation.HostsOf(w.Want.ControlPlane, w.Is.Hosts)),
			}
			w.Is.Hosts[h.ID] = seen
		},
	}
}

// PublishCAParams say which of the cluster CAs are published for joins.
type PublishCAParams struct {
	Alone bool `json:"alone,omitempty"` // the one that signs, and not those besides it that control-plane hosts trust
}

// Kind returns PublishCA.
func (PublishCAParams) Kind() Kind { return PublishCA }

func (PublishCAParams) scriptVariables() []Variable { return nil }

func publishCARow() row {
	return row{
		params: paramsOf[PublishCAParams](),
		kind:   PublishCA, about: "publishes the cluster CAs for joining hosts and pods",
		place: ThroughAPI, group: groupRotation, halts: always, effect: noEffect,
	}
}

func podsTrustCARow() row {
	return row{
		kind: PodsTrustCA, about: "checks that all pods have read the current CAs",
		place: ThroughAPI, group: groupRotation, halts: always, effect: noEffect,
	}
}

func renewTokensRow() row {
	return row{
		kind:  RenewTokens,
		about: "renews the tokens of pods on a host with the new key: the kubelet restarts, and pods keep running",
		place: OnHost, group: groupRotation, secrets: []Secret{RotationSecret}, halts: always, effect: noEffect,
	}
}

func renewTokenSecretsRow() row {
	return row{
		kind: RenewTokenSecrets, about: "renews the tokens in Secrets with the new key",
		place: ThroughAPI, group: groupRotation, halts: always, effect: noEffect,
	}
}

func trimFrontProxyCARow() row { return trimRow(TrimFrontProxyCA, "the front proxy") }

func trimClientCARow() row { return trimRow(TrimClientCA, "the cluster") }

func trimRow(kind Kind, of string) row {
	return row{
		kind:  kind,
		about: "removes the former CA of " + of + " from the ConfigMap that extension API servers trust",
		place: ThroughAPI, group: groupRotation, effect: noEffect,
	}
}

// The kinds that change how Secrets are stored in etcd.
const (
	EncryptLearn   Kind = encrypting + Kind(atrest.Learn)
	EncryptUse     Kind = encrypting + Kind(atrest.Use)
	EncryptForget  Kind = encrypting + Kind(atrest.Forget)
	EncryptGive    Kind = encrypting + Kind(atrest.Give)
	RewriteSecrets Kind = "rewrite-secrets"
	CheckSecrets   Kind = "check-secrets"
)

// encrypting is the prefix of the kinds that carry out a phase.
const encrypting = "encrypt-"

// EncryptParams say how a host's API server encrypts Secrets, and which providers it can read.
type EncryptParams struct {
	Phase atrest.Phase `json:"phase,omitempty"`
	// Providers are the names of keys, and "identity", the one that writes first; none: no configuration.
	Providers []string `json:"providers,omitempty"`
	// NewKey is the one of them that is made, where no control-plane host has it yet.
	NewKey string `json:"newKey,omitempty"`
}

// Kind returns that of its phase.
func (p EncryptParams) Kind() Kind { return encrypting + Kind(p.Phase) }

func (p EncryptParams) scriptVariables() []Variable {
	return []Variable{Words("ENCRYPT_"+strings.ToUpper(string(p.Phase)), p.Providers...)}
}

// encryptRow returns the row of a phase: a plan may have all of them for one host, each with a list of its own.
func encryptRow(phase atrest.Phase) row {
	params := paramsOf[EncryptParams]()
	params.zero = EncryptParams{Phase: phase}
	return row{
		kind:   params.zero.Kind(),
		about:  "restarts the API server with another list of keys, if it can read all Secrets in etcd",
		traits: writesStaticPods | installsRelease,
		place:  OnHost, group: groupEncryption, params: params, event: "KubeOneReconfigured",
		secrets: []Secret{EncryptionSecret}, begins: always, halts: always, disrupts: stopsMember,
		effect: afterEncrypt,
	}
}

// afterEncrypt makes a host one that runs with the configuration. A key that was not made yet has no digest.
func afterEncrypt(w *World, h desired.Host, i Intent) {
	p := ParamsOf[EncryptParams](i)
	if p.Phase == atrest.Give {
		w.joinKeepingCertificates(h)
	}
	seen := w.Is.Hosts[h.ID]
	seen.Encryption = w.encryptionBy(p.Providers)
	w.Is.Hosts[h.ID] = seen
}

// encryptionBy returns that of a host which runs with these providers.
func (w *World) encryptionBy(names []string) *observed.Encryption {
	if len(names) == 0 {
		return nil
	}
	c := observed.EncryptionConfig{Digest: "planned:" + strings.Join(names, ",")}
	for _, name := range names {
		c.Providers = append(c.Providers, observed.EncryptedBy{Name: name, Key: w.keyDigest(name)})
	}
	return &observed.Encryption{Running: []observed.EncryptionConfig{c}, Next: c}
}

// keyDigest returns the digest of the key with that name, as far as some host has it.
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
	seen.Encryption = w.encryptionBy(names)
}

func rewriteSecretsRow() row {
	return row{
		kind: RewriteSecrets, about: "rewrites every Secret so that it is encrypted with the current key",
		place: ThroughAPI, group: groupEncryption, halts: always, effect: noEffect,
	}
}

// CheckSecretsParams say which provider must have encrypted all Secrets.
type CheckSecretsParams struct {
	StoredBy string `json:"storedBy,omitempty"` // the name of a key, or "identity"
}

// Kind returns CheckSecrets.
func (CheckSecretsParams) Kind() Kind { return CheckSecrets }

func (p CheckSecretsParams) scriptVariables() []Variable {
	return []Variable{Text("STORED_BY", p.StoredBy)}
}

func checkSecretsRow() row {
	return row{
		kind: CheckSecrets, about: "checks in etcd's data that one key encrypts all Secrets; changes nothing",
		place: OnHost, group: groupEncryption, params: paramsOf[CheckSecretsParams](), halts: always, effect: noEffect,
	}
}
