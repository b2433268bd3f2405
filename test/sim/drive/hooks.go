package drive

import (
	"time"

	"kubeone/internal/model/desired"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
)

// allHooks returns commands before and after every activity, on hosts and on the operator's machine.
func allHooks() []desired.Hook {
	var out []desired.Hook
	for _, activity := range []desired.Activity{
		desired.Applying, desired.Installing, desired.Joining, desired.Upgrading, desired.Draining,
		desired.Reconfiguring, desired.Resetting,
	} {
		for _, when := range []desired.When{desired.Before, desired.After} {
			for _, onHost := range []bool{false, true} {
				if onHost && (activity == desired.Applying || activity == desired.Resetting && when == desired.After) {
					continue
				}
				out = append(out, desired.Hook{
					Name: string(when) + "-" + string(activity), When: when, Activity: activity, OnHost: onHost,
					Command: []string{"true"}, Timeout: time.Minute,
				})
			}
		}
	}
	return out
}

// owedHooks returns the activities that hosts note before the steps of a plan, by host.
func owedHooks(p plan.Plan) map[string]map[step.Kind]desired.Activity {
	steps := map[string][]step.Intent{}
	for _, s := range p.Steps {
		if s.Intent.Kind.OnHost() {
			steps[s.Host] = append(steps[s.Host], s.Intent)
		}
	}
	out := map[string]map[step.Kind]desired.Activity{}
	for id, of := range steps {
		out[id] = step.PendingHooks(of)
	}
	return out
}
