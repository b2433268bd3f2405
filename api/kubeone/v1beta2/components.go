package v1beta2

// ControlPlaneComponents overrides flags and feature gates of the control plane, at the operator's own risk.
type ControlPlaneComponents struct {
	// APIServer overrides kube-apiserver's.
	APIServer *ControlPlaneComponentConfig `json:"apiServer,omitempty"`
	// ControllerManager overrides kube-controller-manager's.
	ControllerManager *ControlPlaneComponentConfig `json:"controllerManager,omitempty"`
	// Scheduler overrides kube-scheduler's.
	Scheduler *ControlPlaneComponentConfig `json:"scheduler,omitempty"`
	// Etcd tunes etcd.
	Etcd *EtcdConfig `json:"etcd,omitempty"`
}

// ControlPlaneComponentConfig overrides flags and feature gates of one component.
type ControlPlaneComponentConfig struct {
	// Flags is flags without their dashes, such as profiling: "false"; feature-gates is not allowed here.
	Flags map[string]string `json:"flags,omitempty"`
	// FeatureGates switches feature gates on and off.
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
}

// EtcdConfig tunes etcd. What is not set is left to etcd.
type EtcdConfig struct {
	// QuotaBackendBytes is the database's largest size in bytes, 2147483648 (2 GiB) at least.
	QuotaBackendBytes int64 `json:"quotaBackendBytes,omitempty"`
	// AutoCompactionRetention is how much history is kept: a Go duration or a number of hours, or of revisions.
	AutoCompactionRetention string `json:"autoCompactionRetention,omitempty"`
	// AutoCompactionMode is `periodic` or `revision`.
	AutoCompactionMode string `json:"autoCompactionMode,omitempty"`
}

// TLSCipherSuites is the TLS 1.2 cipher suites that components offer, by the names of Go's crypto/tls. What is not set
// is left to the component.
type TLSCipherSuites struct {
	// APIServer is kube-apiserver's cipher suites.
	APIServer []string `json:"apiServer,omitempty"`
	// Etcd is etcd's cipher suites.
	Etcd []string `json:"etcd,omitempty"`
	// Kubelet is the kubelet's cipher suites.
	Kubelet []string `json:"kubelet,omitempty"`
}
