package decide

import (
	"kubeone/internal/decide/rotation"
	"kubeone/internal/problem"
)

// rotationBegun is the warning that the key of an authority is being rotated, which only its own command ends.
func (v *view) rotationBegun() []problem.Problem {
	if v.in.About != nil {
		return nil
	}
	begun := rotation.Begun(rotation.HostsOf(v.in.Want.ControlPlane, v.in.Is.Hosts))
	if len(begun) == 0 {
		return nil
	}
	return []problem.Problem{{
		Code: problem.RotationBegun, Parameters: problem.Parameters{"authorities": problem.List(begun)},
	}}
}
