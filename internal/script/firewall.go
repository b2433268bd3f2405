package script

import (
	"kubeone/internal/componentconfig"
	"kubeone/internal/plan/step"
)

// firewallVariables returns the variables about firewalls.
func firewallVariables(in Input) []step.Variable {
	return []step.Variable{
		step.Text("FIREWALL_MODE", in.Want.Firewall), step.Text("FIREWALLS", componentconfig.FirewallDir),
	}
}
