package settings

import (
	"maps"
	"slices"
	"strings"

	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/text/diff"
)

// controlPlaneTaint is kubeadm's own taint. If it is not desired, it is removed, like those of an earlier manifest.
const controlPlaneTaint = "node-role.kubernetes.io/control-plane"

// OfNode returns the changes to a Node's labels, annotations and taints. What the manifest does not name stays, and is
// not shown.
func OfNode(h desired.Host, node observed.Node) []diff.Change {
	is, will := map[string]bool{}, map[string]bool{}
	pairs := func(kind string, want, have map[string]string) {
		for key, value := range want {
			name, goes := strings.CutSuffix(key, "-")
			if had, ok := have[name]; ok {
				is[kind+" "+name+"="+had] = true
			}
			if !goes {
				will[kind+" "+key+"="+value] = true
			}
		}
	}
	pairs("label", h.Labels, node.Labels)
	pairs("annotation", h.Annotations, node.Annotations)
	for _, t := range h.Taints {
		will[formatTaint(observed.Taint(t))] = true
	}
	ours := strings.Split(node.Annotations[observed.TaintsAnnotation], ",")
	for _, t := range node.Taints {
		wanted := slices.ContainsFunc(h.Taints, func(w desired.Taint) bool {
			return w.Key == t.Key && w.Effect == t.Effect
		})
		if wanted || t.Key == controlPlaneTaint || slices.Contains(ours, t.Key+":"+t.Effect) {
			is[formatTaint(t)] = true
		}
	}
	lines := func(of map[string]bool) string { return strings.Join(slices.Sorted(maps.Keys(of)), "\n") }
	return changeOf("labels, annotations and taints", lines(is), lines(will))
}

func formatTaint(t observed.Taint) string {
	text := "taint " + t.Key
	if t.Value != "" {
		text += "=" + t.Value
	}
	return text + ":" + t.Effect
}
