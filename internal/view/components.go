package view

import (
	"maps"
	"slices"

	"kubeone/internal/decide"
	"kubeone/internal/model/observed"
)

// checkComponents is ok when network plugin, kube-proxy and cluster DNS run where they must (decide.NotRunning), and no
// object of theirs is missing. What could not be compared is not ok.
func checkComponents(st StatusInput) Check {
	a := st.World.API
	if a.Reached != observed.Yes {
		return Check{"components", false, "not known while the API does not answer"}
	}
	var bad []string
	for _, absent := range decide.NotRunning(st.Want.Network, a) {
		bad = append(bad, absent.Component+" does not run on "+list(absent.Where(), 5))
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
