package plan

import (
	"slices"
	"strings"

	"kubeone/internal/decide"
	"kubeone/internal/decide/condition"
	"kubeone/internal/desired"
	"kubeone/internal/problem"
	"kubeone/internal/step"
)

// restoreFiles plans that files which somebody has changed become again what they were. Units that do not run are
// started with that.
func (b *builder) restoreFiles(h desired.Host, d decide.Decision, needs []string) string {
	params := step.RestoreFilesParams{Files: d.Restores[h.ID]}
	reasons := append(problem.Whats(d.Hosts[h.ID].Reasons), "somebody has changed "+problem.List(params.Files))
	changes, risk := slices.Clone(params.Files), NoRisk
	if units := union(params.Units(), d.Restarts[h.ID]); len(units) > 0 {
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
