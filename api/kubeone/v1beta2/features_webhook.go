package v1beta2

// WebhookAuditLog is audit events that are sent to a server.
type WebhookAuditLog struct {
	// Enable switches it on. Default: false.
	Enable bool `json:"enable,omitempty"`
	// Config is its configuration.
	Config WebhookAuditLogConfig `json:"config,omitzero"`
}

// WebhookAuditLogConfig says where audit events are sent, and how. What is not set is left to the API server.
type WebhookAuditLogConfig struct {
	// PolicyFilePath is the audit policy, a Policy of audit.k8s.io/v1, on the operator's machine, relative to the
	// manifest's folder.
	PolicyFilePath string `json:"policyFilePath,omitempty"`
	// Policy is that file's content, in its place.
	Policy string `json:"policy,omitempty" lines:"yes"`
	// ConfigFilePath is a kubeconfig with the server's address and the credentials for it, on the operator's machine,
	// relative to the manifest's folder. It has certificates and keys in itself, not as names of files.
	ConfigFilePath string `json:"configFilePath,omitempty"`
	// Kubeconfig is that file's content, in its place.
	Kubeconfig string `json:"kubeconfig,omitempty" secret:"true" lines:"yes"`
	// KubeconfigDigest is the kubeconfig's sha256 in hex. The manifest that is kept in the cluster has it in the
	// kubeconfig's place.
	KubeconfigDigest string `json:"kubeconfigDigest,omitempty"`
	// InitialBackOff is how long the API server waits before it tries a failed request again.
	InitialBackOff string `json:"initialBackOff,omitempty"`
	// Mode is `batch`, `blocking` or `blocking-strict`.
	Mode string `json:"mode,omitempty"`
	// Version is the format of the events: `audit.k8s.io/v1`.
	Version string `json:"version,omitempty"`
	// Batch says how events are collected in mode batch.
	Batch WebhookAuditLogBatch `json:"batch,omitzero"`
	// Truncate says how large events may be.
	Truncate WebhookAuditLogTruncate `json:"truncate,omitzero"`
}

// WebhookAuditLogBatch says how events are collected before they are sent.
type WebhookAuditLogBatch struct {
	// BufferSize is how many events wait before further ones are dropped.
	BufferSize int `json:"bufferSize,omitempty"`
	// MaxSize is how many events are sent at a time.
	MaxSize int `json:"maxSize,omitempty"`
	// MaxWait is after how long they are sent, however few.
	MaxWait string `json:"maxWait,omitempty"`
	// Throttle limits how often events are sent.
	Throttle WebhookAuditLogThrottle `json:"throttle,omitzero"`
}

// WebhookAuditLogThrottle limits how often events are sent.
type WebhookAuditLogThrottle struct {
	// Disable switches the limit off. Default: false.
	Disable bool `json:"disable,omitempty"`
	// Burst is how many batches may be sent at once after a pause.
	Burst int `json:"burst,omitempty"`
	// QPS is how many batches are sent in a second, such as 10 or 0.5.
	QPS string `json:"QPS,omitempty"`
}

// WebhookAuditLogTruncate says how large events may be.
type WebhookAuditLogTruncate struct {
	// Enable has larger ones cut off. Default: false.
	Enable bool `json:"enable,omitempty"`
	// MaxBatchSize is the most bytes of a batch.
	MaxBatchSize int `json:"maxBatchSize,omitempty"`
	// MaxEventSize is the most bytes of an event.
	MaxEventSize int `json:"maxEventSize,omitempty"`
}
