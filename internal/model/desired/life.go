package desired

import (
	"slices"
	"time"
)

// Upgrade says how nodes are taken out of service. It is not part of a host's configuration.
type Upgrade struct {
	MaxUnavailable Share `json:"maxUnavailable"` // workers out of service at the same time; default 1
	// MaxParallel is the number of workers upgraded at the same time; 0: as MaxUnavailable allows.
	MaxParallel int   `json:"maxParallel,omitempty"`
	Canary      bool  `json:"canary"` // one worker first, alone; default true
	Drain       Drain `json:"drain"`
}

// Drain says how pods leave a node.
type Drain struct {
	Timeout   time.Duration `json:"timeout"`   // for one node; default 5m
	OnTimeout OnTimeout     `json:"onTimeout"` // default DrainStop
	// GracePeriod is how long a pod may take to terminate, in whole seconds; nil: each pod's own, 0: none.
	GracePeriod *time.Duration `json:"gracePeriod,omitempty"`
}

// OnTimeout says what happens to a node whose pods have not left in time.
type OnTimeout string

// The values of OnTimeout.
const (
	DrainStop  OnTimeout = "stop"  // uncordoned; the run ends with an error
	DrainSkip  OnTimeout = "skip"  // uncordoned and left as it is; a control-plane host stops the run
	DrainForce OnTimeout = "force" // its pods are deleted despite disruption budgets
)

// Share is a number of nodes, or a percentage of all nodes; the other is 0.
type Share struct {
	Count   int `json:"count,omitempty"`
	Percent int `json:"percent,omitempty"` // 1 to 100
}

// Of returns that share of total nodes, rounded down but at least one. It may exceed total.
func (s Share) Of(total int) int {
	if s.Percent > 0 {
		return max(1, total*s.Percent/100)
	}
	return max(1, s.Count)
}

// AtOnce returns how many of total workers are upgraded at the same time.
func (u Upgrade) AtOnce(total int) int {
	share := u.MaxUnavailable.Of(total)
	if u.MaxParallel > 0 {
		return min(share, u.MaxParallel)
	}
	return share
}

// Backup configures snapshots of etcd and backups of the cluster. It is not part of a host's configuration.
type Backup struct {
	Recipients []string `json:"recipients,omitempty"` // age public keys; none: no backup can be written
	Target     string   `json:"target,omitempty"`     // an absolute folder, ssh://… or s3://…; "" means none
	// Schedule is the time between snapshots on each control-plane host; 0: never; default 6h.
	Schedule time.Duration `json:"schedule"`
	Keep     int           `json:"keep"` // snapshots to keep on a host; default 10
}

// IsOwnAddon reports whether the name is that of an addon of kubeone, desired or not. Custom addons have other names.
func (c Cluster) IsOwnAddon(name string) bool {
	switch name {
	case ControllersAddon, DNSBudgetAddon:
		return true
	case MetricsServerAddon, NodeLocalDNSAddon:
		return !slices.Contains(c.ReplacedAddons, name)
	}
	return slices.Contains(c.Network.CNI.Supported, name)
}

// ClusterAddon is the name of the addon with the Cluster, its Machines and what else a file of objects has. It is a
// custom addon, except that kubeone contains it.
const ClusterAddon = "cluster-objects"

// ControllersAddon is the name of the addon with the controllers.
const ControllersAddon = "controllers"

// BundleDir is the directory on control-plane hosts with the bundles, *.tar, that the controllers install from. All
// users may read them, because the controllers do not run as root.
const BundleDir = "/var/lib/kubeone/bundles"

// Controllers is what is needed to run the controllers in the cluster. Their image contains this program and is not
// part of a release. It and the bundles are uploaded to the control-plane hosts.
type Controllers struct {
	Image Image  `json:"image"`
	Arch  string `json:"arch"`  // of the image, as Go names it; they run on control-plane hosts of that architecture
	Index string `json:"index"` // index.json of an OCI image layout with only this image
	// Bundles lists the bundles for control-plane hosts, from which the controllers install.
	Bundles []BundleFile `json:"bundles,omitempty"`
}

// BundleFile is a bundle on control-plane hosts. Its name identifies its content.
type BundleFile struct {
	Name string `json:"name"`
	Size int64  `json:"size"` // in bytes
}

// Activity is what a hook runs before or after.
type Activity string

// The activities. A run has one Applying; all others concern one host.
const (
	Applying      Activity = "apply"
	Installing    Activity = "install" // a host becomes part of a new cluster
	Joining       Activity = "join"    // a host becomes part of an existing cluster
	Upgrading     Activity = "upgrade"
	Draining      Activity = "drain"
	Reconfiguring Activity = "reconfigure"
	Resetting     Activity = "reset"
)

// When says whether a hook runs before or after an activity.
type When string

// The values of When.
const (
	Before When = "before"
	After  When = "after"
	// Failed is after a run that failed; its Activity is Applying. Such a hook is not a step of a plan.
	Failed When = "failed"
)

// Hook is a command of the operator's that runs before or after an activity.
type Hook struct {
	Name     string        `json:"name"`
	When     When          `json:"when"`
	Activity Activity      `json:"activity"`
	OnHost   bool          `json:"onHost,omitempty"` // on the activity's host, else where kubeone runs
	Command  []string      `json:"command"`
	Timeout  time.Duration `json:"timeout"` // whole seconds; default 5m
}

// HooksAt returns the hooks for a moment, in the manifest's order: those on hosts, or the others.
func (c *Cluster) HooksAt(when When, activity Activity, onHost bool) []Hook {
	var out []Hook
	for _, h := range c.Hooks {
		if h.When == when && h.Activity == activity && h.OnHost == onHost {
			out = append(out, h)
		}
	}
	return out
}
