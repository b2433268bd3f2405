package decide

import (
	"fmt"
	"maps"
	"slices"

	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/decide/preflight"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"

	"k8s.io/apimachinery/pkg/util/version"
)

// checkFitness returns why nothing may be done, and what the operator should know.
func (v *view) checkFitness() (unfit, warnings []problem.Problem) {
	unfit, warnings = append(v.checkDesired(), v.stoppingContradictions()...), v.movedHosts()
	if len(v.claims) > 0 {
		unfit = append(unfit, problem.Problem{
			Code: problem.ClusterCAConflict, Parameters: problem.Parameters{"cluster": v.in.Want.Name, "cas": v.claims},
		})
	}
	unfit = append(unfit, v.otherCA()...)
	for i := range v.hosts {
		unfit = append(unfit, v.namedVersions(&v.hosts[i])...)
		bad, worth := v.fitnessOf(&v.hosts[i])
		unfit, warnings = append(unfit, bad...), append(warnings, worth...)
		if p := v.cannotUpgradePackages(&v.hosts[i]); p != nil {
			unfit = append(unfit, *p)
		}
	}
	for i := range v.controlPlane() {
		if p := v.takesNode(&v.hosts[i]); p != nil {
			unfit = append(unfit, *p)
		}
	}
	unfit = append(unfit, v.encryptionUnfit()...)
	if p := v.beginsOutsideLimit(); p != nil {
		unfit = append(unfit, *p)
	}
	unfit = append(unfit, v.otherEndpoint()...)
	if p := v.otherForm(); p != nil {
		unfit = append(unfit, *p)
	}
	if p := v.otherNetwork(); p != nil {
		unfit = append(unfit, *p)
	}
	if p := v.otherCloud(); p != nil {
		unfit = append(unfit, *p)
	}
	changed, taken := v.otherPlugin()
	unfit, warnings = append(unfit, changed...), append(warnings, taken...)
	if p := v.skippedPluginVersion(); p != nil {
		unfit = append(unfit, *p)
	}
	unfit = append(unfit, v.foreignDefinitions()...)
	warnings = slices.Concat(warnings, v.nodesWithoutMachine(), v.hostsInPool())
	unfit = append(unfit, v.sameNames()...)
	warnings = append(warnings, v.sameMachines()...)
	warnings = slices.Concat(warnings, v.unreadableWarnings(unfit), v.unreadableReleases(),
		v.notCompared(), v.notRunning(), v.systemWaits())
	warnings = slices.Concat(warnings, v.podsOutside(), v.endpointWarnings(), v.encryptionWaits(), v.rotationBegun())
	if p := v.skewElsewhere(); p != nil && v.keepsVersions() {
		warnings = append(warnings, *p)
	}
	return unfit, append(warnings, v.livingOrphans()...)
}

// otherForm returns the problem that the desired state of the cluster has been a manifest, and now is a Cluster and
// Machines, or the other way round. Until a run has saved the manifest in its record, a cluster has no form.
func (v *view) otherForm() *problem.Problem {
	api := v.in.Is.API
	if v.in.About != nil || api.Reached != observed.Yes || api.Record == nil ||
		api.Record.IsUnreadable(observed.RecordAddons, observed.RecordManifestDigest) {
		return nil
	}
	hasObjects := api.Addons[desired.ClusterAddon] != ""
	switch {
	case hasObjects && !v.in.Want.Objects:
		return &problem.Problem{Code: problem.OtherForm, Parameters: problem.Parameters{
			"described": "the Cluster kube-system/" + v.in.Want.Name + " with its Machines", "given": "a manifest",
			"form": "manifest",
		}}
	case !hasObjects && v.in.Want.Objects && api.Record.ManifestDigest != "":
		return &problem.Problem{Code: problem.OtherForm, Parameters: problem.Parameters{
			"described": "a manifest", "given": "a Cluster and Machines", "form": "objects",
		}}
	}
	return nil
}

// otherCA returns problems for the control-plane hosts of this cluster that hold another CA than the known one.
func (v *view) otherCA() []problem.Problem {
	var out []problem.Problem
	for i := range v.controlPlane() {
		s := &v.hosts[i]
		ca := s.is.AdminCA
		if ca == "" && s.is.Marker != nil && s.is.Marker.Cluster == v.in.Want.Name && s.is.Marker.Complete {
			ca = s.is.CAHash
		}
		if v.in.CA != "" && ca != "" && ca != v.in.CA {
			out = append(out, problem.Problem{
				Code: problem.ClusterCAChanged, Host: s.ID, Parameters: problem.Parameters{"ca": ca, "known": v.in.CA},
			})
		}
	}
	return out
}

// otherNetwork returns a problem if the manifest has other subnets, or another DNS domain, than the cluster was created
// with: every address in the cluster depends on them.
func (v *view) otherNetwork() *problem.Problem {
	for i := range v.controlPlane() {
		s := &v.hosts[i]
		have, known := s.is.Digests[desired.NetworkDigest]
		want, compared := v.in.Config[s.ID][desired.NetworkDigest]
		if s.hasJoined() && known && compared && have != want {
			return &problem.Problem{Code: problem.NetworkImmutable, Host: s.ID}
		}
	}
	return nil
}

// otherCloud returns a problem if a host joined with another external cloud than the manifest has: a kubelet asks for
// the cloud's controller manager only when it creates its Node.
func (v *view) otherCloud() *problem.Problem {
	for i := range v.hosts {
		s := &v.hosts[i]
		want, compared := v.in.Config[s.ID]
		_, noted := s.is.Digests["kubelet"] // with the cloud, once the host has joined
		if s.hasJoined() && noted && compared && s.is.Digests[desired.CloudDigest] != want[desired.CloudDigest] {
			return &problem.Problem{Code: problem.CloudImmutable, Host: s.ID}
		}
	}
	return nil
}

// otherPlugin judges a manifest with another network plugin than the one that kubeone deployed: hosts that join do not
// get its configuration. That is right if a plugin has replaced it that another tool deploys.
func (v *view) otherPlugin() (unfit, warnings []problem.Problem) {
	wanted := v.in.Want.Network.CNI
	if v.addonsUnknown() && (!wanted.CarriedOut() || v.runsOtherPlugin()) {
		return []problem.Problem{v.unreadableAddons()}, nil // it may differ from the deployed one
	}
	i := slices.IndexFunc(wanted.Deployed(), func(name string) bool {
		return name != wanted.Name && v.hasPlugin(name)
	})
	if i < 0 {
		return nil, nil
	}
	has := wanted.Deployed()[i]
	p := problem.Problem{
		Code: problem.NetworkPluginChanged, Parameters: problem.Parameters{"deployed": has, "wanted": wanted.Name},
	}
	if wanted.Name == desired.ExternalCNI {
		return nil, []problem.Problem{p}
	}
	return []problem.Problem{p}, nil
}

// hasPlugin reports whether kubeone has deployed the network plugin, and it was not removed since. A release of the
// manifest that has its name is the operator's own.
func (v *view) hasPlugin(name string) bool {
	if _, applied := v.in.Is.API.Addons[name]; applied {
		return v.runsPlugin(name)
	}
	key := desired.NetworkNamespace + "/" + name
	return v.in.Want.Network.CNI.IsRelease(key) && v.in.Is.API.HelmReleases[key].Managed &&
		!slices.ContainsFunc(v.in.HelmReleases, func(r desired.HelmRelease) bool { return r.Key() == key })
}

// removedPlugins returns the network plugins that kubeone deployed as addons, that are not the desired one, and whose
// pods were deleted. The operator thereby says that the plugin may be replaced.
func (v *view) removedPlugins() []string {
	var out []string
	for _, name := range v.in.Want.Network.CNI.Deployed() {
		_, applied := v.in.Is.API.Addons[name]
		if applied && name != v.in.Want.Network.CNI.Name && !v.runsPlugin(name) {
			out = append(out, name)
		}
	}
	return out
}

// runsPlugin reports whether there are pods of the network plugin, or may be: a cluster without any pod was not read.
func (v *view) runsPlugin(name string) bool {
	pods := v.in.Is.API.Pods
	return len(pods) == 0 || slices.ContainsFunc(pods, func(p observed.Pod) bool { return p.App == name })
}

// runsOtherPlugin reports whether there are pods of a network plugin that kubeone deploys, but that is not the desired
// one.
func (v *view) runsOtherPlugin() bool {
	wanted := v.in.Want.Network.CNI
	return wanted.Name != desired.ExternalCNI && slices.ContainsFunc(v.in.Is.API.Pods, func(p observed.Pod) bool {
		return p.App != wanted.Name && slices.Contains(wanted.Deployed(), p.App)
	})
}

// checkDesired checks what a decision needs of the manifest; its own validation has checked the rest.
func (v *view) checkDesired() []problem.Problem {
	var out []problem.Problem
	if v.cps == 0 {
		out = append(out, problem.Problem{Code: problem.ControlPlaneMissing})
	}
	if _, err := version.ParseSemantic(v.in.Want.KubernetesVersion); err != nil {
		out = append(out, invalidVersion(v.in.Want.KubernetesVersion))
	}
	for _, id := range slices.Sorted(maps.Keys(v.in.Limit)) {
		if !slices.ContainsFunc(v.hosts, func(s hostState) bool { return s.ID == id }) {
			out = append(out, problem.Problem{Code: problem.LimitUnknown, Parameters: problem.Parameters{"name": id}})
		}
	}
	return out
}

// fitnessOf judges one host. A foreign control-plane host always stops everything: it might hold this cluster's only
// copy. A worker outside the limit stops nothing.
func (v *view) fitnessOf(s *hostState) (unfit, warnings []problem.Problem) {
	switch {
	case s.reported:
		return nil, nil // the decision is not about it
	case s.refused != nil && !s.leftAlone:
		if s.inLimit || s.controlPlane() {
			return []problem.Problem{*s.refused}, nil
		}
		return nil, []problem.Problem{*s.refused}
	case s.Condition == condition.Foreign:
		if s.inLimit || s.controlPlane() {
			return s.Reasons[:1:1], nil
		}
		return nil, s.Reasons[:1:1]
	case s.isSilent():
		return v.fitnessOfSilent(s)
	case s.isMissing():
		unfit, warnings = preflight.Check(s.Host, &s.is, s.wantKubelet, s.Condition == condition.Empty && !s.Resume)
	case s.Condition.Installable():
		warnings = append(warnings, problem.Problem{Code: problem.HostOutsideLimit, Host: s.ID})
	default:
		if p := preflight.Clock(s.Host, &s.is); p != nil {
			warnings = append(warnings, *p)
		}
		if p := s.refusesCgroups(); p != nil && s.inLimit {
			unfit = append(unfit, *p)
		}
		if p := v.foreignCNIFirst(s); p != nil {
			warnings = append(warnings, *p)
		}
	}
	warnings = append(warnings, condition.OtherKeys(s.ID, &s.is, problem.HostKeyReplaced)...)
	warnings = append(warnings, s.memberWarnings()...)
	if st := s.is.Step; st != nil {
		warnings = append(warnings, problem.Problem{
			Code: problem.StepRunning, Host: s.ID, Parameters: problem.Parameters{"step": st.Stage, "run": st.RunID},
		})
	}
	return unfit, warnings
}

// refusesCgroups returns a problem if the member uses cgroup v1 and the desired kubelet would not start with it.
func (s *hostState) refusesCgroups() *problem.Problem {
	if preflight.RefusesCgroupV1(s.kubeletVersion()) {
		return nil // it already runs with them, or its upgrade has got too far
	}
	return preflight.Cgroups(s.Host, &s.is, s.wantKubelet)
}

// cannotUpgradePackages returns a problem if the host is to upgrade its packages on its own, and kubeone knows no
// program for that on its operating system.
func (v *view) cannotUpgradePackages(s *hostState) *problem.Problem {
	wanted := slices.ContainsFunc(v.in.Want.HostAddonsOf(*s.Host), func(a desired.HostAddon) bool {
		return a.Name == desired.UnattendedUpgradesAddon
	})
	if !wanted || !s.inLimit || s.leftAlone || s.reported || s.is.Reach != observed.Reached {
		return nil
	}
	p := preflight.Upgrader(&s.is)
	if p != nil {
		p.Host = s.ID
	}
	return p
}

// foreignCNIFirst returns a problem if new pods of the member get their network from a CNI configuration that is not
// the network plugin's. No step removes that file, because it may belong to a plugin that calls the cluster's own.
func (v *view) foreignCNIFirst(s *hostState) *problem.Problem {
	cni := v.in.Want.Network.CNI
	own := slices.IndexFunc(s.is.CNIFiles, func(name string) bool { return slices.Contains(cni.Files, name) })
	if !s.hasJoined() || own < 0 {
		return nil
	}
	name := s.is.CNIFiles[own]
	first := slices.DeleteFunc(preflight.ForeignCNI(cni, &s.is), func(other string) bool { return other > name })
	if len(first) == 0 {
		return nil
	}
	return &problem.Problem{
		Code: problem.ForeignCNIFirst, Host: s.ID, Parameters: problem.Parameters{"own": name, "files": first},
	}
}

// memberWarnings returns warnings about a host that has joined.
func (s *hostState) memberWarnings() []problem.Problem {
	var out []problem.Problem
	warn := func(code problem.Code, parameter string, values []string) {
		if len(values) > 0 && s.hasJoined() {
			out = append(out, problem.Problem{
				Code: code, Host: s.ID, Parameters: problem.Parameters{parameter: values},
			})
		}
	}
	warn(problem.CertificatesEnding, "certificates", s.expiringCertificates())
	out = append(out, s.editWarnings()...)
	if s.controlPlane() {
		warn(problem.GuardMissing, "tools", s.is.Unguarded)
	}
	warn(problem.HealthPortTaken, "ports", s.impostorPorts())
	return out
}

// expiringCertificates names the host's certificates that expire soon.
func (s *hostState) expiringCertificates() []string {
	var out []string
	for _, c := range s.is.Certificates {
		if c.Soon {
			out = append(out, c.Name)
		}
	}
	return out
}

// impostorPorts lists the ports where another process answers for a component: "10248 (kubelet, user 1000)".
func (s *hostState) impostorPorts() []string {
	var out []string
	for _, p := range s.is.Impostors {
		out = append(out, fmt.Sprintf("%d (%s, user %d)", p.Number, p.Process, p.User))
	}
	return out
}

// notCompared warns of components that could not be compared with their desired state.
func (v *view) notCompared() []problem.Problem {
	var out []problem.Problem
	compared := v.in.Is.API.Compared
	for _, name := range slices.Sorted(maps.Keys(compared)) {
		if why := compared[name].Problem; why != "" {
			out = append(out, problem.Problem{
				Code: problem.NotCompared, Parameters: problem.Parameters{"component": name, "problem": why},
			})
		}
	}
	return out
}

// fitnessOfSilent judges a host that could not be probed. A host key that was not accepted stops everything, even
// outside the limit: an impostor may be listening. Workers of an existing cluster stop nothing. A refused login stops
// everything only if there is no cluster yet, because then it is a mistake and not a failure.
func (v *view) fitnessOfSilent(s *hostState) (unfit, warnings []problem.Problem) {
	why := s.Reasons[:1:1]
	if s.Role == desired.Worker && v.hasBegun() {
		return nil, why
	}
	if keyRefused(why) ||
		problem.Has(why, problem.HostLoginRefused) && s.inLimit && !v.hasBegun() {
		return why, nil
	}
	return nil, why
}

// keyRefused reports whether the host was not probed because of its SSH host key.
func keyRefused(why []problem.Problem) bool {
	return problem.Has(why, problem.HostKeyRefused) || problem.Has(why, problem.HostKeyChanged)
}

// hasBegun reports whether some control-plane host already belongs to the cluster.
func (v *view) hasBegun() bool { return len(idsWhere(v.controlPlane(), (*hostState).hasJoined)) > 0 }

// beginsOutsideLimit returns a problem if a new cluster would start on a host outside the limit.
func (v *view) beginsOutsideLimit() *problem.Problem {
	if v.in.Limit == nil || v.cps == 0 || countConditions(v.controlPlane(), condition.Empty,
		condition.Partial) != v.cps {
		return nil
	}
	if leader := v.installLeader(); !v.in.Limit[leader] {
		return &problem.Problem{Code: problem.LeaderOutsideLimit, Host: leader}
	}
	return nil
}

// sameNames finds hosts with one name: each would be the other's Node. Workers that claim another host's name are left
// alone instead.
func (v *view) sameNames() []problem.Problem {
	return v.duplicateValues(problem.HostNameDuplicate, "name", func(s *hostState) string {
		return s.Node
	})
}

// sameMachines finds hosts with one machine ID, typically copies of one disk image.
func (v *view) sameMachines() []problem.Problem {
	return v.duplicateValues(problem.MachineIDDuplicate, "machineID",
		func(s *hostState) string { return s.is.MachineID })
}

// duplicateValues returns a problem for each value that several hosts have, in the hosts' order, with the value as the
// parameter name. Empty values do not count.
func (v *view) duplicateValues(code problem.Code, name string, value func(*hostState) string) []problem.Problem {
	var out []problem.Problem
	with := make(map[string][]*hostState, len(v.hosts))
	var order []string
	for i := range v.hosts {
		val := value(&v.hosts[i])
		with[val] = append(with[val], &v.hosts[i])
		if val != "" && len(with[val]) == 2 {
			order = append(order, val)
		}
	}
	for _, val := range order {
		out = append(out, problem.Problem{
			Code: code, Parameters: problem.Parameters{"hosts": idsOf(with[val]), name: val},
		})
	}
	return out
}

// livingOrphans returns healthy members outside the manifest: only the operator may remove them.
func (v *view) livingOrphans() []problem.Problem {
	var out []problem.Problem
	for _, s := range v.etcd.orphans {
		if s.isLiving() {
			out = append(out, s.asProblem())
		}
	}
	return out
}

// errorProblems explains the route error: what made the hosts unfit, else what the last question answered.
func (v *view) errorProblems(trace []fsm.Visit) []problem.Problem {
	if len(v.unfit) > 0 {
		return v.unfit
	}
	if last := trace[len(trace)-1]; last.State == fsm.AskProvisioned {
		return v.silentHostProblems()
	}
	_, _, p := v.versionRelation()
	return []problem.Problem{*p}
}

// silentHostProblems returns the problems of control-plane hosts that could not be probed, and their consequence.
func (v *view) silentHostProblems() []problem.Problem {
	var out []problem.Problem
	var hosts []string
	for i := range v.controlPlane() {
		if s := &v.hosts[i]; s.isSilent() {
			out, hosts = append(out, s.Reasons[0]), append(hosts, s.displayName())
		}
	}
	return append(out, problem.Problem{
		Code:       problem.ClusterStateUnknown,
		Parameters: problem.Parameters{"hosts": hosts},
	})
}

func invalidVersion(version string) problem.Problem {
	return problem.Problem{Code: problem.VersionInvalid, Parameters: problem.Parameters{"version": version}}
}

func (s *hostState) controlPlane() bool { return s.Role == desired.ControlPlane }
