package view

import (
	"slices"
	"strings"

	"kubeone/internal/plan"
	"kubeone/internal/text/phrase"
)

// group is hosts that have the same steps, or the cluster, which has no host.
type group struct {
	names []string // display names, each with its address where that is another
	steps []plan.Step
}

// groupSteps puts the steps of each host together, in the order in which the plan first names the hosts; the cluster's
// own steps come last. Fold puts hosts together whose steps read the same.
func groupSteps(p plan.Plan, fold bool) []group {
	var ids []string
	steps := map[string][]plan.Step{}
	for _, s := range p.Steps {
		if _, known := steps[s.Host]; !known && s.Host != "" {
			ids = append(ids, s.Host)
		}
		steps[s.Host] = append(steps[s.Host], s)
	}
	var out []group
	for _, id := range ids {
		g := group{[]string{fullName(p, id)}, steps[id]}
		same := slices.IndexFunc(out, func(other group) bool { return fold && reads(other) == reads(g) })
		if same >= 0 {
			out[same].names = append(out[same].names, g.names...)
			continue
		}
		out = append(out, g)
	}
	if cluster := steps[""]; len(cluster) > 0 {
		out = append(out, group{nil, cluster})
	}
	return out
}

// reads is what a reader sees of a group's steps while changes are not shown.
func reads(g group) string {
	var b strings.Builder
	for _, s := range g.steps {
		b.WriteString(strings.Join([]string{string(s.Action), s.Title, s.Reason, string(s.Risk)}, "\x00") + "\n")
	}
	return b.String()
}

func fullName(p plan.Plan, id string) string {
	name := nameOf(p.Hosts, id)
	if name == id || strings.HasPrefix(name, id+" (") { // it is called by its ID already
		return clean(name)
	}
	return clean(name + " (" + id + ")")
}

// title names all hosts of the group: who is changed must be seen before it is approved.
func (g group) title() string {
	switch len(g.names) {
	case 0:
		return "cluster"
	case 1:
		return g.names[0]
	}
	return phrase.Count(len(g.names), "host") + ", each: " + list(g.names, len(g.names))
}

func titleWidth(groups []group) int {
	n := 0
	for _, g := range groups {
		for _, s := range g.steps {
			n = max(n, width(clean(s.Title)))
		}
	}
	return n
}
