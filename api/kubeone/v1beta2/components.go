package v1beta2

// ControlPlaneComponents overrides flags and feature gates of the control plane, at your own risk.
type ControlPlaneComponents struct {
	// APIServer configures kube-apiserver.
	APIServer *ControlPlaneComponentConfig `json:"apiServer,omitempty"`
	// ControllerManager configures kube-controller-manager.
	ControllerManager *ControlPlaneComponentConfig `json:"controllerManager,omitempty"`
	// Scheduler configures kube-scheduler.
	Scheduler *ControlPlaneComponentConfig `json:"scheduler,omitempty"`
	// Etcd configures etcd. Unset fields keep etcd's defaults.
	Etcd *EtcdConfig `json:"etcd,omitempty"`
}

// ControlPlaneComponentConfig overrides flags and feature gates of one component.
type ControlPlaneComponentConfig struct {
	// Flags are flags without dashes, such as profiling: "false". feature-gates is not allowed.
	Flags map[string]string `json:"flags,omitempty"`
	// FeatureGates switches feature gates on or off.
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
}

// EtcdConfig configures etcd.
type EtcdConfig struct {
	// QuotaBackendBytes is the maximum database size in bytes, at least 2147483648 (2 GiB).
	QuotaBackendBytes int64 `json:"quotaBackendBytes,omitempty"`
	// AutoCompactionRetention is how much history etcd keeps: a Go duration, a number of hours, or a number of
	// revisions.
	AutoCompactionRetention string `json:"autoCompactionRetention,omitempty"`
	// AutoCompactionMode is `periodic` or `revision`.
	AutoCompactionMode string `json:"autoCompactionMode,omitempty"`
}

// TLSCipherSuites restricts the TLS 1.2 cipher suites, by the names of Go's crypto/tls. Unset fields keep the
// component's defaults.
type TLSCipherSuites struct {
	// APIServer are the cipher suites of kube-apiserver.
	APIServer []string `json:"apiServer,omitempty"`
	// Etcd are the cipher suites of etcd.
	Etcd []string `json:"etcd,omitempty"`
	// Kubelet are the cipher suites of the kubelet.
	Kubelet []string `json:"kubelet,omitempty"`
}
