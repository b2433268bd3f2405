package desired

import "time"

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

// HooksAt are the hooks of a moment, in the manifest's order: those on hosts, or the others.
func (c *Cluster) HooksAt(when When, activity Activity, onHost bool) []Hook {
	var out []Hook
	for _, h := range c.Hooks {
		if h.When == when && h.Activity == activity && h.OnHost == onHost {
			out = append(out, h)
		}
	}
	return out
}
