package v1beta2

// KubeOneCluster describes one cluster: its hosts, its versions and its settings.
type KubeOneCluster struct {
	// APIVersion is always kubeone.k8c.io/v1beta2. Required.
	APIVersion string `json:"apiVersion"`
	// Kind is always KubeOneCluster. Required.
	Kind string `json:"kind"`
	// Name is the cluster's name, a DNS-1123 subdomain. Required, unless Terraform's output has one; if both have a
	// name, the names must be equal.
	Name string `json:"name"`
	// ControlPlane lists the control-plane hosts.
	ControlPlane ControlPlaneConfig `json:"controlPlane"`
	// StaticWorkers lists the existing worker hosts.
	StaticWorkers StaticWorkersConfig `json:"staticWorkers,omitzero"`
	// APIEndpoint is the address where clients reach the API, usually a load balancer.
	APIEndpoint APIEndpoint `json:"apiEndpoint,omitzero"`
	// Versions sets the cluster's versions. Required.
	Versions VersionConfig `json:"versions"`
	// CloudProvider names the cloud that the hosts run on; exactly one. Required, unless Terraform's output names one.
	CloudProvider CloudProviderSpec `json:"cloudProvider"`
	// ClusterNetwork configures networks, the network plugin and kube-proxy.
	ClusterNetwork ClusterNetworkConfig `json:"clusterNetwork,omitzero"`
	// ContainerRuntime configures containerd.
	ContainerRuntime ContainerRuntimeConfig `json:"containerRuntime,omitzero"`
	// KubeletConfig sets the kubelet's settings on all hosts. A host's own settings override them field by field. Unset
	// fields keep the kubelet's defaults.
	KubeletConfig KubeletConfig `json:"kubeletConfig,omitzero"`
	// ControlPlaneComponents overrides flags and feature gates of the control plane, at your own risk.
	ControlPlaneComponents *ControlPlaneComponents `json:"controlPlaneComponents,omitempty"`
	// TLSCipherSuites restricts the TLS 1.2 cipher suites, by the names of Go's crypto/tls. Unset fields keep the
	// component's defaults.
	TLSCipherSuites TLSCipherSuites `json:"tlsCipherSuites,omitzero"`
	// Proxy is the HTTP proxy that the hosts use.
	Proxy ProxyConfig `json:"proxy,omitzero"`
	// RegistryConfiguration replaces the registry of all images.
	RegistryConfiguration *RegistryConfiguration `json:"registryConfiguration,omitempty"`
	// LoggingConfig configures the rotation of container logs.
	LoggingConfig LoggingConfig `json:"loggingConfig,omitzero"`
	// CertificateAuthority sets additional trusted CAs and the lifetime of certificates.
	CertificateAuthority CertificateAuthorityConfig `json:"certificateAuthority,omitzero"`
	// CABundle holds PEM certificates that all hosts trust. Deprecated: use certificateAuthority.bundle.
	CABundle string `json:"caBundle,omitempty" lines:"yes"`
	// Preflight lists kubeadm preflight checks that may fail.
	Preflight Preflight `json:"preflight,omitzero"`
	// Artifacts sets where hosts download binaries and images from.
	Artifacts Artifacts `json:"artifacts,omitzero"`
	// StrictHostKeys refuses hosts with an unknown SSH host key, like --strict-host-keys. Default: false.
	StrictHostKeys bool `json:"strictHostKeys,omitempty"`
	// Hardening sets whether the cluster follows the CIS Kubernetes Benchmark: baseline or none. Other settings in the
	// manifest override the baseline. Default: baseline for a new cluster; an existing cluster keeps its current
	// setting.
	Hardening string `json:"hardening,omitempty"`
	// Firewall sets what happens to an active ufw or firewalld: manage opens the cluster's ports, disable stops the
	// firewall, ignore leaves it alone. A reset reverts the first two. Default: manage.
	Firewall string `json:"firewall,omitempty"`
	// Upgrade sets how workers are taken out of service for an upgrade. A change does not start an upgrade. The flags
	// --max-unavailable, --max-parallel, --no-canary, --drain-timeout and --on-drain-timeout override these fields.
	Upgrade UpgradeConfig `json:"upgrade,omitzero"`
	// Backup configures snapshots of etcd and backups of the cluster.
	Backup BackupConfig `json:"backup,omitzero"`
	// Hooks are commands that run before and after an activity, for example to take a host out of a load balancer
	// before a drain. They are part of the plan. An interrupted run may run them again. Only the manifest can define
	// hooks.
	Hooks []Hook `json:"hooks,omitempty"`

	// DynamicWorkers are sets of worker Machines.
	DynamicWorkers []DynamicWorkerConfig `json:"dynamicWorkers,omitempty" carried:"without a cloud"`
	// MachineController configures the controllers of Machines.
	MachineController *MachineControllerConfig `json:"machineController,omitempty" carried:"without a cloud"`
	// OperatingSystemManager configures operating-system-manager.
	OperatingSystemManager *OperatingSystemManagerConfig `json:"operatingSystemManager,omitempty" carried:"no"`
	// Features configures additional features.
	Features Features `json:"features,omitzero"`
	// Addons are additional objects that are applied to the cluster.
	Addons *Addons `json:"addons,omitempty"`
	// HelmReleases are Helm charts that are installed in the cluster.
	HelmReleases []HelmRelease `json:"helmReleases,omitempty"`
	// SystemPackages configures package repositories of the operating system.
	SystemPackages *SystemPackages `json:"systemPackages,omitempty"`
}

// ControlPlaneConfig lists the hosts of the control plane.
type ControlPlaneConfig struct {
	// Hosts are the control-plane hosts: an odd number, three or five for high availability. Terraform's list replaces
	// the manifest's; a host in both keeps its settings from the manifest. Required, unless Terraform's output has
	// hosts.
	Hosts []HostConfig `json:"hosts,omitempty"`
	// NodeSets are control-plane machines that a cloud's API creates.
	NodeSets []NodeSet `json:"nodeSets,omitempty" carried:"no"`
}

// StaticWorkersConfig lists the existing worker hosts.
type StaticWorkersConfig struct {
	// Hosts are the worker hosts. Terraform's workers are added.
	Hosts []HostConfig `json:"hosts,omitempty"`
}

// APIEndpoint is the address where clients reach the API.
type APIEndpoint struct {
	// Host is the address or DNS name. Default: the first control-plane host's publicAddress.
	Host string `json:"host,omitempty"`
	// Port is the port. Default: 6443.
	Port int `json:"port,omitempty"`
	// AlternativeNames are further DNS names and addresses in the API server's certificate. "*.example.com" matches one
	// more label.
	AlternativeNames []string `json:"alternativeNames,omitempty"`
}

// VersionConfig sets the cluster's versions.
type VersionConfig struct {
	// Kubernetes is the Kubernetes version, such as 1.36.3; a leading v is dropped. Required.
	Kubernetes string `json:"kubernetes"`
}

// ProxyConfig is the HTTP proxy of the hosts.
type ProxyConfig struct {
	// HTTP is the URL of the proxy for HTTP. A user and password in it are kept secret.
	HTTP string `json:"http,omitempty"`
	// HTTPS is the URL of the proxy for HTTPS. A user and password in it are kept secret.
	HTTPS string `json:"https,omitempty"`
	// NoProxy is a comma-separated list of hosts, domains and networks to reach directly. kubeone adds the loopback
	// network, localhost, the cluster's DNS domain, and the pod and service subnets.
	NoProxy string `json:"noProxy,omitempty"`
}

// RegistryConfiguration replaces the registry of all images.
type RegistryConfiguration struct {
	// OverwriteRegistry is a registry host, with an optional path. It replaces the registry host of every image.
	OverwriteRegistry string `json:"overwriteRegistry,omitempty"`
	// InsecureRegistry uses plain HTTP, or TLS without verification, for overwriteRegistry. Its images need a known
	// digest or --trust-source. Default: false.
	InsecureRegistry bool `json:"insecureRegistry,omitempty"`
}

// LoggingConfig configures the rotation of container logs.
type LoggingConfig struct {
	// ContainerLogMaxSize is the size that triggers rotation of a container's log file. Default: 100Mi.
	ContainerLogMaxSize string `json:"containerLogMaxSize,omitempty"`
	// ContainerLogMaxFiles is the number of log files kept per container, at least 2. Default: 5.
	ContainerLogMaxFiles int `json:"containerLogMaxFiles,omitempty"`
}

// CertificateAuthorityConfig sets additional trusted CAs and the lifetime of certificates.
type CertificateAuthorityConfig struct {
	// Bundle holds PEM certificates that all hosts trust.
	Bundle string `json:"bundle,omitempty" lines:"yes"`
	// File is a file of PEM certificates, used instead of bundle, relative to the manifest's folder.
	File string `json:"file,omitempty"`
	// CertificateValidityPeriod is the lifetime of certificates, as a Go duration. Default: 8760h.
	CertificateValidityPeriod string `json:"certificateValidityPeriod,omitempty"`
	// CACertificateValidityPeriod is the lifetime of the cluster's CAs, as a Go duration. Default: 87600h.
	CACertificateValidityPeriod string `json:"caCertificateValidityPeriod,omitempty"`
}

// Preflight lists kubeadm preflight checks that may fail.
type Preflight struct {
	// IgnoreErrors are names of kubeadm preflight checks that may fail, such as SystemVerification.
	IgnoreErrors []string `json:"ignoreErrors,omitempty"`
}

// Artifacts sets where hosts download binaries and images from.
type Artifacts struct {
	// Mirror is the base URL of a mirror that serves the official locations under their host names. With
	// https://mirror.example.com, https://dl.k8s.io/x is fetched from https://mirror.example.com/dl.k8s.io/x. Plain
	// HTTP needs --insecure-mirror. An artifact without a known digest needs --trust-source.
	Mirror string `json:"mirror,omitempty"`
}

// SystemPackages configures package repositories of the operating system.
type SystemPackages struct {
	// ConfigureRepositories adds the package repositories of Kubernetes. kubeone needs none and never adds them.
	ConfigureRepositories *bool `json:"configureRepositories,omitempty" carried:"no,idle=false"`
}
