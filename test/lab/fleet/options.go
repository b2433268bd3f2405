package fleet

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"kubeone/test/lab/components"
)

// Options say what lab to bring up. The zero value of a field means what its comment says.
type Options struct {
	// Name of the lab, "lab" by default.
	Name string
	// ControlPlanes, Workers and SpareWorkers count hosts. A lab without any control plane gets three.
	ControlPlanes, Workers, SpareWorkers int
	// KubernetesVersion is without a leading v; the newest known by default.
	KubernetesVersion string
	// SSHUser is root by default; ops is the other user of each host, with sudo.
	SSHUser string
	// NoPin leaves the hosts' SSH keys out of the manifest. NoBundle makes no bundle.
	NoPin, NoBundle bool
	// Ephemeral labs are removed by the next Up of anyone once this process is gone.
	Ephemeral bool
	// Image is a docker image to use in place of the lab's own.
	Image string
	// Debian is the release that the hosts run, "bookworm" or "trixie"; that of this machine by default. DebianOf maps
	// the hostnames of those that run another one ("worker-2") to their release.
	Debian   string
	DebianOf map[string]string
	// Log receives progress; nil for none.
	Log Logf
}

// releases are the codenames of the Debian releases that hosts are made with; "" is this machine's own.
var releases = []string{"", "bookworm", "trixie"}

var nameRule = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

func (o *Options) setDefaults() error {
	if o.Name == "" {
		o.Name = "lab"
	}
	if o.ControlPlanes == 0 {
		o.ControlPlanes = 3
	}
	if o.KubernetesVersion == "" {
		o.KubernetesVersion = components.DefaultKubernetesVersion
	}
	if o.SSHUser == "" {
		o.SSHUser = "root"
	}
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	for _, release := range append(slices.Collect(maps.Values(o.DebianOf)), o.Debian) {
		if !slices.Contains(releases, release) {
			return fmt.Errorf("release of Debian %q: the lab makes hosts with bookworm and trixie", release)
		}
	}
	switch {
	case o.Image != "" && (o.Debian != "" || len(o.DebianOf) > 0):
		return fmt.Errorf("image %s is in place of the lab's own: no release of Debian can be chosen", o.Image)
	case !nameRule.MatchString(o.Name):
		return fmt.Errorf("lab name %q: want lower-case letters, digits and dashes, 32 at most", o.Name)
	case o.SSHUser != "root" && o.SSHUser != "ops":
		return fmt.Errorf("SSH user %q: the hosts have root and ops", o.SSHUser)
	case o.ControlPlanes < 0 || o.ControlPlanes > 39 || o.Workers < 0 || o.SpareWorkers < 0 ||
		o.Workers+o.SpareWorkers > 199:
		return fmt.Errorf("a lab has at most 39 control planes and 199 workers")
	}
	return nil
}
