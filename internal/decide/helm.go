package decide

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/version"

	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
)

// staleReleases lists the Helm releases to install or upgrade.
func (v *view) staleReleases() []string {
	if v.in.About != nil || v.in.Want.Endpoint.Later != "" {
		return nil // they belong to the whole cluster and are made for the manifest's endpoint
	}
	var out []string
	for _, want := range v.in.HelmReleases {
		is, found := v.in.Is.API.HelmReleases[want.Key()]
		if !found || is.Problem == "" && v.isStale(want, is) {
			out = append(out, want.Key())
		}
	}
	return out
}

// networkRelease returns the Helm release that is the network plugin, if there is one.
func (v *view) networkRelease() (want desired.HelmRelease, found bool) {
	i := slices.IndexFunc(v.in.HelmReleases, func(r desired.HelmRelease) bool { return r.Network })
	if i < 0 {
		return want, false
	}
	return v.in.HelmReleases[i], true
}

// isStale reports whether a release differs from the manifest, or its objects were changed since.
func (v *view) isStale(want desired.HelmRelease, is observed.HelmRelease) bool {
	return !is.Managed || is.Status != observed.ReleaseDeployed || is.Source != want.Source || is.Values != want.Values ||
		len(v.in.Is.API.Compared[want.Key()].Differences) > 0
}

// skippedPluginVersion returns a problem if the network plugin would become older, or skip a minor version. Projects
// support neither: agents of both versions run at the same time during an upgrade.
func (v *view) skippedPluginVersion() *problem.Problem {
	wanted, found := v.networkRelease()
	if !found || v.in.About != nil {
		return nil
	}
	is := v.in.Is.API.HelmReleases[wanted.Key()]
	have, err := version.ParseSemantic(is.Version)
	if err != nil {
		return nil // it is not installed, or its version is unknown
	}
	want, err := version.ParseSemantic(wanted.Version)
	if err != nil {
		return nil
	}
	reason := ""
	switch {
	case want.LessThan(have):
		reason = "that would be a downgrade"
	case want.Major() != have.Major() || want.Minor() > have.Minor()+1:
		reason = "that would skip a minor version"
	default:
		return nil
	}
	return &problem.Problem{Code: problem.NetworkPluginSkipped, Parameters: problem.Parameters{
		"plugin": wanted.Name, "deployed": is.Version, "wanted": wanted.Version, "problem": reason,
	}}
}

// undeclaredReleases lists the Helm releases that kubeone installed and that are no longer in the manifest. A network
// plugin stays: the pods need it until they have another one.
func (v *view) undeclaredReleases() []string {
	if !v.in.KnowsAddons || v.in.About != nil {
		return nil
	}
	var out []string
	for key, is := range v.in.Is.API.HelmReleases {
		isDesired := slices.ContainsFunc(v.in.HelmReleases, func(want desired.HelmRelease) bool { return want.Key() == key })
		if is.Managed && !isDesired && !v.in.Want.Network.CNI.IsRelease(key) {
			out = append(out, key)
		}
	}
	slices.Sort(out)
	return out
}

// unreadableReleases warns of desired Helm releases whose content cannot be read.
func (v *view) unreadableReleases() []problem.Problem {
	var out []problem.Problem
	for _, want := range v.in.HelmReleases {
		if why := v.in.Is.API.HelmReleases[want.Key()].Problem; why != "" {
			out = append(out, problem.Problem{
				Code: problem.ReleaseUnreadable, Parameters: problem.Parameters{"release": want.Key(), "problem": why},
			})
		}
	}
	return out
}
