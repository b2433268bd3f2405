package decide

import (
	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/quorum"
)

// renewals are the certificates of the control plane that come near their end, by the ID of each host that can renew
// them: it is well, and so has the authorities, and etcd can do without it.
func (v *view) renewals() map[string][]string {
	var out map[string][]string
	for i := range v.controlPlane() {
		s := &v.hosts[i]
		if !s.inLimit || s.Condition != condition.Healthy {
			continue
		}
		ending := condition.Ending(&s.is, v.in.Want.Certificates.Validity())
		if len(ending) == 0 || s.Etcd != "" && !quorum.SafeToStop(v.in.Is.Etcd.Members, s.Etcd).Safe {
			continue
		}
		if out == nil {
			out = make(map[string][]string)
		}
		out[s.ID] = ending
	}
	return out
}
