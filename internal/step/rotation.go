package step

import (
	"maps"
	"slices"
	"strings"

	"kubeone/internal/decide/quorum"
	"kubeone/internal/decide/rotation"
	"kubeone/internal/desired"
	"kubeone/internal/observed"
)

// The kinds that rotate the keys of authorities.
const (
	RotateLearn       Kind = rotating + Kind(rotation.Learn)
	RotateUse         Kind = rotating + Kind(rotation.Use)
	RotateForget      Kind = rotating + Kind(rotation.Forget)
	RenewTokens       Kind = "renew-tokens"
	RenewTokenSecrets Kind = "renew-token-secrets"
	TrimFrontProxyCA  Kind = "trim-front-proxy-ca"
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

func (p RotateParams) variables() [][2]string {
	return [][2]string{{"ROTATE_" + strings.ToUpper(string(p.Phase)), strings.Join(p.Authorities, " ")}}
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

func trimFrontProxyCARow() row {
	return row{
		kind:  TrimFrontProxyCA,
		about: "the former CA of the front proxy taken out of the ConfigMap by which extension API servers trust it",
		place: ThroughAPI, group: groupRotation, effect: unchanged,
	}
}
