package step

import (
	"maps"
	"slices"
	"strings"

	"kubeone/internal/decide/quorum"
	"kubeone/internal/decide/rotation"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
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

// rotating is before the phase in the name of the kind that brings it about.
const rotating = "rotate-"

// RotateParams say what a control-plane host does in the rotation of authorities.
type RotateParams struct {
	Phase       rotation.Phase `json:"phase,omitempty"`
	Authorities []string       `json:"authorities,omitempty"` // of observed.Authorities()
	// NewKeys are those of them whose new key is made, where no control-plane host has it yet.
	NewKeys []string `json:"newKeys,omitempty"`
}

// Kind is that of its phase.
func (p RotateParams) Kind() Kind { return rotating + Kind(p.Phase) }

func (p RotateParams) variables() []Variable {
	return []Variable{Words("ROTATE_"+strings.ToUpper(string(p.Phase)), p.Authorities...)}
}

// rotateRow is the row of a phase: a plan may have all of them for one host.
func rotateRow(phase rotation.Phase) row {
	params := paramsOf[RotateParams]()
	params.zero = RotateParams{Phase: phase}
	return row{
		kind:  params.zero.Kind(),
		about: "one phase of the rotation of authorities' keys; what reads them starts anew",
		place: OnHost, group: groupRotation, params: params, event: "KubeOneRotated",
		secrets: []Secret{RotationSecret}, begins: always, halts: always,
		disrupts: func(i Intent) quorum.Disruption {
			if slices.Contains(ParamsOf[RotateParams](i).Authorities, observed.EtcdCA) {
				return quorum.Stop
			}
			return quorum.NoDisruption
		},
		effect: rotated,
	}
}

// rotated gives a host what it has after the phase. A key that was not made yet has a name of its own.
func rotated(w *World, h desired.Host, i Intent) {
	p := ParamsOf[RotateParams](i)
	w.sameCertificates(h)
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
	return trustCARow(LearnCA, "a worker trusts the cluster's CAs, the next one among them",
		func(hosts []rotation.Host) []string { return rotation.Trusted(hosts, observed.ClusterCA) })
}

func forgetCARow() row {
	return trustCARow(ForgetCA, "a worker trusts the cluster's new CA alone",
		func(hosts []rotation.Host) []string { return []string{rotation.Goal(hosts, observed.ClusterCA)} })
}

// trustCARow is the row of a step after which a worker trusts those of the control plane's keys.
func trustCARow(kind Kind, about string, keys func([]rotation.Host) []string) row {
	return row{
		kind: kind, about: about + "; its kubelet starts anew, and pods go on",
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

// PublishCAParams say which of the cluster's CAs are named to who joins.
type PublishCAParams struct {
	Alone bool `json:"alone,omitempty"` // the one that signs, and not those besides it that control-plane hosts trust
}

// Kind is PublishCA.
func (PublishCAParams) Kind() Kind { return PublishCA }

func (PublishCAParams) variables() []Variable { return nil }

func publishCARow() row {
	return row{
		params: paramsOf[PublishCAParams](),
		kind:   PublishCA, about: "the cluster's CAs in the objects by which hosts that join, and pods, know the API",
		place: ThroughAPI, group: groupRotation, halts: always, effect: unchanged,
	}
}

func podsTrustCARow() row {
	return row{
		kind: PodsTrustCA, about: "all pods have read the CAs that the cluster has by now, which is looked at",
		place: ThroughAPI, group: groupRotation, halts: always, effect: unchanged,
	}
}

func renewTokensRow() row {
	return row{
		kind:  RenewTokens,
		about: "the tokens of a host's pods signed by the new key: its kubelet starts anew, and pods go on",
		place: OnHost, group: groupRotation, secrets: []Secret{RotationSecret}, halts: always, effect: unchanged,
	}
}

func renewTokenSecretsRow() row {
	return row{
		kind: RenewTokenSecrets, about: "the tokens that stand in Secrets signed by the new key",
		place: ThroughAPI, group: groupRotation, halts: always, effect: unchanged,
	}
}

func trimFrontProxyCARow() row { return trimRow(TrimFrontProxyCA, "the front proxy") }

func trimClientCARow() row { return trimRow(TrimClientCA, "the cluster") }

func trimRow(kind Kind, of string) row {
	return row{
		kind:  kind,
		about: "the former CA of " + of + " taken out of the ConfigMap by which extension API servers trust it",
		place: ThroughAPI, group: groupRotation, effect: unchanged,
	}
}
