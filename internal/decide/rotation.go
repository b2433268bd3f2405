package decide

import (
	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/rotation"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/problem"
)

// rotationBegun is the warning that the key of an authority is being rotated, which only its own command ends. Hosts of
// another cluster have no say in it.
func (v *view) rotationBegun() []problem.Problem {
	if v.in.About != nil {
		return nil
	}
	var ours []desired.Host
	for i := range v.hosts[:v.cps] {
		if h := &v.hosts[i]; h.Condition != condition.Foreign {
			ours = append(ours, *h.Host)
		}
	}
	begun := rotation.Begun(rotation.HostsOf(ours, v.in.Is.Hosts))
	if len(begun) == 0 {
		return nil
	}
	return []problem.Problem{{
		Code: problem.RotationBegun, Parameters: problem.Parameters{"authorities": problem.List(begun)},
	}}
}
