package condition

import (
	"slices"

	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
)

// The systemd units that repairs start.
const (
	UnitContainerd = "containerd"
	UnitKubelet    = "kubelet"
)

// assessHealth refines the assessment of a member. Missing parts come first, because no start helps without them.
// Stopped units come next, because they explain the rest; then failing components; then what is not Ready or not known.
func assessHealth(role desired.Role, is *observed.Host, cx HostContext, a Assessment) Assessment {
	if role == desired.ControlPlane && StaleEpoch(is, cx.Epoch) {
		a.Condition, a.Reasons = Rejoinable, oneReason(problem.StaleEpoch, nil)
		return a
	}
	if repair := assessRepairable(role, is, cx, a); repair != nil {
		return *repair
	}
	if is.KubeletConf == observed.No {
		a.Condition, a.Reasons = Broken, oneReason(problem.KubeletConfMissing, nil)
		return a
	}
	if a.Units, a.Reasons = stoppedUnits(is); len(a.Units) > 0 {
		a.Condition = Restartable
		return a
	}
	failed, silent := componentHealth(role, is)
	if role == desired.ControlPlane {
		f, s := etcdMember(cx)
		failed, silent = append(failed, f...), append(silent, s...)
	}
	if cx.API == observed.Yes && cx.Node == nil {
		failed = append(failed, problem.Problem{Code: problem.NodeMissing})
	}
	if len(failed) > 0 {
		a.Condition, a.Reasons = Broken, slices.Concat(failed, silent)
		return a
	}
	ready, why := nodeReadiness(cx)
	if !ready {
		silent = append(silent, problem.Problem{Code: why})
	}
	switch {
	case len(silent) > 0:
		a.Condition, a.Reasons = Unready, silent
	case why != "":
		a.Reasons = oneReason(why, nil)
	}
	return a
}

// stoppedUnits lists the units to start again, in order, and why. Units that systemd did not report are left out.
func stoppedUnits(is *observed.Host) (units []string, why []problem.Problem) {
	if !is.Containerd.Active && is.Containerd.Known() {
		units = append(units, UnitContainerd, UnitKubelet)
		why = append(why, problem.Problem{Code: problem.ContainerdStopped, Parameters: stateOf(is.Containerd)})
	}
	switch {
	case !is.Kubelet.Active && is.Kubelet.Known():
		why = append(why, problem.Problem{Code: problem.KubeletStopped, Parameters: stateOf(is.Kubelet)})
	case is.Healthz == observed.No:
		why = append(why, problem.Problem{Code: problem.KubeletUnhealthy})
	default:
		return units, why
	}
	if len(units) == 0 {
		units = append(units, UnitKubelet)
	}
	return units, why
}

// stateOf returns the state of a unit, as systemd names it.
func stateOf(u observed.Unit) problem.Parameters {
	if !u.Installed {
		return problem.Parameters{"state": "not installed"}
	}
	return problem.Parameters{"state": u.State}
}

// componentProblem returns a problem of one component.
func componentProblem(code problem.Code, component string) problem.Problem {
	return problem.Problem{Code: code, Parameters: problem.Parameters{"component": component}}
}

// componentHealth returns the components of the host that fail, and those with unknown health.
func componentHealth(role desired.Role, is *observed.Host) (failed, silent []problem.Problem) {
	if !is.Containerd.Known() {
		silent = append(silent, componentProblem(problem.ComponentUnknown, "containerd"))
	}
	if is.Healthz == observed.Unknown || !is.Kubelet.Known() {
		silent = append(silent, componentProblem(problem.ComponentUnknown, "kubelet"))
	}
	if role != desired.ControlPlane {
		return nil, silent
	}
	if old := expiredCertificates(is, IsAuthority); old != nil {
		failed = append(failed, problem.Problem{
			Code:       problem.CAExpired,
			Parameters: problem.Parameters{"certificates": old},
		})
	}
	if is.PKI == observed.No {
		failed = append(failed, problem.Problem{Code: problem.CAKeyMissing})
	}
	if is.EtcdData == observed.No {
		failed = append(failed, problem.Problem{Code: problem.EtcdDataMissing})
	}
	for _, c := range [...]struct {
		name   string
		health observed.Tri
	}{
		{"API server", is.APIServer}, {"etcd", is.EtcdHealth},
		{"controller manager", is.ControllerManager}, {"scheduler", is.Scheduler},
	} {
		switch c.health {
		case observed.No:
			failed = append(failed, componentProblem(problem.ComponentUnhealthy, c.name))
		case observed.Unknown:
			silent = append(silent, componentProblem(problem.ComponentUnknown, c.name))
		case observed.Yes:
		}
	}
	return failed, silent
}

// etcdMember returns what is wrong with the host's etcd member according to the member list.
func etcdMember(cx HostContext) (failed, silent []problem.Problem) {
	if cx.Etcd != observed.Yes {
		return nil, nil
	}
	if cx.Member == nil {
		return oneReason(problem.EtcdMemberMissing, nil), nil
	}
	switch cx.Member.Healthy {
	case observed.No:
		failed = append(failed, problem.Problem{Code: problem.EtcdMemberDown})
	case observed.Unknown:
		silent = append(silent, problem.Problem{Code: problem.EtcdMemberUnknown})
	case observed.Yes:
	}
	if len(cx.Member.Alarms) > 0 {
		silent = append(silent, problem.Problem{
			Code:       problem.EtcdAlarm,
			Parameters: problem.Parameters{"alarms": cx.Member.Alarms},
		})
	}
	return failed, silent
}

// nodeReadiness reports whether the Node is as Ready as it can be, and otherwise why not.
func nodeReadiness(cx HostContext) (ok bool, why problem.Code) {
	switch {
	case cx.API != observed.Yes:
		return false, problem.NodeUnknown
	case cx.Node.Ready == observed.Yes:
		return true, ""
	case cx.NoCNI:
		return true, problem.NetworkPluginPending
	case cx.Node.Ready == observed.No:
		return false, problem.NodeNotReady
	}
	return false, problem.NodeStatusUnknown
}
