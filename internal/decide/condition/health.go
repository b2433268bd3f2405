package condition

import (
	"slices"

	"kubeone/internal/desired"
	"kubeone/internal/observed"
	"kubeone/internal/problem"
)

// The systemd units that repair starts again.
const (
	unitContainerd = "containerd"
	unitKubelet    = "kubelet"
)

// health refines the assessment of a member. What it lacks and can get again comes first, because no start helps without
// it; then stopped units, because they explain the rest; then components that fail; then what is not Ready or not known.
func health(role desired.Role, is *observed.Host, cx HostContext, a Assessment) Assessment {
	if old := StaleEpoch(is, cx); old != "" && role == desired.ControlPlane {
		a.Condition, a.Reasons = Rejoinable, []string{old}
		return a
	}
	if mend := repairable(role, is, cx, a); mend != nil {
		return *mend
	}
	if is.KubeletConf == observed.No {
		a.Condition, a.Reasons = Broken, []string{"was a member, but its kubelet.conf is gone"}
		return a
	}
	if a.Units, a.Reasons = stopped(is); len(a.Units) > 0 {
		a.Condition = Restartable
		return a
	}
	failed, silent := components(role, is)
	if role == desired.ControlPlane {
		f, s := etcdMember(cx)
		failed, silent = append(failed, f...), append(silent, s...)
	}
	if cx.API == observed.Yes && cx.Node == nil {
		failed = append(failed, "has no Node object in the cluster")
	}
	if len(failed) > 0 {
		a.Condition, a.Reasons = Broken, slices.Concat(failed, silent)
		return a
	}
	ready, why := readiness(cx)
	if !ready {
		silent = append(silent, why)
	}
	switch {
	case len(silent) > 0:
		a.Condition, a.Reasons = Unready, silent
	case why != "":
		a.Reasons = []string{why}
	}
	return a
}

// stopped names the units that have to be started again, in order, and why.
func stopped(is *observed.Host) (units, reasons []string) {
	if !is.Containerd.Active {
		units = append(units, unitContainerd, unitKubelet)
		reasons = append(reasons, "containerd is not running"+stateOf(is.Containerd))
	}
	switch {
	case !is.Kubelet.Active:
		reasons = append(reasons, "kubelet is not running"+stateOf(is.Kubelet))
	case is.Healthz == observed.No:
		reasons = append(reasons, "kubelet does not answer its health check")
	default:
		return units, reasons
	}
	if len(units) == 0 {
		units = append(units, unitKubelet)
	}
	return units, reasons
}

func stateOf(u observed.Unit) string {
	switch {
	case !u.Installed:
		return " (not installed)"
	case u.State == "":
		return ""
	}
	return " (" + u.State + ")"
}

// components names the components of the host that fail, and those that did not say how they are.
func components(role desired.Role, is *observed.Host) (failed, silent []string) {
	if is.Healthz == observed.Unknown {
		silent = append(silent, "kubelet: health not known")
	}
	if role != desired.ControlPlane {
		return nil, silent
	}
	if old := expired(is, authority); old != nil {
		failed = append(failed, "expired: the CA "+problem.List(old)+", with all that it signed")
	}
	if is.PKI == observed.No {
		failed = append(failed, "the cluster CA's key is gone")
	}
	if is.EtcdData == observed.No {
		failed = append(failed, "its etcd data is gone")
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
			failed = append(failed, c.name+" fails its health check")
		case observed.Unknown:
			silent = append(silent, c.name+": health not known")
		case observed.Yes:
		}
	}
	return failed, silent
}

// etcdMember says what is wrong with the host's member of etcd, as the member list has it.
func etcdMember(cx HostContext) (failed, silent []string) {
	if cx.Etcd != observed.Yes {
		return nil, nil
	}
	if cx.Member == nil {
		return []string{"is not a member of etcd"}, nil
	}
	switch cx.Member.Healthy {
	case observed.No:
		failed = append(failed, "its etcd member does not answer")
	case observed.Unknown:
		silent = append(silent, "its etcd member: health not known")
	case observed.Yes:
	}
	if len(cx.Member.Alarms) > 0 {
		silent = append(silent, "etcd alarm "+problem.List(cx.Member.Alarms))
	}
	return failed, silent
}

// readiness reports whether the Node is as Ready as it can be, and what there is to say about it.
func readiness(cx HostContext) (ok bool, why string) {
	switch {
	case cx.API != observed.Yes:
		return false, "Node not known: the API does not answer"
	case cx.Node.Ready == observed.Yes:
		return true, ""
	case cx.NoCNI:
		return true, "Node not Ready: the network plugin has not been applied yet"
	case cx.Node.Ready == observed.No:
		return false, "Node is not Ready"
	}
	return false, "Node's readiness not known: its kubelet stopped reporting"
}
