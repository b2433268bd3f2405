package view

import "kubeone/internal/plan"

// NotRunning is what is said after "Done." where components still do not run; nothing where they all do.
func NotRunning(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "Not running yet: " + clean(list(names, 4)) + "; see kubeone status."
}

// Unsettled is what a look after a run found that is not as it is wanted yet: the hosts that are coming up, else what
// a plan made now would do.
func Unsettled(comingUp []string, p plan.Plan) string {
	if len(comingUp) > 0 {
		return clean(list(comingUp, 4)) + ": not healthy yet"
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
