package step

import (
	"slices"

	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/quorum"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
)

// RestoreFiles is the kind that brings back files of a host.
const RestoreFiles Kind = "restore-files"

// RestoreFilesParams are the paths of the files whose content is restored, and of those that only root may read again.
type RestoreFilesParams struct {
	Files  []string `json:"files,omitempty"`
	Closed []string `json:"closed,omitempty"`
}

// Kind is RestoreFiles.
func (RestoreFilesParams) Kind() Kind { return RestoreFiles }

func (p RestoreFilesParams) variables() []Variable {
	return []Variable{Words("RESTORE", p.Files...), Words("CLOSE", p.Closed...)}
}

// Units are those that are started anew, in order. With the container runtime goes the kubelet, which stands still
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
		kind: RestoreFiles, about: "files that somebody has changed, deleted or opened to others, as they were written",
		place: OnHost, concerns: ItsHost, group: groupRepairs, params: paramsOf[RestoreFilesParams](),
		event: "KubeOneRepaired",
		disrupts: func(i Intent) quorum.Disruption {
			if len(ParamsOf[RestoreFilesParams](i).Units()) > 0 {
				return quorum.StopHealthy // containers go on, unless the changed files had them be others
			}
			return quorum.NoDisruption
		},
		effect: filesRestored,
	}
}

// filesRestored is a host that is well, and whose files are its own again.
func filesRestored(w *World, h desired.Host, i Intent) {
	w.sameCertificates(h)
	seen, p := w.Is.Hosts[h.ID], ParamsOf[RestoreFilesParams](i)
	gone := func(path string) bool { return slices.Contains(p.Files, path) }
	seen.Edited = slices.DeleteFunc(slices.Clone(seen.Edited), gone)
	seen.Restorable = slices.DeleteFunc(slices.Clone(seen.Restorable), gone)
	seen.Exposed = slices.DeleteFunc(slices.Clone(seen.Exposed), func(f observed.FileAccess) bool {
		return slices.Contains(p.Closed, f.Path) || gone(f.Path)
	})
	w.Is.Hosts[h.ID] = seen
}
