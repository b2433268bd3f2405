package view

import (
	"kubeone/internal/decide"
	"kubeone/internal/plan"
)

// NotRunning returns the line after "Done." that names components that do not run; "" if they all run.
func NotRunning(absent []decide.Absence) string {
	if len(absent) == 0 {
		return ""
	}
	names := make([]string, 0, len(absent))
	for _, a := range absent {
		names = append(names, a.String())
	}
	return "Not running yet: " + clean(list(names, 4)) + "; see kubeone status."
}

// Unsettled returns what a run still waits for: the names of what is not ready, else the steps of a plan made now.
func Unsettled(notReady []string, p plan.Plan) string {
	if len(notReady) > 0 {
		return clean(list(notReady, 4)) + ": not healthy yet"
	}
	titles := make([]string, 0, len(p.Steps))
	for _, s := range p.Steps {
		titles = append(titles, hostOr(p.Hosts[s.Host])+" "+s.Title)
	}
	if len(titles) == 0 {
		return "the cluster is not as the manifest says yet"
	}
	return "the cluster is not as the manifest says yet: " + clean(list(titles, 3))
}
