package workspace

import (
	"fmt"
	"strings"

	"kubeone/internal/engine"
	"kubeone/internal/host"
	"kubeone/internal/text/pattern"
)

// acceptances are the machines that may show another host key than the known one, each with what host.Target.Accept
// takes.
type acceptances struct {
	hosts    map[string]string // by host ID
	bastions map[string]string // by address, as the manifest has it
}

// acceptances reads what host.AcceptFlag was given: "HOST" or "HOST=SHA256:...". Without a fingerprint, somebody must
// see the key before it is recorded, and only host.PolicyProbe has them shown.
func (w *Workspace) acceptances(policy host.Policy) (acceptances, error) {
	a := acceptances{map[string]string{}, map[string]string{}}
	for _, value := range w.opt.AcceptHostKeys {
		name, key, given := strings.Cut(value, "=")
		switch {
		case !given && policy != host.PolicyProbe:
			return a, wrongAcceptance("%s needs the fingerprint here, as nobody is shown what is recorded: "+
				"%s=SHA256:...; kubeone plan shows it", name, name)
		case !given:
			key = host.AcceptShown
		case !fingerprint().MatchString(key):
			return a, wrongAcceptance("%s: %q is no fingerprint; it is SHA256: and 43 characters, as kubeone plan and "+
				"ssh-keygen -lf show it", name, key)
		}
		if err := w.accept(a, name, key); err != nil {
			return a, err
		}
	}
	return a, nil
}

// accept notes a key for the machine that a person calls so: a host, or a bastion by its address.
func (w *Workspace) accept(into acceptances, name, key string) error {
	if h, ok := w.want.Host(name); ok {
		into.hosts[h.ID] = key
		into.bastions[h.PublicAddress] = key // it may be one too
		return nil
	}
	for _, h := range w.want.Hosts() {
		if h.SSH.Bastion != "" && h.SSH.Bastion == name {
			into.bastions[name] = key
			return nil
		}
	}
	_, err := w.HostIDs(host.AcceptFlag, name)
	return err
}

// fingerprint is that of a key: base64 of 32 bytes.
var fingerprint = pattern.Lazy(`^SHA256:[A-Za-z0-9+/]{43}$`)

func wrongAcceptance(format string, args ...any) error {
	return &engine.ConfigError{Err: fmt.Errorf(host.AcceptFlag+" "+format, args...)}
}
