package engine

import (
	"cmp"
	"maps"
	"slices"

	"kubeone/internal/addons"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
)

// AddonState says what the cluster has of an addon.
type AddonState struct {
	Name string
	// Custom says that the addon is the operator's own. Helm says that it is a Helm release.
	Custom, Helm bool
	// Desired says that the addon is in the manifest, or part of kubeone. Otherwise, an apply removes it if it is Custom.
	Desired bool
	// Applied says that the addon has been applied; Current, that it was applied as it is now desired.
	Applied, Current bool
	Objects          int                   // number of objects in the cluster; as desired if their list is unknown
	Differences      []observed.Difference // objects that were changed or deleted since
	Problem          string                // why the objects could not be compared or listed
}

// addonsOf returns the addons that a cluster is to have after decide.DefaultAddons.
func (e *Engine) addonsOf(want desired.Cluster) []addons.Addon {
	return slices.DeleteFunc(slices.Clone(e.addons), func(a addons.Addon) bool { return want.LacksDefaultAddon(a.Name) })
}

// awaitedAddons returns the addons of a run, and for a network plugin that is a Helm release, the workloads to wait
// for.
func (e *Engine) awaitedAddons(want desired.Cluster) []addons.Addon {
	out := e.addonsOf(want)
	for _, r := range e.network {
		out = append(out, addons.Addon{Name: r.Name, Wait: r.Workloads})
	}
	return out
}

// Addons returns the state of all addons that are desired or in the cluster, as the proposal observed them: first the
// desired ones in the order in which they are applied, then the others by name, then Helm releases. Without an answer
// of the API, none is Applied.
func (e *Engine) Addons(p Proposal) []AddonState {
	api := p.Observed.World.API
	var out []AddonState
	listed := map[string]bool{}
	for _, a := range e.addonsOf(p.Want) {
		listed[a.Name] = true
		s := newAddonState(api, a.Name)
		s.Custom, s.Desired, s.Current = a.Custom, true, s.Applied && api.Addons[a.Name] == a.Digest
		if s.Objects == 0 {
			s.Objects = len(a.Objects)
		}
		out = append(out, s)
	}
	names := slices.Collect(maps.Keys(api.Addons))
	for name := range api.Inventories {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if !listed[name] {
			s := newAddonState(api, name)
			s.Custom = !e.cfg.Want.IsOwnAddon(name)
			out = append(out, s)
		}
	}
	return append(out, e.releaseStates(api)...)
}

// releaseStates returns the state of Helm releases that are desired, or that kubeone installed.
func (e *Engine) releaseStates(api observed.API) []AddonState {
	var out []AddonState
	keys := e.releaseKeys()
	for _, key := range slices.Sorted(maps.Keys(api.HelmReleases)) {
		if !slices.Contains(keys, key) && api.HelmReleases[key].Managed {
			keys = append(keys, key)
		}
	}
	for _, key := range keys {
		is, found := api.HelmReleases[key]
		compared := api.Compared[key]
		s := AddonState{
			Name: key, Custom: !e.cfg.Want.Network.CNI.IsRelease(key), Helm: true, Applied: found, Objects: is.Objects,
			Differences: compared.Differences, Problem: cmp.Or(is.Problem, compared.Problem),
		}
		if want, desired := e.helmRelease(key); desired {
			summary := want.Summary()
			s.Desired = true
			s.Current = is.Status == observed.ReleaseDeployed && is.Source == summary.Source && is.Values == summary.Values
		}
		out = append(out, s)
	}
	return out
}

func newAddonState(api observed.API, name string) AddonState {
	compared, held := api.Compared[name], api.Inventories[name]
	s := AddonState{Name: name, Objects: len(held.Objects), Differences: compared.Differences, Problem: compared.Problem}
	if held.Problem != "" {
		s.Problem = held.Problem
	}
	_, s.Applied = api.Addons[name]
	return s
}

// State returns the state in a word or two.
func (a AddonState) State() string {
	switch {
	case !a.Desired && a.Custom:
		return "to be removed"
	case !a.Desired:
		return "not in the manifest"
	case !a.Applied:
		return "not applied"
	case !a.Current:
		return "outdated"
	case len(a.Differences) > 0:
		return "changed"
	case a.Problem != "":
		return "unknown"
	}
	return "applied"
}
