package v1beta2

// WebhookAuditLog sends audit events to a server.
type WebhookAuditLog struct {
	// Enable turns it on. Default: false.
	Enable bool `json:"enable,omitempty"`
	// Config is the configuration. Unset fields keep the API server's defaults.
	Config WebhookAuditLogConfig `json:"config,omitzero"`
}

// WebhookAuditLogConfig sets where and how audit events are sent.
type WebhookAuditLogConfig struct {
	// PolicyFilePath is an audit policy (Policy of audit.k8s.io/v1) on the operator's machine, relative to the
	// manifest's folder.
	PolicyFilePath string `json:"policyFilePath,omitempty"`
	// Policy is the content of the policy, instead of a path.
	Policy string `json:"policy,omitempty" lines:"yes"`
	// ConfigFilePath is a kubeconfig with the server's address and credentials, on the operator's machine, relative to
	// the manifest's folder. It must contain certificates and keys, not name files.
	ConfigFilePath string `json:"configFilePath,omitempty"`
	// Kubeconfig is the content of the kubeconfig, instead of a path.
	Kubeconfig string `json:"kubeconfig,omitempty" secret:"true" lines:"yes"`
	// KubeconfigDigest is the kubeconfig's sha256 in hex. The copy of the manifest in the cluster has it instead of the
	// kubeconfig.
	KubeconfigDigest string `json:"kubeconfigDigest,omitempty"`
	// InitialBackOff is the delay before the API server retries a failed request.
	InitialBackOff string `json:"initialBackOff,omitempty"`
	// Mode is `batch`, `blocking` or `blocking-strict`.
	Mode string `json:"mode,omitempty"`
	// Version is the format of the events: `audit.k8s.io/v1`.
	Version string `json:"version,omitempty"`
	// Batch sets how mode batch collects events.
	Batch WebhookAuditLogBatch `json:"batch,omitzero"`
	// Truncate limits the size of events.
	Truncate WebhookAuditLogTruncate `json:"truncate,omitzero"`
}

// WebhookAuditLogBatch sets how events are collected before they are sent.
type WebhookAuditLogBatch struct {
	// BufferSize is the number of waiting events; further ones are dropped.
	BufferSize int `json:"bufferSize,omitempty"`
	// MaxSize is the number of events in a batch.
	MaxSize int `json:"maxSize,omitempty"`
	// MaxWait is the longest time before a batch is sent.
	MaxWait string `json:"maxWait,omitempty"`
	// Throttle limits how often events are sent.
	Throttle WebhookAuditLogThrottle `json:"throttle,omitzero"`
}

// WebhookAuditLogThrottle limits how often events are sent.
type WebhookAuditLogThrottle struct {
	// Disable removes the limit. Default: false.
	Disable bool `json:"disable,omitempty"`
	// Burst is the number of batches that may be sent at once after a pause.
	Burst int `json:"burst,omitempty"`
	// QPS is the number of batches per second, such as 10 or 0.5.
	QPS string `json:"QPS,omitempty"`
}

// WebhookAuditLogTruncate limits the size of events.
type WebhookAuditLogTruncate struct {
	// Enable truncates larger events. Default: false.
	Enable bool `json:"enable,omitempty"`
	// MaxBatchSize is the maximum size of a batch in bytes.
	MaxBatchSize int `json:"maxBatchSize,omitempty"`
	// MaxEventSize is the maximum size of an event in bytes.
	MaxEventSize int `json:"maxEventSize,omitempty"`
}
