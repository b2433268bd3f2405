package workspace

import (
	"path/filepath"

	"kubeone/internal/host"
	"kubeone/internal/host/sshpool"
)

// Login is how the operator logs in to machines that no manifest names: with the keys and known hosts that ssh uses.
// Unknown host keys are shown before they are approved, or, where nobody is asked, recorded as they are met; both in
// known_hosts of the folder DefaultStateDir.
func Login(passphrase func(string) ([]byte, error), record bool, warn func(string)) sshpool.Options {
	o := sshpool.Options{KnownHosts: host.PolicyProbe, Passphrase: passphrase, Warn: warn}
	if record {
		o.KnownHosts = host.PolicyAcceptNew
	}
	if dir, err := DefaultStateDir(); err == nil {
		o.RecordFile = filepath.Join(dir, "known_hosts")
	}
	return o
}
