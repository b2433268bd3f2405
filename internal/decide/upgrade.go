package decide

import (
	"slices"

	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/quorum"
	"kubeone/internal/decide/skew"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
)

// canUpgrade reports whether the host is a member inside the limit with a component of another version than the desired
// one.
func (v *view) canUpgrade(s *hostState) bool { return s.inLimit && s.hasJoined() && v.isOutdated(s) }

// MayUpgrade reports whether a plan may upgrade hosts that already run something. It may be wrong only if it reports
// true.
func MayUpgrade(in Input) bool {
	v := newView(in)
	return in.ForceUpgrade || slices.ContainsFunc(v.hosts, func(s hostState) bool {
		return s.is.Reach == observed.Reached && (s.hasJoined() || s.node != nil) && v.isOutdated(&s)
	})
}

// hostsToUpgrade returns the hosts to upgrade: control plane first, and within each role those whose upgrade has begun.
func (v *view) hostsToUpgrade() []string {
	var out []string
	for _, hosts := range [][]hostState{v.controlPlane(), v.workers()} {
		out = append(out, idsWhere(hosts, func(s *hostState) bool { return s.midUpgrade })...)
		out = append(out, idsWhere(hosts, func(s *hostState) bool {
			return s.inLimit && s.hasJoined() && !s.midUpgrade && (v.in.ForceUpgrade || v.isOutdated(s))
		})...)
	}
	return out
}

// canResumeUpgrade reports whether an upgrade of the host has begun, and resuming it may repair the host: the kubelet
// or a control-plane component does not run in its new version or configuration. Restarting these unchanged would only
// fail again, for instance after the manifest was corrected. Either etcd runs there and may be stopped, or nothing runs
// because the kubelet does not, and the others are a quorum.
func (v *view) canResumeUpgrade(s *hostState) bool {
	switch {
	case !s.inLimit || !s.upgradeBegun() || !v.isOutdated(s) || v.in.Is.API.Reached != observed.Yes:
		return false
	case !s.is.Containerd.Active || s.is.KubeletConf != observed.Yes || !s.isFixedByUpgrade():
		return false
	case s.Role == desired.Worker:
		return true
	case s.is.PKI != observed.Yes || s.is.EtcdData != observed.Yes:
		return false
	}
	stop := quorum.SafeToStop(v.in.Is.Etcd.Members, s.Etcd)
	if !condition.RunsKubelet(&s.is) && !stop.Outage {
		return stop.Safe
	}
	return s.is.EtcdHealth == observed.Yes && v.memberVote(s) == observed.Yes && stop.Safe
}

// isFixedByUpgrade reports whether the rest of the host's upgrade may repair the host.
func (s *hostState) isFixedByUpgrade() bool {
	switch s.Condition {
	case condition.Restartable, condition.Unready, condition.Broken:
		return true
	case condition.Regenerable:
		return slices.Equal(s.Parts, []string{condition.PartSettings})
	}
	return false
}

// skewProblem returns a problem if a kubelet and an API server could not work together during or after the upgrade.
// Every Node counts, including Nodes outside the manifest, except workers that are left alone.
func (v *view) skewProblem() *problem.Problem {
	want := v.in.Want.KubernetesVersion
	for _, n := range v.in.Is.API.Nodes {
		if n.KubeletVersion == "" || skew.Check(want, n.KubeletVersion) == nil || v.isStrange(n.Name) {
			continue
		}
		return &problem.Problem{
			Code:       problem.KubeletSkew,
			Parameters: problem.Parameters{"node": n.Name, "kubelet": n.KubeletVersion, "apiServer": want},
		}
	}
	if p := v.skewElsewhere(); p != nil {
		return p
	}
	for i := range v.controlPlane() {
		s := &v.hosts[i]
		if s.inLimit || !s.hasJoined() {
			continue
		}
		for j := range v.workers() {
			w := &v.workers()[j]
			if !v.canUpgrade(w) || skew.Check(v.apiServer(s), w.wantKubelet) == nil {
				continue
			}
			return &problem.Problem{
				Code: problem.KubeletSkewOutsideLimit, Host: s.ID,
				Parameters: problem.Parameters{"name": s.displayName(), "kubelet": w.wantKubelet,
					"apiServer": v.apiServer(s)},
			}
		}
	}
	return nil
}

// skewElsewhere returns a problem if oldElsewhere finds a Node.
func (v *view) skewElsewhere() *problem.Problem {
	n := v.oldElsewhere()
	if n == nil {
		return nil
	}
	return &problem.Problem{Code: problem.KubeletSkewElsewhere, Parameters: problem.Parameters{
		"node": n.Name, "kubelet": n.KubeletVersion, "wanted": v.in.Want.KubernetesVersion,
	}}
}

// oldElsewhere returns the Node of a control-plane host outside the manifest whose API server may be too old for
// kubelets of the desired version, which may connect to it; nil if there is none. Its kubelet's version stands for the
// API server, which an upgrade reaches first. A Node that is not Ready counts only if it belongs to an etcd member;
// others are deleted.
func (v *view) oldElsewhere() *observed.Node {
	for i := range v.in.Is.API.Nodes {
		n := &v.in.Is.API.Nodes[i]
		if !n.ControlPlane {
			continue
		}
		hosts := idsWhere(v.hosts, func(s *hostState) bool {
			return s.Node == n.Name || s.node != nil && s.node.Name == n.Name
		})
		member := slices.ContainsFunc(v.in.Is.Etcd.Members, func(m observed.Member) bool { return m.Name == n.Name })
		if len(hosts) == 0 && (member || n.Ready == observed.Yes) && n.KubeletVersion != "" &&
			skew.Check(n.KubeletVersion, v.in.Want.KubernetesVersion) != nil {
			return n
		}
	}
	return nil
}

// namedVersions returns the problems of the versions that the manifest gives for a host.
func (v *view) namedVersions(s *hostState) []problem.Problem {
	if s.Versions == (desired.Versions{}) {
		return nil
	}
	cluster := v.in.Want.KubernetesVersion
	if s.Role == desired.ControlPlane {
		return []problem.Problem{{Code: problem.ControlPlaneVersionNamed, Host: s.ID}}
	}
	var out []problem.Problem
	if skew.Check(cluster, s.wantKubelet) != nil || skew.Newer(s.wantKubelet, cluster) {
		out = append(out, problem.Problem{
			Code: problem.KubeletVersionRefused, Host: s.ID,
			Parameters: problem.Parameters{"kubelet": s.wantKubelet, "apiServer": cluster},
		})
	}
	if c := s.Versions.Containerd; c != "" && skew.Containerd(s.wantKubelet, c) != nil {
		out = append(out, problem.Problem{
			Code: problem.ContainerdRefused, Host: s.ID,
			Parameters: problem.Parameters{"kubelet": s.wantKubelet, "containerd": c},
		})
	}
	return out
}

// isCordonedByRun reports whether an interrupted run left the member's Node cordoned, and the host needs nothing more.
// A mark on an uncordoned Node counts too: if it stayed, an operator's later cordon would look like kubeone's.
func (v *view) isCordonedByRun(s *hostState) bool {
	return s.inLimit && s.Condition == condition.Healthy && s.node != nil &&
		s.node.Annotations[observed.CordonAnnotation] != "" && !v.isOutdated(s)
}
