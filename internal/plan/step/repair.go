package step

import (
	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/quorum"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"slices"
)

// The kinds that repair members.
const (
	RestartUnits Kind = "restart-units"
	Regenerate   Kind = "regenerate"
	Quarantine   Kind = "quarantine"
)

// RestartUnitsParams are the units to restart.
type RestartUnitsParams struct {
	Units []string `json:"units,omitempty"`
	// SwapOff says that swap is switched off before, with which the kubelet does not start.
	SwapOff bool `json:"swapOff,omitempty"`
}

// Kind returns RestartUnits.
func (RestartUnitsParams) Kind() Kind { return RestartUnits }

func (p RestartUnitsParams) scriptVariables() []Variable {
	off := ""
	if p.SwapOff {
		off = "yes"
	}
	return []Variable{Words("UNITS", p.Units...), Text("SWAP_OFF", off)}
}

func restartUnitsRow() row {
	return row{
		kind: RestartUnits, about: "enables and restarts units",
		traits: runsByHand,
		place:  OnHost, concerns: ItsHost, group: groupRepairs, params: paramsOf[RestartUnitsParams](),
		event: "KubeOneRestarted", effect: afterRepair,
	}
}

// RegenerateParams are the parts that are made again, in order: decide's names of certificates, of the kubelet's
// credentials and settings, and of static pods.
type RegenerateParams struct {
	Parts []string `json:"parts,omitempty"`
}

// Kind returns Regenerate.
func (RegenerateParams) Kind() Kind { return Regenerate }

func (p RegenerateParams) scriptVariables() []Variable {
	return []Variable{Words("PARTS", p.Parts...)}
}

func regenerateRow() row {
	return row{
		kind: Regenerate, about: "regenerates certificates, kubelet credentials and settings, and static-pod manifests",
		traits: writesStaticPods,
		place:  OnHost, concerns: ItsHost, group: groupRepairs, params: paramsOf[RegenerateParams](),
		event:   "KubeOneRepaired",
		secrets: joinSecrets, only: desired.Worker, // a control-plane host signs for itself
		disrupts: func(i Intent) quorum.Disruption {
			if slices.Contains(ParamsOf[RegenerateParams](i).Parts, condition.PartCertificates) {
				return quorum.StopHealthy // all of the control plane starts again
			}
			return quorum.NoDisruption
		},
		effect: afterRepair,
	}
}

func afterRepair(w *World, h desired.Host, i Intent) {
	if ParamsOf[RestartUnitsParams](i).SwapOff {
		seen := w.Is.Hosts[h.ID]
		seen.Swaps = nil
		w.Is.Hosts[h.ID] = seen
	}
	if slices.Contains(ParamsOf[RegenerateParams](i).Parts, condition.PartCertificates) {
		w.makeMember(h)
		return
	}
	w.joinKeepingCertificates(h)
}

func quarantineRow() row {
	return row{
		kind: Quarantine, about: "stops the control plane, moves lost etcd data aside; the host joins again",
		place: OnHost, group: groupRepairs, event: "KubeOneRepaired", effect: afterQuarantine,
		disrupts: func(Intent) quorum.Disruption { return quorum.StopHealthy }, // its member is to be dead
	}
}

// afterQuarantine makes a host one whose join has not ended, and that holds nothing of etcd.
func afterQuarantine(w *World, h desired.Host, _ Intent) {
	seen := w.Is.Hosts[h.ID]
	seen.Marker = &observed.Marker{Cluster: w.Want.Name, Role: string(h.Role)}
	seen.EtcdData, seen.EtcdLost, seen.Manifests = observed.No, "", nil
	seen.APINames, seen.AdminEndpoint, seen.Endpoint = nil, "", "" // the join makes them again
	seen.APIServer, seen.ControllerManager, seen.Scheduler = observed.Unknown, observed.Unknown, observed.Unknown
	seen.EtcdHealth = observed.Unknown
	w.Is.Hosts[h.ID] = seen
}

// RestoreFiles is the kind that restores files of a host.
const RestoreFiles Kind = "restore-files"

// RestoreFilesParams are the paths of the files whose content is restored, and of those that only root may read again.
type RestoreFilesParams struct {
	Files  []string `json:"files,omitempty"`
	Closed []string `json:"closed,omitempty"`
}

// Kind returns RestoreFiles.
func (RestoreFilesParams) Kind() Kind { return RestoreFiles }

func (p RestoreFilesParams) scriptVariables() []Variable {
	return []Variable{Words("RESTORE", p.Files...), Words("CLOSE", p.Closed...)}
}

// Units returns those that are started again, in order. With the container runtime goes the kubelet, which stands still
// while files of either are restored.
func (p RestoreFilesParams) Units() []string {
	var out []string
	for _, path := range p.Files {
		if unit := condition.UnitOf(path); unit != "" {
			out = append(out, unit, condition.UnitKubelet)
		}
	}
	slices.Sort(out) // the container runtime first
	return slices.Compact(out)
}

func restoreFilesRow() row {
	return row{
		kind: RestoreFiles, about: "restores files that were changed, deleted or made readable by others",
		place: OnHost, concerns: ItsHost, group: groupRepairs, params: paramsOf[RestoreFilesParams](),
		event: "KubeOneRepaired",
		disrupts: func(i Intent) quorum.Disruption {
			if len(ParamsOf[RestoreFilesParams](i).Units()) > 0 {
				return quorum.StopHealthy // containers continue, unless the changed files had them be others
			}
			return quorum.NoDisruption
		},
		effect: filesRestored,
	}
}

// filesRestored predicts a healthy host without edited files.
func filesRestored(w *World, h desired.Host, i Intent) {
	w.joinKeepingCertificates(h)
	seen, p := w.Is.Hosts[h.ID], ParamsOf[RestoreFilesParams](i)
	isRestored := func(path string) bool { return slices.Contains(p.Files, path) }
	seen.Edited = slices.DeleteFunc(slices.Clone(seen.Edited), isRestored)
	seen.Restorable = slices.DeleteFunc(slices.Clone(seen.Restorable), isRestored)
	seen.Exposed = slices.DeleteFunc(slices.Clone(seen.Exposed), func(f observed.FileAccess) bool {
		return slices.Contains(p.Closed, f.Path) || isRestored(f.Path)
	})
	w.Is.Hosts[h.ID] = seen
}
