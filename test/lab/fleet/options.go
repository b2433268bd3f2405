package fleet

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"kubeone/test/lab/components"
)

// Options describe a lab.
type Options struct {
	// Name defaults to "lab".
	Name string
	// ControlPlanes, Workers and SpareWorkers count hosts. Zero ControlPlanes means three.
	ControlPlanes, Workers, SpareWorkers int
	// KubernetesVersion is without a leading v, and defaults to the newest known version.
	KubernetesVersion string
	// CNI is the network plugin of the manifest and the bundle, by default components.DefaultCNI. A version follows @, as
	// in cilium@1.20.1.
	CNI string
	// DualStack gives the network, the hosts and the manifest IPv6 addresses too.
	DualStack bool
	// SSHUser defaults to root. ops is the other user of each host, with sudo.
	SSHUser string
	// NoPin omits the hosts' SSH keys from the manifest. NoBundle makes no bundle.
	NoPin, NoBundle bool
	// Ephemeral labs are removed by the next Up of any process after this process has ended.
	Ephemeral bool
	// Image is a docker image that replaces the lab's own.
	Image string
	// Debian is the release of the hosts, "bookworm" or "trixie", by default the release of this machine. DebianOf maps
	// the hostnames of exceptions ("worker-2") to their release.
	Debian   string
	DebianOf map[string]string
	// Addons are addons of kubeone whose images are in the bundle.
	Addons []string
	// Log receives progress, and may be nil.
	Log Logf
}

// releases are the codenames of the supported Debian releases; "" is the release of this machine.
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
	if o.CNI == "" {
		o.CNI = components.DefaultCNI
	}
	if o.SSHUser == "" {
		o.SSHUser = "root"
	}
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	if err := components.CheckCNI(o.CNI); err != nil {
		return err
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
