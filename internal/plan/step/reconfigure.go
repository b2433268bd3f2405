package step

import (
	"kubeone/internal/decide/quorum"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"slices"
)

// Reconfigure is the kind that changes a host's settings without changing versions.
const Reconfigure Kind = "reconfigure"

// ReconfigureParams name the configurations of the host that differ from the desired ones.
type ReconfigureParams struct {
	Configurations []string `json:"configurations,omitempty"`
	// DiscardEdits says that its static pods are written again even if they were edited.
	DiscardEdits bool `json:"discardEdits,omitempty"`
}

// Kind returns Reconfigure.
func (ReconfigureParams) Kind() Kind { return Reconfigure }

func (p ReconfigureParams) scriptVariables() []Variable {
	discard := ""
	if p.DiscardEdits {
		discard = "yes"
	}
	return []Variable{Words("CONFIGURATIONS", p.Configurations...), Text("RECONFIGURE_DISCARDS", discard)}
}

func reconfigureRow() row {
	return row{
		kind: Reconfigure, about: "applies settings to components on a host; reverts those that a component refuses",
		traits: installsRelease | runsByHand | writesStaticPods | coreOfActivity,
		place:  OnHost, concerns: ItsHost, group: groupUpgrade, params: paramsOf[ReconfigureParams](),
		event: "KubeOneReconfigured", secrets: []Secret{CredentialsSecret},
		begins: always, halts: always, disrupts: stopsMember,
		partOf: desired.Reconfiguring, effect: afterReconfigure,
	}
}

// afterReconfigure gives a host the desired configuration, or only its credentials.
func afterReconfigure(w *World, h desired.Host, i Intent) {
	if slices.Equal(ParamsOf[ReconfigureParams](i).Configurations, []string{desired.CredentialsConfiguration}) {
		afterCredentials(w, h, i)
		return
	}
	w.joinKeepingCertificates(h)
	seen := w.Is.Hosts[h.ID]
	seen.Digests, seen.Credentials, seen.Swaps = w.Config[h.ID], seen.CredentialsLeft(), nil
	seen.Firewalls, seen.StoppedTimers = w.firewallsOf(seen), nil
	w.Is.Hosts[h.ID] = seen
}

// firewallsOf returns a host's firewalls as they are after their configuration.
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

// afterCredentials gives a host its desired credentials.
func afterCredentials(w *World, h desired.Host, _ Intent) {
	seen := w.Is.Hosts[h.ID]
	if len(seen.Credentials) == 0 {
		return
	}
	seen.Credentials = seen.CredentialsLeft()
	w.Is.Hosts[h.ID] = seen
}

func stopsMember(Intent) quorum.Disruption { return quorum.Stop }

// Kinds that move the API's endpoint.
const (
	APINames        Kind = "api-names"
	Dial            Kind = "dial"
	PublishEndpoint Kind = "publish-endpoint"
)

// APINamesParams are names for the certificate of the host's API server: those to add, those to keep although they are
// in neither the manifest nor kubeadm's defaults, and those to drop.
type APINamesParams struct {
	Add  []string `json:"add,omitempty"`
	Keep []string `json:"keep,omitempty"`
	Drop []string `json:"drop,omitempty"`
}

// Kind returns APINames.
func (APINamesParams) Kind() Kind { return APINames }

func (p APINamesParams) scriptVariables() []Variable {
	return []Variable{
		Words("ADD_NAMES", p.Add...), Words("KEEP_NAMES", p.Keep...), Words("DROP_NAMES", p.Drop...),
	}
}

func apiNamesRow() row {
	return row{
		kind: APINames, about: "changes the names in an API server certificate, without a restart",
		place: OnHost, group: groupEndpoint, params: paramsOf[APINamesParams](), effect: afterRenewNames,
	}
}

func afterRenewNames(w *World, h desired.Host, i Intent) {
	seen, p := w.Is.Hosts[h.ID], ParamsOf[APINamesParams](i)
	seen.APINames = slices.DeleteFunc(slices.Clone(seen.APINames), func(n string) bool {
		return len(desired.Missing([]string{n}, p.Drop)) == 0
	})
	wanted := append(w.Want.APINames(), p.Add...)
	seen.APINames = append(seen.APINames, desired.Missing(wanted, seen.APINames)...)
	w.Is.Hosts[h.ID] = seen
}

// DialParams are the endpoint for the host's kubeconfigs.
type DialParams struct {
	Endpoint string `json:"endpoint,omitempty"` // "host:port"
}

// Kind returns Dial.
func (DialParams) Kind() Kind { return Dial }

func dialRow() row {
	return row{
		kind: Dial, about: "points the kubeconfigs on the host to the desired endpoint, once it answers there",
		place: OnHost, concerns: ItsHost, group: groupEndpoint, params: paramsOf[DialParams](), effect: afterDial,
	}
}

func afterDial(w *World, h desired.Host, _ Intent) {
	seen := w.Is.Hosts[h.ID]
	seen.Endpoint = w.Want.Endpoint.URL()
	if h.Role == desired.ControlPlane {
		seen.AdminEndpoint = w.Want.Endpoint.URL()
	}
	w.Is.Hosts[h.ID] = seen
}

// PublishEndpointParams are the endpoint, and former names and addresses of the API: API server certificates keep
// these, also on hosts that join later.
type PublishEndpointParams struct {
	Endpoint string   `json:"endpoint,omitempty"` // "host:port"
	Former   []string `json:"formerNames,omitempty"`
}

// Kind returns PublishEndpoint.
func (PublishEndpointParams) Kind() Kind { return PublishEndpoint }

func publishEndpointRow() row {
	return row{
		kind:  PublishEndpoint,
		about: "sets the endpoint in the cluster objects for kubeadm and joins",
		place: ThroughAPI, group: groupEndpoint, params: paramsOf[PublishEndpointParams](),
		effect: func(w *World, _ desired.Host, i Intent) {
			record := observed.Record{}
			if had := w.Is.API.Record; had != nil {
				record = *had
			}
			record.FormerEndpoints = ParamsOf[PublishEndpointParams](i).Former
			record.Unreadable = withoutKeys(record.Unreadable, observed.RecordCluster, observed.RecordFormerEndpoints)
			w.Is.API.Record, w.Is.API.Endpoint = &record, w.Want.Endpoint.String()
		},
	}
}
