package decide

import (
	"strings"

	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/decide/quorum"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
)

// answerQuestion answers the question of a state.
func (v *view) answerQuestion(s fsm.State) (fsm.Event, string) {
	switch s {
	case fsm.AskHosts:
		return v.askHosts()
	case fsm.AskProvisioned:
		return v.askProvisioned()
	case fsm.AskControlPlane:
		return v.askControlPlane()
	case fsm.AskQuorum:
		return v.askQuorum()
	case fsm.AskRepairable:
		return v.askRepairable()
	case fsm.AskEndpoint:
		return v.askEndpoint()
	case fsm.AskMissing:
		return v.askMissing()
	case fsm.AskWorkers:
		return v.askWorkers()
	case fsm.AskVersion:
		return v.askVersion()
	case fsm.AskConfiguration:
		return v.askConfiguration()
	case fsm.AskEncryption:
		return v.askEncryption()
	default: // AskObjects
		return v.askObjects()
	}
}

func (v *view) askHosts() (fsm.Event, string) {
	if len(v.unfit) > 0 {
		p := v.unfit[0]
		if p.Host == "" {
			return fsm.OnUnfit, p.Text()
		}
		return fsm.OnUnfit, v.nameOf(p.Host) + ": " + p.Text()
	}
	return fsm.OnFit, "all hosts are fit"
}

// askProvisioned answers "no" only if every control-plane host answered and is empty or an unfinished installation, and
// no installation ever finished: an unreachable cluster is not an absent one.
func (v *view) askProvisioned() (fsm.Event, string) {
	if joined := joinedNames(v.controlPlane(), (*hostState).hasJoined); joined != "" {
		return fsm.OnYes, joined + ": data of this cluster exists"
	}
	if fenced := v.recoveringHosts(); fenced != "" {
		return fsm.OnYes, fenced + ": a recovery of this cluster is incomplete"
	}
	if silent := joinedNames(v.controlPlane(), (*hostState).isSilent); silent != "" {
		return fsm.OnNotKnown, silent + " may hold this cluster: an unreachable host does not count as empty"
	}
	if v.onlyWorkersLeft() {
		return fsm.OnYes, joinedNames(v.workers(), (*hostState).hasJoined) +
			" joined this cluster, whose control plane no longer exists"
	}
	if at := v.otherEndpointReady(); at != "" && len(idsWhere(v.controlPlane(), (*hostState).holdsData)) == 0 {
		return fsm.OnYes, "an API server is ready at " + at + ", although no control-plane host of the manifest " +
			"holds its cluster"
	}
	if begun := joinedNames(v.controlPlane(), func(s *hostState) bool {
		return s.Condition == condition.Partial
	}); begun != "" {
		return fsm.OnNo, begun + ": installation is incomplete"
	}
	if v.in.Is.API.Reached == observed.Yes || v.etcd.listed {
		return fsm.OnYes, "a control plane answers, although no control-plane host of the manifest holds it"
	}
	return fsm.OnNo, "every control-plane host answered and is empty"
}

// onlyWorkersLeft reports whether workers belong to a cluster, but no control-plane host has any etcd data left.
func (v *view) onlyWorkersLeft() bool {
	begun := idsWhere(v.controlPlane(), func(s *hostState) bool { return s.is.EtcdData == observed.Yes })
	return len(begun) == 0 && len(idsWhere(v.workers(), (*hostState).hasJoined)) > 0
}

func (v *view) askControlPlane() (fsm.Event, string) {
	wrong := v.controlPlaneFaults()
	if len(wrong) > 0 {
		return fsm.OnUnhealthy, strings.Join(wrong, "; ")
	}
	return fsm.OnHealthy, joinedNames(v.controlPlane(), (*hostState).hasJoined) + " healthy, " + v.etcd.tally.String()
}

// controlPlaneFaults returns everything that is wrong with the control plane as a whole. Hosts that have not joined yet
// are not faults.
func (v *view) controlPlaneFaults() []string {
	var wrong []string
	if !v.hasBegun() {
		wrong = append(wrong, "no control-plane host holds this cluster")
	}
	for i := range v.controlPlane() {
		s := &v.hosts[i]
		if s.isSilent() || s.hasJoined() && s.Condition != condition.Healthy && !s.midUpgrade {
			wrong = append(wrong, s.displayName()+" is "+string(s.Condition)+" ("+s.Reasons[0].Text()+")")
		}
	}
	if v.in.Is.API.Reached != observed.Yes {
		wrong = append(wrong, "the API does not answer")
	}
	if !v.etcdKnown() {
		wrong = append(wrong, "the etcd members are unknown")
	}
	if !v.etcd.tally.Holds() {
		wrong = append(wrong, v.etcd.tally.String())
	}
	for _, s := range v.etcd.orphans {
		if !s.isLiving() {
			wrong = append(wrong, s.describeState())
		}
	}
	return wrong
}

// askQuorum counts members as dead unless they are known to be healthy. Voters on hosts with stopped units or expired
// certificates return when these are started or renewed.
func (v *view) askQuorum() (fsm.Event, string) {
	if fenced := v.recoveringHosts(); fenced != "" {
		return fsm.OnLost, "a recovery has stopped etcd on " + fenced + " and is incomplete"
	}
	t := v.etcd.tally
	switch back := (quorum.Tally{Voters: t.Voters, Alive: t.Alive + v.etcd.startable}); {
	case t.Holds():
		return fsm.OnSatisfied, t.String()
	case back.Holds():
		return fsm.OnRecoverable,
			t.String() + "; with stopped units started and missing files regenerated, " + back.String()
	}
	if t.Voters == 0 {
		return fsm.OnLost, "no control-plane host holds an etcd member"
	}
	return fsm.OnLost, t.String()
}

func (v *view) askRepairable() (fsm.Event, string) {
	if stopped := joinedNames(v.controlPlane(), (*hostState).canStart); stopped != "" {
		return fsm.OnUnitsStopped, "stopped units on " + stopped + " can be started again"
	}
	if repairable := joinedNames(v.controlPlane(), v.canRegenerate); repairable != "" {
		return fsm.OnRegenerable, "what is missing on " + repairable + " can be regenerated"
	}
	if edited := joinedNames(v.controlPlane(), v.brokenByEdits); edited != "" {
		return fsm.OnEdited, "changed files on " + edited + " can be restored"
	}
	if dead := v.membersToRemove(); len(dead) > 0 {
		return fsm.OnMemberDead, dead[0].Why
	}
	if lost := v.hostsToQuarantine(); len(lost) > 0 {
		return fsm.OnDataLost, v.nameOf(lost[0]) + " can leave etcd and join again"
	}
	return fsm.OnNotRepairable,
		"no unit to start, nothing to regenerate, and no dead member to remove: the operator must act"
}

func (v *view) askMissing() (fsm.Event, string) {
	missing := joinedNames(v.hosts, (*hostState).isMissing)
	switch {
	case missing == "":
		return fsm.OnNone, "no host is missing"
	case !v.canJoin():
		return fsm.OnMissingLater,
			missing + " not joined; hosts join only a control plane that runs " + v.in.Want.KubernetesVersion
	}
	return fsm.OnMissing, missing + " not joined"
}

// askWorkers considers only workers inside the limit: the others stop nothing, because nothing is done to them.
func (v *view) askWorkers() (fsm.Event, string) {
	if stopped := joinedNames(v.workers(), (*hostState).canStart); stopped != "" {
		return fsm.OnUnitsStopped, "stopped units on " + stopped + " can be started again"
	}
	if repairable := joinedNames(v.workers(), v.canRegenerate); repairable != "" {
		return fsm.OnRegenerable, "what is missing on " + repairable + " can be regenerated"
	}
	if edited := joinedNames(v.workers(), v.brokenByEdits); edited != "" {
		return fsm.OnEdited, "changed files on " + edited + " can be restored"
	}
	unhealthy := func(s *hostState) bool {
		return s.inLimit && !s.midUpgrade && (s.isSilent() || s.hasJoined() && s.Condition != condition.Healthy)
	}
	if who := joinedNames(v.workers(), unhealthy); who != "" {
		return fsm.OnUnhealthy, who + " not healthy: the operator must act"
	}
	return fsm.OnHealthy, "no worker is unhealthy"
}

func (v *view) askVersion() (fsm.Event, string) {
	event, why, _ := v.versionRelation()
	return event, why
}

func (v *view) askConfiguration() (fsm.Event, string) {
	if edited := joinedNames(v.hosts, v.canRestore); edited != "" {
		return fsm.OnEdited, "files on " + edited + " or their permissions were changed, and can be restored"
	}
	if renewals := v.certificatesToRenew(); len(renewals) > 0 {
		return fsm.OnEnding, "certificates of " + joinedNames(v.hosts, func(s *hostState) bool {
			return renewals[s.ID] != nil
		}) + " expire soon"
	}
	drift := v.driftByHost()
	if len(drift) == 0 {
		return fsm.OnNone, "hosts have the desired configuration"
	}
	return fsm.OnDiffers,
		"configuration of " + joinedNames(v.hosts, func(s *hostState) bool { return drift[s.ID] != nil }) + " differs"
}

func (v *view) askObjects() (fsm.Event, string) {
	var stale []string
	if addons := v.staleAddons(); len(addons) > 0 {
		stale = append(stale, "addon "+problem.List(addons))
	}
	if lacking := joinedNames(v.hosts, v.lacksControllerFiles); lacking != "" {
		stale = append(stale, "the controller files on "+lacking)
	}
	if addons := v.unwantedAddons(); len(addons) > 0 {
		stale = append(stale, "addon "+problem.List(addons)+", which is no longer desired,")
	}
	if releases := append(v.staleReleases(), v.undeclaredReleases()...); len(releases) > 0 {
		stale = append(stale, "Helm release "+problem.List(releases))
	}
	if v.replacesKubeProxy() {
		stale = append(stale, "kube-proxy, whose work the network plugin does,")
	}
	if machines := append(v.missingMachines(), v.oldMachines()...); len(machines) > 0 {
		stale = append(stale, "MachineDeployment "+problem.List(machines))
	}
	if apps := v.staleSystem(); len(apps) > 0 {
		stale = append(stale, problem.List(apps))
	}
	if apps := v.staleSettings(); len(apps) > 0 {
		stale = append(stale, "settings of "+problem.List(apps))
	}
	if nodes := joinedNames(v.hosts, v.staleNode); nodes != "" {
		stale = append(stale, "labels, annotations or taints on "+nodes)
	}
	if closed := joinedNames(v.hosts, v.isCordonedByRun); closed != "" {
		stale = append(stale, closed+", cordoned by an interrupted run,")
	}
	if nodes := v.staleNodes(); len(nodes) > 0 {
		stale = append(stale, "Node "+problem.List(nodes)+", which belongs to no host,")
	}
	if nodes := v.waitingForServing(); len(nodes) > 0 {
		stale = append(stale, "serving certificates of "+problem.List(nodes))
	}
	if v.autoApproval() {
		stale = append(stale, "automatic approval of Node certificates")
	}
	if v.staleRecord() {
		stale = append(stale, "the manifest record in the cluster")
	}
	if len(stale) == 0 {
		return fsm.OnCurrent, "addons, nodes and record are as desired"
	}
	return fsm.OnStale, strings.Join(stale, "; ") + " not as desired"
}

func (s *hostState) hasJoined() bool { return s.Condition.Joined() }

func (s *hostState) isSilent() bool { return s.Condition.Silent() }

func (s *hostState) canStart() bool {
	return s.inLimit && s.Condition == condition.Restartable && !s.midUpgrade
}

func (s *hostState) isMissing() bool { return s.inLimit && s.Condition.Installable() }

// nameOf returns the display name of the host with that ID.
func (v *view) nameOf(id string) string {
	for i := range v.hosts {
		if v.hosts[i].ID == id {
			return v.hosts[i].displayName()
		}
	}
	return id
}
