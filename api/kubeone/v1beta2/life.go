package v1beta2

// The values of KubeOneCluster.Firewall.
const (
	FirewallManage  = "manage"
	FirewallDisable = "disable"
	FirewallIgnore  = "ignore"
)

// The values of KubeOneCluster.Hardening.
const (
	HardeningBaseline = "baseline"
	HardeningNone     = "none"
)

// UpgradeConfig is how nodes are taken out of service for an upgrade. It changes nothing on a host, so that changing it
// is no upgrade itself. The flags --max-unavailable, --max-parallel, --no-canary, --drain-timeout and
// --on-drain-timeout win; drain.gracePeriod has no flag.
type UpgradeConfig struct {
	// MaxUnavailable is how many workers may be out of service at the same time: a number, or a percentage of the
	// static workers that the run may touch (--host and --selector narrow them), rounded down, one at least. An
	// upgrade begins only when each of these that has joined is healthy. The control plane is always upgraded one host
	// at a time. Default: 1.
	MaxUnavailable string `json:"maxUnavailable,omitempty"`
	// MaxParallel is how many workers are upgraded at the same time; 0 means as many as maxUnavailable
	// allows. Default: 0.
	MaxParallel int `json:"maxParallel,omitempty"`
	// Canary upgrades one worker first, alone, and goes on only if it is healthy afterwards: when it was skipped
	// (drain.onTimeout), the others wait for another run. Default: true.
	Canary *bool `json:"canary,omitempty"`
	// Drain is how pods leave a node.
	Drain DrainConfig `json:"drain,omitzero"`
}

// DrainConfig is how pods leave a node before it is taken out of service. Disruption budgets are respected in any case
// but onTimeout: force.
type DrainConfig struct {
	// Timeout is how long pods may take to leave one node, as a Go duration. Default: 5m.
	Timeout string `json:"timeout,omitempty"`
	// OnTimeout is what happens to a node whose pods are still there then: stop opens it for pods again and ends the
	// run with an error, skip opens it again, goes on with the other workers and ends with an error too, force deletes
	// the pods whatever their disruption budgets say. A control-plane host is never skipped: skip means stop there.
	// Default: stop.
	OnTimeout string `json:"onTimeout,omitempty"`
	// GracePeriod is how long a pod may take to end itself, as a Go duration of whole seconds. Default: each pod's own.
	GracePeriod string `json:"gracePeriod,omitempty"`
}

// BackupConfig is about snapshots of etcd and backups of the cluster.
type BackupConfig struct {
	// Recipients is the age public keys (age1…) that a backup is encrypted to; each of their owners can restore it. A
	// backup holds the cluster's private keys, so without a recipient none is written.
	Recipients []string `json:"recipients,omitempty"`
	// Target is where backups are kept, off the hosts: a folder of the operator's machine (relative to the manifest's
	// folder), ssh://user@host:port/folder or s3://bucket/prefix. Credentials are not written here: SSH uses the
	// operator's keys, S3 AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and AWS_ENDPOINT_URL_S3.
	Target string `json:"target,omitempty"`
	// Schedule is how often each control-plane host takes a snapshot of etcd for itself, as a Go duration of whole
	// minutes; 0 means never. Default: 6h.
	Schedule string `json:"schedule,omitempty"`
	// Keep is how many snapshots a host keeps. Default: 10.
	Keep *int `json:"keep,omitempty"`
}
