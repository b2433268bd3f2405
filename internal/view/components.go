package view

import (
	"maps"
	"slices"

	"kubeone/internal/observed"
)

// The pods of what kubeadm applies, by their app label.
const (
	appProxy = "kube-proxy"
	appDNS   = "kube-dns"
)

// checkComponents is ok when the network plugin and kube-proxy have a ready pod on every Node that is Ready, cluster
// DNS has one at all, and no object of theirs is missing. What could not be compared is not ok.
func checkComponents(st StatusInput) Check {
	a := st.World.API
	if a.Reached != observed.Yes {
		return Check{"components", false, "not known while the API does not answer"}
	}
	var everywhere, bad []string
	if cni := st.Want.Network.CNI; slices.Contains(cni.Deployed(), cni.Name) {
		everywhere = append(everywhere, cni.Name)
	}
	if !st.Want.Network.KubeProxy.Skip {
		everywhere = append(everywhere, appProxy)
	}
	for _, app := range everywhere {
		if nodes := without(a, app); len(nodes) > 0 {
			bad = append(bad, app+" does not run on "+list(nodes, 5))
		}
	}
	if !slices.ContainsFunc(a.Pods, func(p observed.Pod) bool { return p.App == appDNS && p.Ready == observed.Yes }) {
		bad = append(bad, "cluster DNS does not run")
	}
	for _, name := range slices.Sorted(maps.Keys(a.Compared)) {
		c := a.Compared[name]
		for _, d := range slices.Concat(c.Differences, c.Settings) {
			if d.Missing {
				bad = append(bad, d.String())
			}
		}
		if c.Problem != "" {
			bad = append(bad, name+" could not be compared: "+c.Problem)
		}
	}
	if len(bad) > 0 {
		return Check{"components", false, list(bad, 5)}
	}
	return Check{"components", true, "network, Services and DNS run everywhere they should"}
}

// without are the Nodes that are Ready and have no ready pod of the app.
func without(a observed.API, app string) []string {
	var out []string
	for _, n := range a.Nodes {
		if n.Ready == observed.Yes && !slices.ContainsFunc(a.Pods, func(p observed.Pod) bool {
			return p.App == app && p.Node == n.Name && p.Ready == observed.Yes
		}) {
			out = append(out, n.Name)
		}
	}
	return out
}

// objectsOf says which live objects are not as they must be, and what could not be compared.
func objectsOf(a observed.API) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(a.Compared)) {
		c := a.Compared[name]
		for _, d := range slices.Concat(c.Differences, c.Settings) {
			out = append(out, d.String())
		}
	}
	return out
}
