package plan

import (
	"slices"
	"strings"

	"kubeone/internal/decide"
	"kubeone/internal/decide/condition"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/problem"
	"kubeone/internal/text/set"
	"kubeone/internal/plan/step"
)

// restoreFiles plans that files which somebody has changed become again what they were. Units that do not run are
// started with that.
func (b *builder) restoreFiles(h desired.Host, d decide.Decision, needs []string) string {
	is := b.world.Is.Hosts[h.ID]
	var params step.RestoreFilesParams
	for _, path := range d.Restores[h.ID] {
		if slices.Contains(is.Restorable, path) && condition.IsRestored(path) {
			params.Files = append(params.Files, path)
		}
	}
	reasons, changes, risk := problem.Whats(d.Hosts[h.ID].Reasons), slices.Clone(params.Files), NoRisk
	if len(params.Files) > 0 {
		reasons = append(reasons, "somebody has changed "+problem.List(params.Files))
	}
	var open []string
	for _, file := range is.Exposed {
		if slices.Contains(d.Restores[h.ID], file.Path) {
			params.Closed, open = append(params.Closed, file.Path), append(open, file.String())
			changes = append(changes, file.Path+" for root alone")
		}
	}
	if len(open) > 0 {
		reasons = append(reasons, "others than root may read or change "+problem.List(open))
	}
	if units := set.Union(params.Units(), d.Restarts[h.ID]); len(units) > 0 {
		changes, risk = append(changes, problem.List(units)+" restarted, containers go on"), Restarts
	}
	return b.onHost(h, Step{
		Intent: step.With(params), Action: Change, Risk: risk, Title: "restore what somebody has changed",
		Reason: strings.Join(reasons, "; "), Needs: needs, Changes: changes,
	})
}

// restoredLast reports whether the host is a worker that is well, and of which somebody has changed files.
func restoredLast(h desired.Host, d decide.Decision) bool {
	return h.Role == desired.Worker && d.Restores[h.ID] != nil && d.Hosts[h.ID].Condition == condition.Healthy
}

// restoreOnWorkers restores files of workers that are well, on one after the other. Nothing else needs that: what one
// worker says of its files stops nobody.
func (b *builder) restoreOnWorkers(d decide.Decision) {
	previous := ""
	for _, h := range b.in.Want.Workers {
		if !restoredLast(h, d) {
			continue
		}
		id := b.restoreFiles(h, d, nil)
		if previous != "" {
			b.after(id, previous)
		}
		previous = id
	}
}
