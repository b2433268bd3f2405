package v1beta2

// KubeOneCluster is one cluster: its hosts, its versions and everything that is configured on them.
type KubeOneCluster struct {
	// APIVersion is always kubeone.k8c.io/v1beta2. Required.
	APIVersion string `json:"apiVersion"`
	// Kind is always KubeOneCluster. Required.
	Kind string `json:"kind"`
	// Name is the cluster's name, a DNS-1123 subdomain. Required, unless Terraform's output has one; where both have a
	// name, they must be equal.
	Name string `json:"name"`
	// ControlPlane is the hosts of the control plane. Terraform's list replaces the manifest's; a host in both keeps
	// the settings that the manifest has for it. Required, unless Terraform's output has hosts.
	ControlPlane ControlPlaneConfig `json:"controlPlane"`
	// StaticWorkers is the worker hosts that exist already. Terraform's are added.
	StaticWorkers StaticWorkersConfig `json:"staticWorkers,omitzero"`
	// APIEndpoint is where clients find the API.
	APIEndpoint APIEndpoint `json:"apiEndpoint,omitzero"`
	// Versions is the versions that are wanted. Required.
	Versions VersionConfig `json:"versions"`
	// CloudProvider is where the hosts run; exactly one provider must be named. Required, unless Terraform's output
	// names one.
	CloudProvider CloudProviderSpec `json:"cloudProvider"`
	// ClusterNetwork is the cluster's networks, the network plugin and kube-proxy.
	ClusterNetwork ClusterNetworkConfig `json:"clusterNetwork,omitzero"`
	// ContainerRuntime configures containerd.
	ContainerRuntime ContainerRuntimeConfig `json:"containerRuntime,omitzero"`
	// KubeletConfig is the kubelet's settings on all hosts; a host's own kubelet settings win field by field.
	KubeletConfig KubeletConfig `json:"kubeletConfig,omitzero"`
	// ControlPlaneComponents overrides flags and feature gates of the control plane.
	ControlPlaneComponents *ControlPlaneComponents `json:"controlPlaneComponents,omitempty"`
	// TLSCipherSuites is the TLS 1.2 cipher suites that components offer.
	TLSCipherSuites TLSCipherSuites `json:"tlsCipherSuites,omitzero"`
	// Proxy is the HTTP proxy that the hosts use.
	Proxy ProxyConfig `json:"proxy,omitzero"`
	// RegistryConfiguration replaces the registry of all images.
	RegistryConfiguration *RegistryConfiguration `json:"registryConfiguration,omitempty"`
	// LoggingConfig is the rotation of container logs.
	LoggingConfig LoggingConfig `json:"loggingConfig,omitzero"`
	// CertificateAuthority is additional trusted authorities and how long certificates live.
	CertificateAuthority CertificateAuthorityConfig `json:"certificateAuthority,omitzero"`
	// CABundle is PEM certificates that all hosts trust. Deprecated: use certificateAuthority.bundle.
	CABundle string `json:"caBundle,omitempty" lines:"yes"`
	// Preflight says which of kubeadm's preflight checks may fail.
	Preflight Preflight `json:"preflight,omitzero"`
	// Artifacts says where binaries and images are downloaded from.
	Artifacts Artifacts `json:"artifacts,omitzero"`
	// StrictHostKeys refuses hosts whose SSH host key is not known yet, as --strict-host-keys does. Default: false.
	StrictHostKeys bool `json:"strictHostKeys,omitempty"`
	// Hardening is how much of the CIS Kubernetes Benchmark the cluster's components and files follow by themselves:
	// baseline or none. What the manifest sets elsewhere wins. Default: baseline for a new cluster, and for one that is
	// there what it was made with.
	Hardening string `json:"hardening,omitempty"`
	// Firewall is what happens to ufw and firewalld where they are active: manage opens the ports that the cluster
	// needs, disable switches them off, and ignore leaves them alone. A reset undoes the first two. Default: manage.
	Firewall string `json:"firewall,omitempty"`
	// Upgrade is how nodes are taken out of service for an upgrade.
	Upgrade UpgradeConfig `json:"upgrade,omitzero"`
	// Backup is about snapshots of etcd and backups of the cluster.
	Backup BackupConfig `json:"backup,omitzero"`
	// Hooks is commands that run before and after what is done to the cluster and its hosts. Only the manifest has
	// them.
	Hooks []Hook `json:"hooks,omitempty"`

	// DynamicWorkers is worker machines that machine-controller creates.
	DynamicWorkers []DynamicWorkerConfig `json:"dynamicWorkers,omitempty" carried:"without a cloud"`
	// MachineController says whether the controllers of Machines run in the cluster.
	MachineController *MachineControllerConfig `json:"machineController,omitempty" carried:"without a cloud"`
	// OperatingSystemManager configures operating-system-manager.
	OperatingSystemManager *OperatingSystemManagerConfig `json:"operatingSystemManager,omitempty" carried:"no"`
	// Features is additional features of the cluster.
	Features Features `json:"features,omitzero"`
	// Addons is additional objects that are applied to the cluster.
	Addons *Addons `json:"addons,omitempty" carried:"no"`
	// HelmReleases is Helm charts that are installed in the cluster.
	HelmReleases []HelmRelease `json:"helmReleases,omitempty" carried:"no"`
	// SystemPackages is about package repositories of the operating system.
	SystemPackages *SystemPackages `json:"systemPackages,omitempty"`
}

// ControlPlaneConfig is the hosts of the control plane.
type ControlPlaneConfig struct {
	// Hosts is the control-plane hosts; an odd number, three or five for high availability. Required, unless
	// Terraform's output has hosts.
	Hosts []HostConfig `json:"hosts,omitempty"`
	// NodeSets is control-plane machines that are created through a cloud's API.
	NodeSets []NodeSet `json:"nodeSets,omitempty" carried:"no"`
}

// StaticWorkersConfig is the worker hosts that exist already.
type StaticWorkersConfig struct {
	// Hosts is the worker hosts.
	Hosts []HostConfig `json:"hosts,omitempty"`
}

// APIEndpoint is where clients find the API: usually a load balancer in front of the control plane.
type APIEndpoint struct {
	// Host is the endpoint's address or DNS name. Default: the first control-plane host's publicAddress.
	Host string `json:"host,omitempty"`
	// Port is the endpoint's port. Default: 6443.
	Port int `json:"port,omitempty"`
	// AlternativeNames is further DNS names and addresses in the API server's certificate. "*.example.com" stands for
	// all names with one more label.
	AlternativeNames []string `json:"alternativeNames,omitempty"`
}

// VersionConfig is the versions that are wanted.
type VersionConfig struct {
	// Kubernetes is the Kubernetes version, such as 1.36.3; a leading v is dropped. Required.
	Kubernetes string `json:"kubernetes"`
}

// ProxyConfig is the HTTP proxy that the hosts use.
type ProxyConfig struct {
	// HTTP is the proxy's URL for HTTP. A user and password in it are kept secret.
	HTTP string `json:"http,omitempty"`
	// HTTPS is the proxy's URL for HTTPS. A user and password in it are kept secret.
	HTTPS string `json:"https,omitempty"`
	// NoProxy is the comma-separated hosts, domains and networks that are reached directly. The loopback network,
	// localhost, the cluster's DNS domain, and the pod and service subnets are added.
	NoProxy string `json:"noProxy,omitempty"`
}

// RegistryConfiguration replaces the registry of all images.
type RegistryConfiguration struct {
	// OverwriteRegistry is the registry host, with an optional path, that replaces the registry host of every image.
	OverwriteRegistry string `json:"overwriteRegistry,omitempty"`
	// InsecureRegistry speaks plain HTTP to overwriteRegistry, or TLS without verification. What it serves needs a
	// known digest or --trust-source, under an official name too. Default: false.
	InsecureRegistry bool `json:"insecureRegistry,omitempty"`
}

// LoggingConfig is the rotation of container logs.
type LoggingConfig struct {
	// ContainerLogMaxSize is the size at which the kubelet rotates a container's log file. Default: 100Mi.
	ContainerLogMaxSize string `json:"containerLogMaxSize,omitempty"`
	// ContainerLogMaxFiles is how many log files the kubelet keeps of a container, 2 at least. Default: 5.
	ContainerLogMaxFiles int `json:"containerLogMaxFiles,omitempty"`
}

// CertificateAuthorityConfig is additional trusted authorities and how long certificates live.
type CertificateAuthorityConfig struct {
	// Bundle is PEM certificates that all hosts trust.
	Bundle string `json:"bundle,omitempty" lines:"yes"`
	// File is a file of PEM certificates, used instead of bundle; relative to the manifest's folder.
	File string `json:"file,omitempty"`
	// CertificateValidityPeriod is how long certificates live, as a Go duration. Default: 8760h.
	CertificateValidityPeriod string `json:"certificateValidityPeriod,omitempty"`
	// CACertificateValidityPeriod is how long the cluster's authorities live, as a Go duration. Default: 87600h.
	CACertificateValidityPeriod string `json:"caCertificateValidityPeriod,omitempty"`
}

// Preflight says which of kubeadm's preflight checks may fail.
type Preflight struct {
	// IgnoreErrors is the names of kubeadm's preflight checks whose failure is known and accepted, such as
	// SystemVerification.
	IgnoreErrors []string `json:"ignoreErrors,omitempty"`
}

// Artifacts says where binaries and images are downloaded from.
type Artifacts struct {
	// Mirror is the base URL of a mirror that serves the official locations under their host names: with
	// https://mirror.example.com, https://dl.k8s.io/x is fetched from https://mirror.example.com/dl.k8s.io/x. Plain
	// HTTP needs --insecure-mirror, and what no digest is known of --trust-source.
	Mirror string `json:"mirror,omitempty"`
}

// SystemPackages is about package repositories of the operating system.
type SystemPackages struct {
	// ConfigureRepositories adds the package repositories of Kubernetes. This installer needs none, so false asks for
	// what is done anyway.
	ConfigureRepositories *bool `json:"configureRepositories,omitempty" carried:"no,idle=false"`
}
