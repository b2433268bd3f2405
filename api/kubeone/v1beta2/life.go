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

// UpgradeConfig sets how workers are taken out of service for an upgrade.
type UpgradeConfig struct {
	// MaxUnavailable is how many workers may be out of service at the same time: a number, or a percentage of the
	// static workers that the run may touch, rounded down, at least one. An upgrade starts only if each of these
	// workers that has joined is healthy. Control-plane hosts are always upgraded one at a time. Default: 1.
	MaxUnavailable string `json:"maxUnavailable,omitempty"`
	// MaxParallel is how many workers are upgraded at the same time; 0 means as many as maxUnavailable allows. Default:
	// 0.
	MaxParallel int `json:"maxParallel,omitempty"`
	// Canary upgrades one worker first and continues only if it is healthy. If that worker was skipped
	// (drain.onTimeout), the others wait for another run. Default: true.
	Canary *bool `json:"canary,omitempty"`
	// Drain sets how pods leave a node before it is taken out of service. Drains respect disruption budgets, except
	// with onTimeout: force.
	Drain DrainConfig `json:"drain,omitzero"`
}

// DrainConfig sets how pods leave a node.
type DrainConfig struct {
	// Timeout is the time that pods have to leave one node, as a Go duration. Default: 5m.
	Timeout string `json:"timeout,omitempty"`
	// OnTimeout sets what happens if pods remain. stop uncordons the node and ends the run with an error. skip
	// uncordons it, continues with the other workers and ends with an error. force deletes the pods despite their
	// disruption budgets. On a control-plane host, skip means stop. Default: stop.
	OnTimeout string `json:"onTimeout,omitempty"`
	// GracePeriod is the termination grace period of a pod, as a Go duration of whole seconds. Default: each pod's own.
	GracePeriod string `json:"gracePeriod,omitempty"`
}

// BackupConfig configures snapshots of etcd and backups of the cluster.
type BackupConfig struct {
	// Recipients are age public keys (age1…). The owner of any of them can restore a backup. kubeone writes no backup
	// without a recipient, because a backup holds the cluster's private keys.
	Recipients []string `json:"recipients,omitempty"`
	// Target is where backups are stored: a folder on the operator's machine (relative to the manifest's folder),
	// ssh://user@host:port/folder or s3://bucket/prefix. SSH uses the operator's keys. S3 uses AWS_ACCESS_KEY_ID,
	// AWS_SECRET_ACCESS_KEY, AWS_REGION and AWS_ENDPOINT_URL_S3.
	Target string `json:"target,omitempty"`
	// Schedule is the interval between the etcd snapshots that each control-plane host takes, as a Go duration of whole
	// minutes; 0 means never. Default: 6h.
	Schedule string `json:"schedule,omitempty"`
	// Keep is the number of snapshots that a host keeps. Default: 10.
	Keep *int `json:"keep,omitempty"`
}
