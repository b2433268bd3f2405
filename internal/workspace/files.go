package workspace

import (
	"fmt"
	"kubeone/internal/engine"
	"kubeone/internal/host"
	"kubeone/internal/host/sshpool"
	"kubeone/internal/manifest"
	"kubeone/internal/model/desired"
	"kubeone/internal/text/pattern"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"time"
)

// acceptances holds the machines that may present a host key other than the known one. The values are those of
// host.Target.Accept.
type acceptances struct {
	hosts    map[string]string // by host ID
	bastions map[string]string // by address in the manifest
}

// parseAcceptances parses the values of host.AcceptFlag: "HOST" or "HOST=SHA256:...". Without a fingerprint, the
// operator must see the key before it is recorded, and only host.PolicyProbe shows keys.
func (w *Workspace) parseAcceptances(policy host.Policy) (acceptances, error) {
	a := acceptances{map[string]string{}, map[string]string{}}
	for _, value := range w.opt.AcceptHostKeys {
		name, key, given := strings.Cut(value, "=")
		switch {
		case !given && policy != host.PolicyProbe:
			return a, newAcceptError("%s needs the fingerprint here, because keys are recorded without being shown: "+
				"%s=SHA256:...; kubeone plan shows it", name, name)
		case !given:
			key = host.AcceptShown
		case !fingerprint().MatchString(key):
			return a, newAcceptError("%s: %q is not a fingerprint, which is SHA256: and 43 characters, as kubeone plan "+
				"and ssh-keygen -lf show it", name, key)
		}
		if err := w.acceptKey(a, name, key); err != nil {
			return a, err
		}
	}
	return a, nil
}

// acceptKey accepts a key for the named machine: a host, or a bastion given by address.
func (w *Workspace) acceptKey(into acceptances, name, key string) error {
	if h, ok := w.want.Host(name); ok {
		into.hosts[h.ID] = key
		into.bastions[h.PublicAddress] = key // it may also be a bastion
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

// fingerprint matches the fingerprint of a key: SHA256: and 32 bytes in base64.
var fingerprint = pattern.Lazy(`^SHA256:[A-Za-z0-9+/]{43}$`)

func newAcceptError(format string, args ...any) error {
	return &engine.ConfigError{Err: fmt.Errorf(host.AcceptFlag+" "+format, args...)}
}

// Login returns connection settings for machines outside any manifest. They use the operator's SSH keys and known
// hosts. Unknown host keys are shown for approval; if record is set, they are recorded without approval. They are
// recorded in known_hosts in DefaultStateDir.
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

// UpgradeOptions override settings in the upgrade section of the manifest for one run. nil and "" keep the setting in
// the manifest.
type UpgradeOptions struct {
	MaxUnavailable string // "2", "25%"
	MaxParallel    *int
	Canary         *bool
	DrainTimeout   *time.Duration
	OnTimeout      string // stop, skip, force
}

// applyTo applies the options to the desired settings. The error names the invalid flag.
func (o UpgradeOptions) applyTo(u *desired.Upgrade) error {
	if o.MaxUnavailable != "" {
		share, err := manifest.ParseShare(o.MaxUnavailable)
		if err != nil {
			return fmt.Errorf("--max-unavailable: %w", err)
		}
		u.MaxUnavailable = share
	}
	if o.MaxParallel != nil {
		if *o.MaxParallel < 0 {
			return fmt.Errorf("--max-parallel: %d is less than 0, which means as many as maxUnavailable allows",
				*o.MaxParallel)
		}
		u.MaxParallel = *o.MaxParallel
	}
	if o.Canary != nil {
		u.Canary = *o.Canary
	}
	if o.DrainTimeout != nil {
		if *o.DrainTimeout <= 0 {
			return fmt.Errorf("--drain-timeout: %s is not a positive duration", *o.DrainTimeout)
		}
		u.Drain.Timeout = *o.DrainTimeout
	}
	switch action := desired.OnTimeout(o.OnTimeout); action {
	case "":
	case desired.DrainStop, desired.DrainSkip, desired.DrainForce:
		u.Drain.OnTimeout = action
	default:
		return fmt.Errorf("--on-drain-timeout: %q is not %s, %s or %s",
			o.OnTimeout, desired.DrainStop, desired.DrainSkip, desired.DrainForce)
	}
	return nil
}

// overrideManifest applies the options for this run to the desired cluster.
func (w *Workspace) overrideManifest() error {
	if v := strings.TrimPrefix(w.opt.Version, "v"); v != "" {
		w.want.KubernetesVersion = v
	}
	return w.opt.Upgrade.applyTo(&w.want.Upgrade)
}

// DefaultStateDir returns $KUBEONE_STATE or, if that is not set, the directory kubeone in the user's state directory
// (XDG).
func DefaultStateDir() (string, error) {
	if dir := os.Getenv("KUBEONE_STATE"); dir != "" {
		return dir, nil
	}
	if dir := os.Getenv("XDG_STATE_HOME"); dir != "" {
		return filepath.Join(dir, "kubeone"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the directory for known hosts and journals: %w; set KUBEONE_STATE", err)
	}
	return filepath.Join(home, ".local", "state", "kubeone"), nil
}

func stateDir(base, cluster string) (string, error) {
	if base == "" {
		var err error
		if base, err = DefaultStateDir(); err != nil {
			return "", err
		}
	}
	return filepath.Join(base, cluster), nil
}

// Journals returns the directory with the journals of this machine's runs for the cluster. It may not exist.
func (w *Workspace) Journals() string { return filepath.Join(w.stateDir, "journal") }

func (w *Workspace) knownHosts() string { return filepath.Join(w.stateDir, "known_hosts") }

// Holder returns the name of the operator for locks and records: "user@machine".
func Holder() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	machine, err := os.Hostname()
	if err != nil {
		machine = "unknown"
	}
	return name + "@" + machine
}
