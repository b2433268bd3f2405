package step

import (
	"fmt"
	"kubeone/internal/decide"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"maps"
	"slices"
	"strings"
)

// Kinds that concern the cluster as a whole.
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
		kind: RemoveAutoApproval, about: "removes the kubeadm rule that accepts any join token for any Node",
		place: ThroughAPI, concerns: ItsRun, group: groupBooks,
		effect: func(w *World, _ desired.Host, _ Intent) { w.Is.API.AutoApproval = observed.No },
	}
}

func revokeTokensRow() row {
	return row{
		kind: RevokeTokens, about: "deletes the bootstrap tokens of this run",
		place: ThroughAPI, concerns: ItsRun, group: groupBooks, effect: noEffect,
	}
}

// ApplyAddonParams name the addon, and objects that are no longer part of it. The intent's Digest is that of the addon.
type ApplyAddonParams struct {
	Addon string `json:"addon,omitempty"`
	// Manifest is the sha256 (hex) of the published manifest with the objects of the addon; "" if there is none.
	Manifest string                 `json:"manifest,omitempty"`
	Delete   []observed.AddonObject `json:"delete,omitempty"`
}

// Kind returns ApplyAddon.
func (ApplyAddonParams) Kind() Kind { return ApplyAddon }

func applyAddonRow() row {
	return row{
		kind: ApplyAddon, about: "applies the objects of an addon (server-side apply)",
		place: ThroughAPI, group: groupAddons, params: paramsOf[ApplyAddonParams](), effect: addonApplied,
	}
}

func addonApplied(w *World, _ desired.Host, i Intent) {
	w.Is.API.Addons = maps.Clone(w.Is.API.Addons)
	if w.Is.API.Addons == nil {
		w.Is.API.Addons = map[string]string{}
	}
	p := ParamsOf[ApplyAddonParams](i)
	name := p.Addon
	w.changeInventory(name, func(objects []observed.AddonObject) []observed.AddonObject {
		return slices.DeleteFunc(objects, func(o observed.AddonObject) bool { return slices.Contains(p.Delete, o) })
	})
	if w.Is.API.Addons[name] == "" && name == w.Want.Network.CNI.Name {
		w.networkCame()
	}
	w.Is.API.Addons[name] = i.Digest
	w.changeComparison(name, func(c *observed.Comparison) { c.Differences = nil })
}

// SetSystemParams name the component to change, by the app label of its pods.
type SetSystemParams struct {
	Apps []string `json:"apps,omitempty"`
}

// Kind returns SetSystem.
func (SetSystemParams) Kind() Kind { return SetSystem }

func setSystemRow() row {
	return row{
		kind: SetSystem, about: "applies settings from the manifest to the live objects of kube-proxy and cluster DNS",
		place: ThroughAPI, group: groupAddons, params: paramsOf[SetSystemParams](),
		effect: func(w *World, _ desired.Host, i Intent) {
			for _, app := range ParamsOf[SetSystemParams](i).Apps {
				w.changeComparison(app, func(c *observed.Comparison) { c.Settings = nil })
			}
		},
	}
}

// CreateMachinesParams name a MachineDeployment. The intent's Digest is that of the object.
type CreateMachinesParams struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

// Kind returns CreateMachines.
func (CreateMachinesParams) Kind() Kind { return CreateMachines }

func createMachinesRow() row {
	return row{
		kind: CreateMachines, about: "creates a MachineDeployment if it does not exist",
		place: ThroughAPI, group: groupAddons, params: paramsOf[CreateMachinesParams](),
		effect: func(w *World, _ desired.Host, i Intent) {
			p := ParamsOf[CreateMachinesParams](i)
			w.changeDeployments(func(all []observed.MachineDeployment) []observed.MachineDeployment {
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

// Kind returns UpgradeMachines.
func (UpgradeMachinesParams) Kind() Kind { return UpgradeMachines }

func upgradeMachinesRow() row {
	return row{
		kind: UpgradeMachines, about: "sets the kubelet version of a MachineDeployment; the controllers roll it out",
		place: ThroughAPI, group: groupAddons, params: paramsOf[UpgradeMachinesParams](),
		effect: func(w *World, _ desired.Host, i Intent) {
			p := ParamsOf[UpgradeMachinesParams](i)
			w.changeDeployments(func(all []observed.MachineDeployment) []observed.MachineDeployment {
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

// changeDeployments changes the MachineDeployments.
func (w *World) changeDeployments(change func([]observed.MachineDeployment) []observed.MachineDeployment) {
	pool := observed.Pool{}
	if w.Is.API.Pool != nil {
		pool = *w.Is.API.Pool
	}
	pool.Deployments = change(slices.Clone(pool.Deployments))
	w.Is.API.Pool = &pool
}

// changeInventory changes the inventory of an addon, if it has one.
func (w *World) changeInventory(addon string, change func([]observed.AddonObject) []observed.AddonObject) {
	held, found := w.Is.API.Inventories[addon]
	if !found {
		return
	}
	w.Is.API.Inventories = maps.Clone(w.Is.API.Inventories)
	held.Objects = change(slices.Clone(held.Objects))
	w.Is.API.Inventories[addon] = held
}

// RemoveAddonParams name the addon and the objects to delete.
type RemoveAddonParams struct {
	Addon  string                 `json:"addon,omitempty"`
	Delete []observed.AddonObject `json:"delete,omitempty"`
}

// Kind returns RemoveAddon.
func (RemoveAddonParams) Kind() Kind { return RemoveAddon }

func removeAddonRow() row {
	return row{
		kind: RemoveAddon, about: "deletes the objects of an addon",
		place: ThroughAPI, group: groupAddons, params: paramsOf[RemoveAddonParams](),
		effect: func(w *World, _ desired.Host, i Intent) {
			w.Is.API.Addons = maps.Clone(w.Is.API.Addons)
			w.Is.API.Inventories = maps.Clone(w.Is.API.Inventories)
			name := ParamsOf[RemoveAddonParams](i).Addon
			delete(w.Is.API.Addons, name)
			delete(w.Is.API.Inventories, name)
		},
	}
}

func approveServingRow() row {
	return row{
		kind: ApproveServing, about: "approves pending serving certificates of kubelets that match the manifest",
		place: ThroughAPI, group: groupBooks,
		effect: func(w *World, _ desired.Host, _ Intent) { w.Is.API.ServingRequests = nil },
	}
}

func awaitWorkloadsRow() row {
	return row{
		kind: AwaitWorkloads, about: "waits until cluster DNS and addons run everywhere",
		place: ThroughAPI, group: groupAddons, effect: noEffect,
	}
}

func saveRecordRow() row {
	return row{
		kind: SaveRecord, about: "saves the manifest without secrets, and the record of the run",
		place: ThroughAPI, group: groupBooks, effect: afterRecord,
	}
}

// withoutKeys returns the unreadable parts of a record without those keys.
func withoutKeys(unreadable map[string]string, keys ...string) map[string]string {
	left := maps.Clone(unreadable)
	for _, key := range keys {
		delete(left, key)
	}
	return left
}

func afterRecord(w *World, _ desired.Host, _ Intent) {
	record := &observed.Record{Cluster: w.Want.Name, ManifestDigest: w.Want.Digest, Hardening: w.Want.Hardening}
	if had := w.Is.API.Record; had != nil {
		record.FormerEndpoints = had.FormerEndpoints
		if had.IsUnreadable(observed.RecordFormerEndpoints) {
			record.FormerEndpoints = w.Want.Endpoint.Former
		}
		record.Unreadable = withoutKeys(had.Unreadable, decide.RepairableKeys(w.Want, w.Is)...)
	}
	w.Is.API.Record = record
	if p := w.Is.API.Pool; p != nil && p.Credentials == observed.No {
		pool := *p
		pool.Credentials = observed.Yes
		w.Is.API.Pool = &pool
	}
}

// ControllerFiles is the kind that gives a control-plane host what the controllers need there.
const ControllerFiles Kind = "controller-files"

// ControllerFilesParams are the controllers' image, and the bundles that the host lacks.
type ControllerFilesParams struct {
	Content        // the image's parts
	Image   string `json:"image,omitempty"` // its name and its digest, with a space between
	Index   string `json:"index,omitempty"` // index.json of its layout
	// Bundles are uploaded whole, as files of these names.
	Bundles []desired.BundleFile `json:"bundles,omitempty"`
}

// Kind returns ControllerFiles.
func (ControllerFilesParams) Kind() Kind { return ControllerFiles }

func (p ControllerFilesParams) scriptVariables() []Variable {
	var blobs []string
	bundles := make([][]string, 0, len(p.Bundles))
	for _, sum := range p.Uploads {
		blobs = append(blobs, "blobs/sha256/"+sum)
	}
	for _, b := range p.Bundles {
		bundles = append(bundles, []string{b.Name, fmt.Sprint(b.Size)})
	}
	return []Variable{
		Words("CONTROLLER_IMAGE", strings.Split(p.Image, " ")...), Text("CONTROLLER_INDEX", p.Index),
		Words("CONTROLLER_BLOBS", blobs...), Lines("CONTROLLER_BUNDLES", bundles),
	}
}

func controllerFilesRow() row {
	return row{
		kind: ControllerFiles, about: "imports the controller image and uploads the bundles",
		place: OnHost, concerns: ItsHost, group: groupImages, params: paramsOf[ControllerFilesParams](),
		effect: controllerFilesThere,
	}
}

func controllerFilesThere(w *World, h desired.Host, i Intent) {
	params, seen := ParamsOf[ControllerFilesParams](i), w.Is.Hosts[h.ID]
	bundles := maps.Clone(seen.ControllerFiles.Bundles)
	for _, b := range params.Bundles {
		if bundles == nil {
			bundles = map[string]int64{}
		}
		bundles[b.Name] = b.Size
	}
	seen.ControllerFiles = observed.ControllerFiles{Image: params.Image, Bundles: bundles}
	w.Is.Hosts[h.ID] = seen
}

// LackingBundles returns the bundles in want that are missing on a host.
func LackingBundles(want []desired.BundleFile, has map[string]int64) []desired.BundleFile {
	return slices.DeleteFunc(slices.Clone(want), func(b desired.BundleFile) bool { return has[b.Name] == b.Size })
}

// Kinds that return Machine hosts before their cluster ends.
const (
	DeleteMachines Kind = "delete-machines"
	AwaitHosts     Kind = "await-hosts"
)

func deleteMachinesRow() row {
	return row{
		kind: DeleteMachines, about: "deletes MachineDeployments, MachineSets and Machines",
		place: ThroughAPI, group: groupRemovals, effect: machinesDeleted,
	}
}

func machinesDeleted(w *World, _ desired.Host, _ Intent) {
	w.changePool(func(p *observed.Pool) { p.Deployments, p.Machines, p.Sets = nil, nil, 0 })
}

// AwaitHostsParams say how long Machine hosts may take to be free.
type AwaitHostsParams struct {
	TimeoutSeconds int `json:"timeoutSeconds,omitempty"`
}

// Kind returns AwaitHosts.
func (AwaitHostsParams) Kind() Kind { return AwaitHosts }

func awaitHostsRow() row {
	return row{
		kind: AwaitHosts, about: "waits until the controllers have returned the hosts of deleted Machines",
		place: ThroughAPI, group: groupRemovals, params: paramsOf[AwaitHostsParams](), effect: hostsReturned,
	}
}

func hostsReturned(w *World, _ desired.Host, _ Intent) {
	w.changePool(func(p *observed.Pool) {
		p.Hosts = slices.Clone(p.Hosts)
		for i, h := range p.Hosts {
			if h.Machine == "" {
				continue
			}
			w.Is.API.Nodes = slices.DeleteFunc(slices.Clone(w.Is.API.Nodes), func(n observed.Node) bool {
				return n.Name == h.Name
			})
			p.Hosts[i] = observed.PoolHost{Name: h.Name, Address: h.Address, State: "Free"}
		}
	})
}

// changePool changes the predicted Machines and their hosts, if there are any.
func (w *World) changePool(change func(*observed.Pool)) {
	if w.Is.API.Pool == nil {
		return
	}
	p := *w.Is.API.Pool
	change(&p)
	w.Is.API.Pool = &p
}
