package decide

import (
	"slices"

	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/decide/match"
	"kubeone/internal/decide/preflight"
	"kubeone/internal/decide/skew"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
)

// WorkerInput is everything that a decision about one worker of a Machine depends on. Want has that worker only, under
// the Machine's ID, and no control plane. In Is, only this host and the API count.
type WorkerInput struct {
	Input
	// MachineDeleted says that the Machine is deleted, so its host must be reset. GivenUp says that the caller no
	// longer waits for the host to answer.
	MachineDeleted, GivenUp bool
	// APIServers holds the versions of all API servers that its kubelet may meet; none if one of them is not known.
	APIServers []string
	// Turn says whether its host may get other settings now.
	Turn Turn
}

// Turn says whether a host may get other settings. The caller manages all Machines and decides the order.
type Turn string

// The turns.
const (
	NotYet Turn = ""    // another host's turn
	Now    Turn = "now" // its own turn
	// settings failed on it or on too many others: it does not get them with new versions either
	Refused Turn = "refused"
)

// Worker asks the questions of the state machine about one worker. Like Decide, it never fails.
func Worker(in WorkerInput) Decision {
	w := newWorker(in)
	d := Decision{Hosts: map[string]condition.Assessment{w.s.ID: w.s.Assessment}, Warnings: w.warnings}
	d.Route, d.Trace = fsm.Worker.Walk(w.answerQuestion)
	switch d.Route {
	case fsm.Error, fsm.Wait:
		d.Problems = w.problems
	case fsm.Join:
		d.Joins, d.Prepare = []string{w.s.ID}, []string{w.s.ID}
	case fsm.Repair:
		w.fillRepair(&d)
	case fsm.Upgrade:
		d.Upgrades, d.Drift = []string{w.s.ID}, w.driftByHost()
	case fsm.Reconfigure:
		d.Drift = w.driftByHost()
		if d.Trace[len(d.Trace)-1].State == fsm.AskCredentials {
			d.Drift = map[string][]string{w.s.ID: {desired.CredentialsConfiguration}}
		}
	case fsm.Resources:
		d.Metadata, d.Uncordon = w.idIf(w.isStale()), w.idIf(w.isCordonedByRun())
	}
	return d
}

// worker is a WorkerInput with the facts that the questions need, computed once.
type worker struct {
	in *WorkerInput
	s  hostState
	// problems says why the worker is not as desired: the problems of the last answer that has any.
	problems, warnings []problem.Problem
}

func newWorker(in WorkerInput) *worker {
	w := &worker{in: &in}
	w.s.Host, w.s.inLimit = &in.Want.Workers[0], true
	w.s.is, w.s.wantKubelet = in.Is.Hosts[w.s.ID], in.Want.KubeletVersion(in.Want.Workers[0])
	cx := condition.HostContext{
		Cluster: in.Want.Name, Machine: true, CA: in.CA, Version: in.Want.KubernetesVersion, API: in.Is.API.Reached,
		Etcd: observed.Unknown,
	}
	if cx.API == observed.Yes {
		w.s.node = match.Node(in.Is.API.Nodes, w.s.Host, &w.s.is)
		cx.Node = w.s.node
	}
	w.s.Assessment = condition.Classify(w.s.Host, &w.s.is, cx)
	w.s.midUpgrade = w.canResumeUpgrade()
	return w
}

func (w *worker) answerQuestion(s fsm.State) (fsm.Event, string) {
	switch s {
	case fsm.AskWanted:
		if w.in.MachineDeleted {
			return fsm.OnNo, "the machine is no longer desired"
		}
		return fsm.OnYes, "the machine is desired"
	case fsm.AskReturned:
		return w.askReturned()
	case fsm.AskHost:
		return w.askHost()
	case fsm.AskMember:
		return w.askJoined()
	case fsm.AskMayJoin:
		return w.askMayJoin()
	case fsm.AskHealthy:
		return w.askHealthy()
	case fsm.AskCredentials:
		return w.askCredentials()
	case fsm.AskVersions:
		return w.askVersions()
	case fsm.AskNode:
		return w.askNode()
	default: // AskConfiguration
		return w.askConfiguration()
	}
}

// askReturned reports what is left of a machine that is no longer desired. An unresponsive host does not count as bare.
func (w *worker) askReturned() (fsm.Event, string) {
	name := w.s.displayName()
	switch {
	case w.s.is.Reach == observed.Unreachable && w.in.Is.API.Reached == observed.Yes && w.in.GivenUp:
		if !w.ownsNode() {
			return fsm.OnYes, name + " does not answer and is given up, and it has no Node"
		}
		return fsm.OnGivenUp, name + " does not answer and is given up"
	case w.s.is.Reach != observed.Reached, w.s.Condition == condition.Unclear && !w.s.is.SaysControlPlane():
		return w.answerWith(fsm.OnNotKnown, name+" may still be a worker", w.s.Reasons...)
	case w.in.Is.API.Reached != observed.Yes:
		return w.answerWith(fsm.OnNotKnown, "the API does not answer, so it is unknown whether "+name+" has a Node",
			problem.Problem{Code: problem.NodeStatusUnknown, Host: w.s.ID})
	case w.claimedBy() != "":
		return fsm.OnForeign, name + " is " + w.claimedBy() + " now"
	case w.s.Condition == condition.Foreign:
		return fsm.OnForeign, name + " holds foreign data"
	case w.s.is.SaysControlPlane():
		return fsm.OnForeign, name + " claims to be a control-plane host"
	case w.s.Condition == condition.Empty && w.s.is.Marker == nil && !w.s.is.Kubelet.Installed && !w.ownsNode():
		return fsm.OnYes, name + " is bare and has no Node"
	}
	return fsm.OnNo, name + " is " + string(w.s.Condition)
}

// ownsNode reports whether a Node exists and belongs to this Machine.
func (w *worker) ownsNode() bool {
	return w.s.node != nil && match.OwnsAsMachine(w.s.Host, &w.s.is, w.s.node)
}

// claimedBy returns the owner that the host itself names, if it is not this Machine; "" if it is, or there is none.
func (w *worker) claimedBy() string {
	m := w.s.is.Marker
	switch {
	case m == nil || m.Cluster == w.in.Want.Name && m.ID == w.s.ID:
		return ""
	case m.Cluster != w.in.Want.Name:
		return "cluster " + m.Cluster + "'s"
	case m.Machine != "":
		return "Machine " + m.Machine + "'s"
	case m.ID == "":
		return "the manifest's"
	}
	return "the manifest's, which calls it host " + m.ID
}

// askHost asks whether the host can run the desired machine.
func (w *worker) askHost() (fsm.Event, string) {
	name := w.s.displayName()
	if owner := w.claimedBy(); owner != "" && w.s.Condition != condition.Foreign {
		return w.answerWith(fsm.OnUnfit, name+" is "+owner, problem.Problem{
			Code: problem.HostClaimed, Host: w.s.ID, Parameters: problem.Parameters{"owner": owner},
		})
	}
	switch {
	case w.s.is.SaysControlPlane():
		return w.answerWith(fsm.OnUnfit, name+" claims to be a control-plane host",
			problem.Problem{Code: problem.ControlPlaneClaimed, Host: w.s.ID})
	case w.s.Condition == condition.Foreign:
		return w.answerWith(fsm.OnUnfit, name+" is foreign", w.s.Reasons...)
	case w.s.isSilent():
		return w.answerWith(fsm.OnNotKnown, "no information about "+name, w.s.Reasons...)
	}
	if n := w.s.node; n != nil && !w.ownsNode() && !w.s.hasJoined() {
		return w.answerWith(fsm.OnUnfit, "the Node "+n.Name+" belongs to another host", problem.Problem{
			Code: problem.NodeOfAnother, Host: w.s.ID, Parameters: problem.Parameters{"node": n.Name},
		})
	}
	if v := w.s.Versions.Containerd; v != "" && skew.Containerd(w.s.wantKubelet, v) != nil {
		return w.answerWith(fsm.OnUnfit, "the kubelet does not work with the container runtime", problem.Problem{
			Code: problem.ContainerdRefused, Host: w.s.ID,
			Parameters: problem.Parameters{"kubelet": w.s.wantKubelet, "containerd": v},
		})
	}
	if w.s.Condition.Installable() {
		unfit, warnings := preflight.Check(w.s.Host, &w.s.is, w.s.wantKubelet,
			w.s.Condition == condition.Empty && !w.s.Resume)
		w.warnings = append(w.warnings, warnings...)
		if len(unfit) > 0 {
			return w.answerWith(fsm.OnUnfit, name+" is not fit", unfit...)
		}
	}
	if p := w.s.refusesCgroups(); p != nil && w.s.hasJoined() {
		return w.answerWith(fsm.OnUnfit, "the desired kubelet would not start on "+name, *p)
	}
	return fsm.OnFit, name + " answers and is fit"
}

// askJoined asks whether the host has joined the cluster.
func (w *worker) askJoined() (fsm.Event, string) {
	if w.s.hasJoined() {
		return fsm.OnYes, w.s.displayName() + " has joined"
	}
	return fsm.OnNo, w.s.displayName() + " is " + string(w.s.Condition)
}

// askMayJoin asks whether the desired kubelet works with every API server.
func (w *worker) askMayJoin() (fsm.Event, string) {
	if event, why := w.answerSkew(); event != "" {
		return event, why
	}
	if w.acceptsAnyToken() {
		return w.answerWith(fsm.OnNotKnown, "a join token would be accepted for any Node", w.joinTokenProblem()...)
	}
	return fsm.OnYes, "kubelet " + w.s.wantKubelet + " works with every API server"
}

// acceptsAnyToken reports whether kubeadm's rule that makes any join token good for any Node exists or may exist. Only
// the holder of the cluster's lock removes it.
func (w *worker) acceptsAnyToken() bool { return w.in.Is.API.AutoApproval != observed.No }

// joinTokenProblem returns a problem if that rule exists or may exist, and nil otherwise.
func (w *worker) joinTokenProblem() []problem.Problem {
	if !w.acceptsAnyToken() {
		return nil
	}
	return []problem.Problem{{Code: problem.JoinTokensForAny, Host: w.s.ID}}
}

// answerSkew returns the answer if the desired kubelet does not work with every API server, or that is not known; "" if
// it does. While the control plane is being upgraded, the problem is temporary.
func (w *worker) answerSkew() (fsm.Event, string) {
	if w.in.Is.API.Reached != observed.Yes || len(w.in.APIServers) == 0 {
		return w.answerWith(fsm.OnNotKnown, "the versions of the API servers are not known",
			problem.Problem{Code: problem.APIServerVersionUnknown})
	}
	want, refusing := w.s.wantKubelet, w.refusingAPIServers()
	if len(refusing) == 0 {
		return "", ""
	}
	p := problem.Problem{
		Code: problem.KubeletVersionRefused, Host: w.s.ID,
		Parameters: problem.Parameters{"kubelet": want, "apiServer": refusing[0]},
	}
	if len(refusing) < len(w.in.APIServers) {
		return w.answerWith(fsm.OnNotKnown, "the control plane is being upgraded: kubelet "+want+
			" does not work with API server "+refusing[0], p)
	}
	return w.answerWith(fsm.OnSkew, "kubelet "+want+" does not work with API server "+refusing[0], p)
}

// refusingAPIServers returns the versions of API servers that do not work with the desired kubelet.
func (w *worker) refusingAPIServers() []string {
	want := w.s.wantKubelet
	return slices.DeleteFunc(slices.Clone(w.in.APIServers), func(api string) bool {
		return skew.Check(api, want) == nil && !skew.Newer(want, api)
	})
}

func (w *worker) askHealthy() (fsm.Event, string) {
	name := w.s.displayName()
	switch {
	case w.s.midUpgrade, w.s.Condition == condition.Healthy:
		return fsm.OnHealthy, name + " is healthy, or its upgrade repairs it"
	case w.s.Condition == condition.Restartable:
		return fsm.OnUnitsStopped, "stopped units on " + name + " can be started again"
	case w.s.Condition == condition.Regenerable && w.in.Is.API.Reached == observed.Yes && !w.acceptsAnyToken():
		return fsm.OnRegenerable, "what is missing on " + name + " can be regenerated"
	case len(w.restorableFiles()) > 0:
		return fsm.OnEdited, "changed files on " + name + " can be restored"
	}
	return w.answerWith(fsm.OnUnhealthy, name+" is "+string(w.s.Condition),
		slices.Concat(w.s.Reasons, w.joinTokenProblem())...)
}

// restorableFiles returns the host's restorable files. During an upgrade there are none, because it writes them.
func (w *worker) restorableFiles() []string {
	if w.s.upgradeBegun() {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(w.s.is.Restorable), func(path string) bool {
		return !condition.IsRestored(path)
	})
}

// askCredentials asks whether the host has the desired credentials for registries and proxies. These wait for no turn
// and no versions, because others may know the old ones. A change that has begun uploads them itself, and so does a
// change of settings whose turn it is.
func (w *worker) askCredentials() (fsm.Event, string) {
	uploadedByOtherChange := w.s.upgradeBegun() || w.in.Turn == Now && !w.isOutdated()
	if len(w.s.is.CredentialsToChange()) > 0 && !uploadedByOtherChange {
		return fsm.OnDiffers, w.s.displayName() + ": credentials differ from the desired ones"
	}
	return fsm.OnSame, w.s.displayName() + " has the desired credentials"
}

func (w *worker) askVersions() (fsm.Event, string) {
	name := w.s.displayName()
	if !w.isOutdated() {
		return fsm.OnSame, name + " has the desired versions"
	}
	if event, why := w.answerSkew(); event != "" {
		return event, why
	}
	if w.in.Turn == Refused && len(w.driftByHost()) > 0 && !w.s.upgradeBegun() {
		return w.answerWith(fsm.OnLater,
			"with other versions "+name+" would also get settings that failed on other hosts",
			w.laterProblem())
	}
	return fsm.OnDiffers, name + ": versions differ from the desired ones"
}

// isOutdated reports whether the kubelet or container runtime differs from the desired one, or a change to that has
// begun and not ended.
func (w *worker) isOutdated() bool {
	return w.s.upgradeBegun() || w.s.kubeletDiffers() || w.s.runtimeDiffers()
}

// canResumeUpgrade reports whether a change of versions has begun and resuming it may repair the host. A change to
// versions that are refused, or must wait, does not count.
func (w *worker) canResumeUpgrade() bool {
	return w.s.upgradeBegun() && len(w.refusingAPIServers()) == 0 && w.s.isFixedByUpgrade() &&
		w.in.Is.API.Reached == observed.Yes &&
		w.s.is.Containerd.Active && w.s.is.KubeletConf == observed.Yes
}

func (w *worker) askNode() (fsm.Event, string) {
	if w.isStale() || w.isCordonedByRun() {
		return fsm.OnStale, "labels, annotations, taints or the cordon on " + w.s.displayName() + " are not as desired"
	}
	return fsm.OnCurrent, "the Node of " + w.s.displayName() + " is as desired"
}

// askConfiguration asks whether the host has the desired settings. Faults of its Node come first, because they need not
// wait for other hosts.
func (w *worker) askConfiguration() (fsm.Event, string) {
	name := w.s.displayName()
	switch {
	case len(w.driftByHost()) == 0:
		return fsm.OnNone, name + " has the desired settings"
	case w.in.Turn != Now:
		return w.answerWith(fsm.OnLater, name+" does not have the desired settings, and it is not its turn",
			w.laterProblem())
	}
	return fsm.OnDiffers, name + " does not have the desired settings"
}

// driftByHost returns, by host ID, the sorted names of configurations that differ from the desired ones; nil if none
// does.
func (w *worker) driftByHost() map[string][]string {
	names := w.s.driftedNames(w.in.Config[w.s.ID], w.in.Want.Firewall)
	if len(names) == 0 {
		return nil
	}
	return map[string][]string{w.s.ID: names}
}

func (w *worker) laterProblem() problem.Problem {
	return problem.Problem{Code: problem.SettingsLater, Host: w.s.ID}
}

func (w *worker) isStale() bool {
	n := w.s.node
	return n != nil && (differsFrom(w.s.Labels, n.Labels) || differsFrom(w.s.Annotations, n.Annotations) ||
		taintsDiffer(&w.s))
}

// isCordonedByRun reports whether an interrupted run left the Node cordoned.
func (w *worker) isCordonedByRun() bool {
	return w.s.node != nil && w.s.node.Annotations[observed.CordonAnnotation] != ""
}

// fillRepair fills in one repair at a time, in the order of the questions.
func (w *worker) fillRepair(d *Decision) {
	switch d.Trace[len(d.Trace)-1].Event {
	case fsm.OnUnitsStopped:
		d.Restarts = map[string][]string{w.s.ID: w.s.Units}
	case fsm.OnRegenerable:
		d.Regenerations = map[string][]string{w.s.ID: w.s.Parts}
	default:
		d.Restores = map[string][]string{w.s.ID: w.restorableFiles()}
	}
}

// answerWith records the problems of an answer.
func (w *worker) answerWith(event fsm.Event, why string, problems ...problem.Problem) (fsm.Event, string) {
	w.problems = problems
	return event, why
}

// idIf returns a slice with the worker's ID if cond is true, and nil otherwise.
func (w *worker) idIf(cond bool) []string {
	if cond {
		return []string{w.s.ID}
	}
	return nil
}
