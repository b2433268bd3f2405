package decide

import (
	"fmt"

	"kubeone/internal/observed"
)

// upgradable reports whether the host is a member inside the limit of which a component runs another version than the
// wanted one.
func (v *view) upgradable(s *seen) bool { return s.may && s.joined() && v.outdated(s) }

// upgrades are the hosts to upgrade, control plane first.
func (v *view) upgrades() []string {
	return having(v.hosts, func(s *seen) bool {
		return s.may && s.joined() && (v.in.ForceUpgrade || v.outdated(s))
	})
}

// skew says why some kubelet and some API server could not work together during or after the upgrade; it is empty when
// they can. Every Node counts, also those that the manifest does not manage.
func (v *view) skew() string {
	want := v.in.Want.KubernetesVersion
	for _, n := range v.in.Is.API.Nodes {
		if n.KubeletVersion == "" {
			continue
		}
		if err := SkewAllowed(want, n.KubeletVersion); err != nil {
			return fmt.Sprintf("node %s: %v: upgrade or remove it first", n.Name, err)
		}
	}
	for i := range v.controlPlane() {
		s := &v.hosts[i]
		if s.may || !s.joined() {
			continue
		}
		if err := SkewAllowed(v.apiServer(s), want); err != nil && len(having(v.workers(), v.upgradable)) > 0 {
			return fmt.Sprintf("%s is outside the limit, and workers inside it would get a kubelet that is too new for it: %v", s.name(), err)
		}
	}
	return ""
}

// cordoned reports whether a run of ours has closed the member's Node and was interrupted before it opened it again; the
// host needs nothing more.
func (v *view) cordoned(s *seen) bool {
	return s.may && s.Condition == Healthy && s.node != nil && s.node.Unschedulable && s.node.Annotations[observed.CordonAnnotation] != "" && !v.outdated(s)
}
