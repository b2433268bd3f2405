package desired

import (
	"time"
)

// Upgrade is how nodes are taken out of service. It is no part of any host's configuration.
type Upgrade struct {
	MaxUnavailable Share `json:"maxUnavailable"` // workers out of service at the same time; default 1
	// workers upgraded at the same time; 0: as MaxUnavailable allows
	MaxParallel int   `json:"maxParallel,omitempty"`
	Canary      bool  `json:"canary"` // one worker first, alone; default true
	Drain       Drain `json:"drain"`
}

// Drain is how pods leave a node.
type Drain struct {
	Timeout   time.Duration `json:"timeout"`   // for one node; default 5m
	OnTimeout OnTimeout     `json:"onTimeout"` // default DrainStop
	// GracePeriod is how long a pod may take to end itself, in whole seconds; nil: each pod's own, 0: none.
	GracePeriod *time.Duration `json:"gracePeriod,omitempty"`
}

// OnTimeout says what happens to a node whose pods have not left in time.
type OnTimeout string

// What happens to a node whose pods have not left in time.
const (
	DrainStop  OnTimeout = "stop"  // opened for pods again; the run ends with an error
	DrainSkip  OnTimeout = "skip"  // opened for pods again, and left as it is; a control-plane host stops the run
	DrainForce OnTimeout = "force" // its pods are deleted, whatever their disruption budgets say
)

// Share is a number of nodes, or a percentage of all of them; one of the two is 0.
type Share struct {
	Count   int `json:"count,omitempty"`
	Percent int `json:"percent,omitempty"` // 1 to 100
}

// Of returns that share of total nodes: rounded down, and one at least. It may be more than total.
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

// Backup is about snapshots of etcd and backups of the cluster. It is no part of any host's configuration.
type Backup struct {
	Recipients []string `json:"recipients,omitempty"` // age public keys; none: no backup can be written
	Target     string   `json:"target,omitempty"`     // an absolute folder, ssh://… or s3://…; "" means none
	// between snapshots on each control-plane host; 0: never; default 6h
	Schedule time.Duration `json:"schedule"`
	Keep     int           `json:"keep"` // snapshots that a host keeps; default 10
}

// ControllersAddon is the name of the addon that has the controllers.
const ControllersAddon = "controllers"

// BundleDir is where control-plane hosts have the bundles from which the controllers install, as files *.tar. Everyone
// may read them: the controllers are not root.
const BundleDir = "/var/lib/kubeone/bundles"

// Controllers is what is needed to run the controllers in the cluster. Their image is made of this program, and is no
// part of a release: it is uploaded to the control-plane hosts, and so are bundles.
type Controllers struct {
	Image Image  `json:"image"`
	Arch  string `json:"arch"`  // of the image, as Go names it: they run on control-plane hosts of that one
	Index string `json:"index"` // index.json of an OCI image layout that has the image alone
	// Bundles are those that control-plane hosts are to have, for the controllers to install from.
	Bundles []BundleFile `json:"bundles,omitempty"`
}

// BundleFile is a bundle as control-plane hosts have it. Its name says what is in it: another content has another name.
type BundleFile struct {
	Name string `json:"name"`
	Size int64  `json:"size"` // in bytes
}

// Activity is what a hook runs before or after.
type Activity string

// The activities. Of Applying there is one in a run; all others are about one host.
const (
	Applying      Activity = "apply"
	Installing    Activity = "install" // a host becomes one of a new cluster
	Joining       Activity = "join"    // a host becomes one of a cluster that is there
	Upgrading     Activity = "upgrade"
	Draining      Activity = "drain"
	Reconfiguring Activity = "reconfigure"
	Resetting     Activity = "reset"
)

// When is on which side of an activity a hook runs.
type When string

// The sides.
const (
	Before When = "before"
	After  When = "after"
	// Failed is after a run that failed; its Activity is Applying. Such a hook is no step of a plan.
	Failed When = "failed"
)

// Hook is a command of the operator's that runs before or after something is done.
type Hook struct {
	Name     string        `json:"name"`
	When     When          `json:"when"`
	Activity Activity      `json:"activity"`
	OnHost   bool          `json:"onHost,omitempty"` // on the host that the activity is about, else where kubeone runs
	Command  []string      `json:"command"`
	Timeout  time.Duration `json:"timeout"` // whole seconds; default 5m
}

// HooksAt returns the hooks of a moment, in the manifest's order: those on hosts, or the others.
func (c *Cluster) HooksAt(when When, activity Activity, onHost bool) []Hook {
	var out []Hook
	for _, h := range c.Hooks {
		if h.When == when && h.Activity == activity && h.OnHost == onHost {
			out = append(out, h)
		}
	}
	return out
}
