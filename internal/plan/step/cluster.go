package step

import (
	"maps"
	"slices"

	"kubeone/internal/decide"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
)

// The kinds that concern the cluster as a whole.
const (
	RemoveAutoApproval Kind = "remove-auto-approval"
	RevokeTokens       Kind = "revoke-tokens"
	ApplyAddon         Kind = "apply-addon"
	RemoveAddon        Kind = "remove-addon"
	AwaitWorkloads     Kind = "await-workloads"
	CreateMachines     Kind = "create-machines"
	UpgradeMachines    Kind = "upgrade-machines"
	SetSystem          Kind = "set-system"
	ApproveServing     Kind = "approve-serving"
	SaveRecord         Kind = "save-record"
)

func removeAutoApprovalRow() row {
	return row{
		kind: RemoveAutoApproval, about: "kubeadm's rule gone by which any join token is good for any Node",
		place: ThroughAPI, concerns: ItsRun, group: groupBooks,
		effect: func(w *World, _ desired.Host, _ Intent) { w.Is.API.AutoApproval = observed.No },
	}
}

func revokeTokensRow() row {
	return row{
		kind: RevokeTokens, about: "the run's bootstrap tokens gone",
		place: ThroughAPI, concerns: ItsRun, group: groupBooks, effect: unchanged,
	}
}

// ApplyAddonParams name the addon. The intent's Digest is that of its objects.
type ApplyAddonParams struct {
	Addon string `json:"addon,omitempty"`
}

// Kind is ApplyAddon.
func (ApplyAddonParams) Kind() Kind { return ApplyAddon }

func applyAddonRow() row {
	return row{
		kind: ApplyAddon, about: "an addon's objects, by server-side apply",
		place: ThroughAPI, group: groupAddons, params: paramsOf[ApplyAddonParams](), effect: addonApplied,
	}
}

func addonApplied(w *World, _ desired.Host, i Intent) {
	w.Is.API.Addons = maps.Clone(w.Is.API.Addons)
	if w.Is.API.Addons == nil {
		w.Is.API.Addons = map[string]string{}
	}
	name := ParamsOf[ApplyAddonParams](i).Addon
	if w.Is.API.Addons[name] == "" && name == w.Want.Network.CNI.Name {
		w.networkCame()
	}
	w.Is.API.Addons[name] = i.Digest
	w.compared(name, func(c *observed.Comparison) { c.Differences = nil })
}

// SetSystemParams name what is set, by the app label of its pods.
type SetSystemParams struct {
	Apps []string `json:"apps,omitempty"`
}

// Kind is SetSystem.
func (SetSystemParams) Kind() Kind { return SetSystem }

func setSystemRow() row {
	return row{
		kind: SetSystem, about: "what the manifest says of kube-proxy and cluster DNS, set in their live objects",
		place: ThroughAPI, group: groupAddons, params: paramsOf[SetSystemParams](),
		effect: func(w *World, _ desired.Host, i Intent) {
			for _, app := range ParamsOf[SetSystemParams](i).Apps {
				w.compared(app, func(c *observed.Comparison) { c.Settings = nil })
			}
		},
	}
}

// CreateMachinesParams name a MachineDeployment. The intent's Digest is that of the object.
type CreateMachinesParams struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

// Kind is CreateMachines.
func (CreateMachinesParams) Kind() Kind { return CreateMachines }

func createMachinesRow() row {
	return row{
		kind: CreateMachines, about: "a MachineDeployment made, where there is none of its name",
		place: ThroughAPI, group: groupAddons, params: paramsOf[CreateMachinesParams](),
		effect: func(w *World, _ desired.Host, i Intent) {
			p := ParamsOf[CreateMachinesParams](i)
			w.deployments(func(all []observed.MachineDeployment) []observed.MachineDeployment {
				return append(all, observed.MachineDeployment{
					Namespace: p.Namespace, Name: p.Name, Kubelet: w.Want.KubernetesVersion,
				})
			})
		},
	}
}

// UpgradeMachinesParams name a MachineDeployment, and the version that its kubelets are to have.
type UpgradeMachinesParams struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	Kubelet   string `json:"kubeletVersion,omitempty"`
}

// Kind is UpgradeMachines.
func (UpgradeMachinesParams) Kind() Kind { return UpgradeMachines }

func upgradeMachinesRow() row {
	return row{
		kind: UpgradeMachines, about: "another kubelet version in a MachineDeployment, whose controllers roll it out",
		place: ThroughAPI, group: groupAddons, params: paramsOf[UpgradeMachinesParams](),
		effect: func(w *World, _ desired.Host, i Intent) {
			p := ParamsOf[UpgradeMachinesParams](i)
			w.deployments(func(all []observed.MachineDeployment) []observed.MachineDeployment {
				for i := range all {
					if all[i].Namespace == p.Namespace && all[i].Name == p.Name {
						all[i].Kubelet = p.Kubelet
					}
				}
				return all
			})
		},
	}
}

// deployments changes the MachineDeployments.
func (w *World) deployments(change func([]observed.MachineDeployment) []observed.MachineDeployment) {
	pool := observed.Pool{}
	if w.Is.API.Pool != nil {
		pool = *w.Is.API.Pool
	}
	pool.Deployments = change(slices.Clone(pool.Deployments))
	w.Is.API.Pool = &pool
}

// RemoveAddonParams name the addon.
type RemoveAddonParams struct {
	Addon string `json:"addon,omitempty"`
}

// Kind is RemoveAddon.
func (RemoveAddonParams) Kind() Kind { return RemoveAddon }

func removeAddonRow() row {
	return row{
		kind: RemoveAddon, about: "an addon's objects taken away",
		place: ThroughAPI, group: groupAddons, params: paramsOf[RemoveAddonParams](),
		effect: func(w *World, _ desired.Host, i Intent) {
			w.Is.API.Addons = maps.Clone(w.Is.API.Addons)
			delete(w.Is.API.Addons, ParamsOf[RemoveAddonParams](i).Addon)
		},
	}
}

func approveServingRow() row {
	return row{
		kind: ApproveServing, about: "serving certificates for which kubelets wait, where the names are the manifest's",
		place: ThroughAPI, group: groupBooks,
		effect: func(w *World, _ desired.Host, _ Intent) { w.Is.API.ServingRequests = nil },
	}
}

func awaitWorkloadsRow() row {
	return row{
		kind: AwaitWorkloads, about: "cluster DNS and addons run everywhere they should",
		place: ThroughAPI, group: groupAddons, effect: unchanged,
	}
}

func saveRecordRow() row {
	return row{
		kind: SaveRecord, about: "the manifest without secrets and the run's record",
		place: ThroughAPI, group: groupBooks, effect: recorded,
	}
}

// without returns what is left of what cannot be read of a record.
func without(unreadable map[string]string, keys ...string) map[string]string {
	left := maps.Clone(unreadable)
	for _, key := range keys {
		delete(left, key)
	}
	return left
}

func recorded(w *World, _ desired.Host, _ Intent) {
	record := &observed.Record{Cluster: w.Want.Name, ManifestDigest: w.Want.Digest, Hardening: w.Want.Hardening}
	if had := w.Is.API.Record; had != nil {
		record.FormerEndpoints = had.FormerEndpoints
		if had.IsUnreadable(observed.RecordFormerEndpoints) {
			record.FormerEndpoints = w.Want.Endpoint.Former
		}
		record.Unreadable = without(had.Unreadable, decide.RepairableKeys(w.Want, w.Is)...)
	}
	w.Is.API.Record = record
	if p := w.Is.API.Pool; p != nil && p.Credentials == observed.No {
		pool := *p
		pool.Credentials = observed.Yes
		w.Is.API.Pool = &pool
	}
}
