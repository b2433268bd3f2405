package step

import (
	"slices"

	"kubeone/internal/decide/quorum"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
)

// Reconfigure is the kind that gives a host other settings, in the versions that it has.
const Reconfigure Kind = "reconfigure"

// ReconfigureParams name the configurations of the host that differ from what is wanted.
type ReconfigureParams struct {
	Configurations []string `json:"configurations,omitempty"`
	// DiscardEdits says that its static pods are made anew, whatever somebody has changed in them.
	DiscardEdits bool `json:"discardEdits,omitempty"`
}

// Kind is Reconfigure.
func (ReconfigureParams) Kind() Kind { return Reconfigure }

func (p ReconfigureParams) variables() []Variable {
	discard := ""
	if p.DiscardEdits {
		discard = "yes"
	}
	return []Variable{Words("CONFIGURATIONS", p.Configurations...), Text("RECONFIGURE_DISCARDS", discard)}
}

func reconfigureRow() row {
	return row{
		kind: Reconfigure, about: "the wanted settings of a host's components; those that are refused are taken back",
		traits: installsRelease | runsByHand | writesStaticPods | coreOfActivity,
		place:  OnHost, concerns: ItsHost, group: groupUpgrade, params: paramsOf[ReconfigureParams](),
		event: "KubeOneReconfigured", secrets: []Secret{CredentialsSecret},
		begins: always, halts: always, disrupts: stops,
		partOf: desired.Reconfiguring, effect: reconfigured,
	}
}

// reconfigured makes a host one that has the wanted configuration, or, of that, the credentials alone.
func reconfigured(w *World, h desired.Host, i Intent) {
	if slices.Equal(ParamsOf[ReconfigureParams](i).Configurations, []string{desired.CredentialsConfiguration}) {
		credentialed(w, h, i)
		return
	}
	w.sameCertificates(h)
	seen := w.Is.Hosts[h.ID]
	seen.Digests, seen.Credentials, seen.Swaps = w.Config[h.ID], seen.CredentialsLeft(), nil
	seen.Firewalls = w.firewallsOf(seen)
	w.Is.Hosts[h.ID] = seen
}

// firewallsOf returns the firewalls of a host as they are after they were configured.
func (w *World) firewallsOf(seen observed.Host) []observed.Firewall {
	var out []observed.Firewall
	for _, f := range seen.Firewalls {
		switch w.Want.Firewall {
		case desired.FirewallDisable:
			f.Ours, f.Off = false, true
		case desired.FirewallManage:
			f.Ours, f.Off = true, false
		}
		out = append(out, f)
	}
	return out
}

// credentialed gives a host the credentials that it is to have.
func credentialed(w *World, h desired.Host, _ Intent) {
	seen := w.Is.Hosts[h.ID]
	if len(seen.Credentials) == 0 {
		return
	}
	seen.Credentials = seen.CredentialsLeft()
	w.Is.Hosts[h.ID] = seen
}

func stops(Intent) quorum.Disruption { return quorum.Stop }
