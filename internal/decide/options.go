package decide

import "kubeone/internal/decide/fsm"

// Options are what an operator may ask for besides the desired cluster. The zero value asks for nothing.
type Options struct {
	// ForceUpgrade rolls the configuration out host by host although nothing differs. It applies once.
	ForceUpgrade bool
	// RotateKey encrypts Secrets with a new key, if no change of keys is under way. It applies once.
	RotateKey bool
	// UpgradeMachines gives MachineDeployments the cluster's version of the kubelet, after the control plane.
	UpgradeMachines bool
	// DropNames removes names from the API server certificates that the manifest no longer has, once no client dials
	// them.
	DropNames bool
	// DiscardEdits lets an upgrade overwrite static pods that were edited.
	DiscardEdits bool
}

// After returns the options that still apply after a plan has followed these routes: what applies once is cleared.
func (o Options) After(routes ...fsm.Route) Options {
	for _, r := range routes {
		o.ForceUpgrade = o.ForceUpgrade && r != fsm.Install && r != fsm.Upgrade
		o.RotateKey = o.RotateKey && r != fsm.Install && r != fsm.Encrypt
	}
	return o
}
