package decide

import (
	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"slices"
	"strings"
)

// fillDecision fills in what the decision's route needs, and nothing else.
func fillDecision(d *Decision, v *view) {
	switch d.Route {
	case fsm.Install:
		d.Leader = v.installLeader()
		d.Joins = v.hostsInOrder(func(s *hostState) bool { return s.isMissing() && s.ID != d.Leader })
		d.Prepare = idsWhere(v.hosts, func(s *hostState) bool { return s.isMissing() })
		d.Addons, d.Record = v.allAddons(), true
	case fsm.Join:
		v.fillJoins(d, true)
	case fsm.Repair:
		d.Restarts, d.Regenerations, d.Removals, d.Quarantines = v.unitsToRestart(), v.partsToRegenerate(),
			v.membersToRemove(),
			v.hostsToQuarantine()
		last := d.Trace[len(d.Trace)-1]
		d.Restores = v.filesToRestore(last.State == fsm.AskConfiguration)
		if last.Event == fsm.OnEnding {
			d.Restores, d.Renewals = nil, v.certificatesToRenew()
		}
	case fsm.MoveEndpoint:
		d.Names, d.Diallers = v.nameChanges(), v.hostsToRedirect()
		d.Publish = v.in.About == nil && v.in.Limit == nil && (len(d.Names) > 0 || !v.objectsNameEndpoint())
	case fsm.Instruct:
		v.fillAlso(d)
		d.Instructions = v.orderedInstructions()
	case fsm.DisasterRecovery:
		d.Instructions = v.disasterProcedure()
	case fsm.Upgrade:
		d.Upgrades, d.Uncordon, d.Drift = v.hostsToUpgrade(), idsWhere(v.hosts, v.isCordonedByRun), v.driftByHost()
		d.Settings = v.staleSettings()
		if d.System = v.followingSystem(); len(d.System) > 0 {
			d.Leader = v.systemHost()
		}
	case fsm.Reconfigure:
		d.Uncordon, d.Drift = idsWhere(v.hosts, v.isCordonedByRun), v.driftByHost()
	case fsm.Encrypt:
		next := v.encryptionPhase()
		d.Encryption = &next
	case fsm.Resources:
		v.fillObjects(d)
		d.Record = v.staleRecord()
	case fsm.Error:
		d.Problems = v.errorProblems(d.Trace)
	case fsm.Nothing:
	}
}

// fillAlso adds what can safely be done although the operator must act somewhere. Upgrades and configuration wait until
// every host is healthy.
func (v *view) fillAlso(d *Decision) {
	d.Restarts, d.Regenerations, d.Restores = v.unitsToRestart(), v.partsToRegenerate(), v.filesToRestore(false)
	if len(d.Restarts)+len(d.Regenerations)+len(d.Restores) > 0 {
		d.Also = append(d.Also, fsm.Repair)
	}
	if v.in.Is.API.Reached != observed.Yes || !v.etcdKnown() || !v.etcd.tally.Holds() || !v.canJoin() {
		return
	}
	if v.fillJoins(d, v.membershipSound()); len(d.Joins) > 0 {
		d.Also = append(d.Also, fsm.Join)
	}
	v.fillObjects(d)
	objects := slices.Concat(d.Addons, d.RemoveAddons, d.CreateMachines, d.UpgradeMachines, d.ControllerFiles,
		d.HelmReleases, d.RemoveReleases, d.Metadata, d.Uncordon, d.StaleNodes, d.System, d.Settings, d.Serving)
	if len(objects) > 0 || d.AutoApproval || d.RemoveKubeProxy {
		d.Also = append(d.Also, fsm.Resources)
	}
}

// fillJoins adds the hosts that join: control-plane hosts only if grow allows it, workers always. No host can join
// without a control-plane host that holds the PKI and has a working API server.
func (v *view) fillJoins(d *Decision, grow bool) {
	source := v.pkiSource()
	if source == "" {
		return
	}
	canCopyPKI := v.in.Is.Hosts[source].PKI == observed.Yes // else there is no host to copy it from
	d.Joins = v.hostsInOrder(func(s *hostState) bool {
		return s.isMissing() && (s.Role == desired.Worker || grow && canCopyPKI)
	})
	if len(d.Joins) > 0 {
		d.Leader = source
		d.Prepare = idsWhere(v.hosts, func(s *hostState) bool { return slices.Contains(d.Joins, s.ID) })
	}
}

func (v *view) fillObjects(d *Decision) {
	d.Addons, d.ControllerFiles = v.staleAddons(), idsWhere(v.hosts, v.lacksControllerFiles)
	d.RemoveAddons, d.CreateMachines, d.UpgradeMachines = v.unwantedAddons(), v.missingMachines(), v.oldMachines()
	d.HelmReleases, d.RemoveReleases = v.staleReleases(), v.undeclaredReleases()
	d.RemoveKubeProxy = v.replacesKubeProxy()
	d.Metadata = idsWhere(v.hosts, v.staleNode)
	d.StaleNodes = v.staleNodes()
	d.Uncordon = idsWhere(v.hosts, v.isCordonedByRun)
	d.AutoApproval, d.Settings, d.Serving = v.autoApproval(), v.staleSettings(), v.waitingForServing()
	if d.System = v.staleSystem(); len(d.System) > 0 {
		d.Leader = v.systemHost()
	}
}

// hostsInOrder returns the hosts that satisfy the predicate, control plane first. Joins that have reached etcd precede
// all others, because nothing else may happen to etcd until they finish.
func (v *view) hostsInOrder(is func(*hostState) bool) []string {
	begun := idsWhere(v.hosts, func(s *hostState) bool { return is(s) && s.inEtcd() })
	return append(begun, idsWhere(v.hosts, func(s *hostState) bool { return is(s) && !s.inEtcd() })...)
}

// installLeader returns the host where an installation begins or continues: one with etcd data, else one with PKI, else
// the manifest's leader. Among equals it is the manifest's leader, else the first.
func (v *view) installLeader() string {
	for _, is := range [...]func(*hostState) bool{
		func(s *hostState) bool { return s.Condition == condition.Partial && s.is.EtcdData == observed.Yes },
		func(s *hostState) bool { return s.Condition == condition.Partial && s.is.PKI == observed.Yes },
	} {
		begun := idsWhere(v.controlPlane(), is)
		if slices.Contains(begun, v.in.Want.Leader().ID) {
			break
		}
		if len(begun) > 0 {
			return begun[0]
		}
	}
	return v.in.Want.Leader().ID
}

// pkiSource returns the control-plane host that provides the PKI: one that holds it and is healthy, else one whose own
// API server works; empty if there is none.
func (v *view) pkiSource() string {
	for _, is := range [...]func(*hostState) bool{
		func(s *hostState) bool { return s.Condition == condition.Healthy && s.is.PKI == observed.Yes },
		func(s *hostState) bool {
			return s.hasJoined() && s.is.PKI == observed.Yes && s.is.APIServer == observed.Yes
		},
		func(s *hostState) bool { return s.reported && s.Condition == condition.Healthy },
	} {
		if found := idsWhere(v.controlPlane(), is); len(found) > 0 {
			return found[0]
		}
	}
	return ""
}

// unitsToRestart returns the units to start again, by host ID.
func (v *view) unitsToRestart() map[string][]string {
	var out map[string][]string
	for i := range v.hosts {
		if s := &v.hosts[i]; s.canStart() {
			if out == nil {
				out = make(map[string][]string)
			}
			out[s.ID] = s.Units
		}
	}
	return out
}

// isOutdated reports whether a component of the member has another version than the desired one, or its upgrade to that
// has begun and not ended: its configuration may still be the old one.
func (v *view) isOutdated(s *hostState) bool {
	want := v.in.Want.KubernetesVersion
	return s.upgradeBegun() || s.kubeletDiffers() || s.runtimeDiffers() ||
		s.Role == desired.ControlPlane &&
			(v.apiServer(s) != want || desired.Missing(s.controllerVersions(), []string{want}) != nil)
}

// kubeletDiffers reports whether the host's kubelet has another version than the desired one. If the Node reports
// another version than the installed program has, the kubelet was not restarted yet.
func (s *hostState) kubeletDiffers() bool {
	stale := s.node != nil && s.node.KubeletVersion != "" && s.node.KubeletVersion != s.wantKubelet
	return stale || s.kubeletVersion() != s.wantKubelet
}

// containerdScheme is the prefix with which a Node reports containerd: "containerd://2.4.2".
const containerdScheme = "containerd://"

// runtimeDiffers reports whether the container runtime has another version than the manifest gives for this host;
// without one, any version will do. If the Node reports another version than the installed program has, the runtime was
// not restarted yet.
func (s *hostState) runtimeDiffers() bool {
	want := s.Versions.Containerd
	if want == "" || s.is.Reach != observed.Reached {
		return false
	}
	runs, said := "", false
	if s.node != nil {
		runs, said = strings.CutPrefix(s.node.Runtime, containerdScheme)
		runs, _, _ = strings.Cut(strings.TrimPrefix(runs, "v"), "+") // a distribution's build
	}
	return s.is.Containerd.Version != want || said && runs != want
}

// upgradeBegun reports whether an upgrade to the host's desired version has begun and not ended. For a worker, any
// version counts: the upgrade to the desired one writes everything that the earlier one wrote.
func (s *hostState) upgradeBegun() bool {
	return s.is.Upgrading != "" && (s.Role == desired.Worker || s.is.Upgrading == s.wantKubelet)
}

// kubeProxy is the app label of kube-proxy's pods.
const kubeProxy = "kube-proxy"

// namesInUse returns the hosts that are not known to dial the desired endpoint, when names are to be dropped.
func (v *view) namesInUse() []problem.Problem {
	if !v.in.DropNames {
		return nil
	}
	var out []problem.Problem
	add := func(who, why string) {
		out = append(out, problem.Problem{
			Code: problem.NamesInUse, Parameters: problem.Parameters{"name": who, "problem": why},
		})
	}
	if !v.isPublished() {
		add(v.in.Want.Name, "its objects still refer to "+v.in.Is.API.Endpoint)
	}
	if e := v.in.Want.Endpoint; e.Later != "" {
		add(v.in.Want.Name, "its endpoint has not moved: "+e.LaterWhy)
	}
	if _, runs := v.in.System[kubeProxy]; runs {
		switch c, compared := v.in.Is.API.Compared[kubeProxy]; {
		case !compared || c.Problem != "":
			add(kubeProxy, "the endpoint that it connects to is unknown")
		case len(c.Settings) > 0:
			add(kubeProxy, "its settings differ from the manifest")
		}
	}
	for i := range v.hosts {
		switch s := &v.hosts[i]; {
		case s.isSilent() || s.reported || !s.inLimit:
			add(s.displayName(), "it was not probed or did not answer")
		case v.dialsElsewhere(s):
			add(s.displayName(), "it connects to "+s.is.Endpoint)
		case s.hasJoined() && s.is.Endpoint == "":
			add(s.displayName(), "it does not report the endpoint that it connects to")
		}
	}
	for i := range v.in.Is.API.Nodes {
		n := &v.in.Is.API.Nodes[i]
		if !slices.ContainsFunc(v.hosts, func(s hostState) bool { return s.node != nil && s.node.Name == n.Name }) {
			add(n.Name, "it is not in the manifest")
		}
	}
	return out
}

// endpointWarnings warns if the endpoint does not answer, depends on one host, or certificates have undesired names.
func (v *view) endpointWarnings() []problem.Problem {
	out := v.endpointIsHost()
	if e := v.in.Want.Endpoint; e.Later != "" {
		out = append(out, endpointChanged(e.String(), e.Later, e.LaterWhy))
	}
	if api := v.in.Is.API; api.EndpointAnswers == observed.No && v.in.Want.Endpoint.Later == "" {
		out = append(out, problem.Problem{Code: problem.EndpointSilent, Parameters: problem.Parameters{
			"endpoint": v.in.Want.Endpoint.String(), "problem": api.EndpointProblem,
		}})
	}
	if v.in.About != nil || v.in.DropNames {
		return out
	}
	for i := range v.controlPlane() {
		s := &v.hosts[i]
		if !s.hasJoined() || s.is.APINames == nil {
			continue
		}
		e := v.in.Want.Endpoint
		wanted := desired.Missing(e.Former, []string{e.At(e.Later).Host})
		former := desired.Missing(wanted, desired.Missing(wanted, s.is.APINames))
		former = append(former, v.in.Want.FormerNames(*s.Host, s.nodeName(), s.is.APINames)...)
		if len(former) > 0 && v.isPublished() {
			out = append(out, problem.Problem{
				Code: problem.NamesFormer, Host: s.ID, Parameters: problem.Parameters{"names": former},
			})
		}
	}
	return out
}

// endpointIsHost warns, before the cluster exists, of an endpoint that fails with one of several control-plane hosts.
func (v *view) endpointIsHost() []problem.Problem {
	if v.hasBegun() || v.cps < 2 {
		return nil
	}
	for _, h := range v.in.Want.ControlPlane {
		if v.in.Want.IsEndpoint(h) {
			return []problem.Problem{{
				Code: problem.EndpointIsHost, Host: h.ID,
				Parameters: problem.Parameters{"endpoint": v.in.Want.Endpoint.Host},
			}}
		}
	}
	return nil
}
