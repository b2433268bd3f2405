package desired

import "time"

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

// Of is that share of total nodes: rounded down, and one at least. It may be more than total.
func (s Share) Of(total int) int {
	if s.Percent > 0 {
		return max(1, total*s.Percent/100)
	}
	return max(1, s.Count)
}

// AtOnce is how many of total workers are upgraded at the same time.
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
