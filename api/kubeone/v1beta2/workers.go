package v1beta2

// Raw is a part of the manifest whose fields belong to someone else: a cloud's machine specification, a chart's values.
type Raw map[string]any

// DynamicWorkerConfig is a set of worker machines that machine-controller creates.
type DynamicWorkerConfig struct {
	// Name is the MachineDeployment's name: 63 lower-case letters, digits, dashes and dots at most. Required.
	Name string `json:"name"`
	// Replicas is how many machines there are.
	Replicas *int `json:"replicas,omitempty"`
	// ProviderSpec is how each machine is made.
	ProviderSpec ProviderSpec `json:"providerSpec,omitzero"`
}

// ProviderSpec is how a worker machine is made.
type ProviderSpec struct {
	// CloudProviderSpec is the cloud's own specification of a machine.
	CloudProviderSpec Raw `json:"cloudProviderSpec,omitempty" secret:"keys"`
	// Annotations is the MachineDeployment's annotations.
	Annotations map[string]string `json:"annotations,omitempty"`
	// MachineAnnotations is read for older manifests alone. Deprecated: use nodeAnnotations.
	MachineAnnotations map[string]string `json:"machineAnnotations,omitempty" carried:"nothing to do"`
	// NodeAnnotations is the nodes' annotations.
	NodeAnnotations map[string]string `json:"nodeAnnotations,omitempty"`
	// MachineObjectAnnotations is the Machine objects' annotations.
	MachineObjectAnnotations map[string]string `json:"machineObjectAnnotations,omitempty"`
	// Labels is the nodes' labels.
	Labels map[string]string `json:"labels,omitempty"`
	// Taints is the nodes' taints.
	Taints []Taint `json:"taints,omitempty"`
	// SSHPublicKeys is the keys that may log in. A host that exists has its own.
	SSHPublicKeys []string `json:"sshPublicKeys,omitempty" carried:"no" lines:"yes"`
	// OperatingSystem is the machines' operating system. A host that exists has one.
	OperatingSystem string `json:"operatingSystem,omitempty" carried:"no"`
	// OperatingSystemSpec is settings of the operating system. A host that exists keeps its own.
	OperatingSystemSpec Raw `json:"operatingSystemSpec,omitempty" carried:"no" secret:"keys"`
	// Network is the machines' static network. A host that exists has one.
	Network *ProviderStaticNetworkConfig `json:"network,omitempty" carried:"no"`
	// OverwriteCloudConfig replaces the machines' user data. A host that exists has read its own.
	OverwriteCloudConfig *string `json:"overwriteCloudConfig,omitempty" carried:"no" secret:"true" lines:"yes"`
}

// ProviderStaticNetworkConfig is a machine's static network.
type ProviderStaticNetworkConfig struct {
	// CIDR is the machine's address and prefix length.
	CIDR string `json:"cidr,omitempty"`
	// Gateway is the default gateway.
	Gateway string `json:"gateway,omitempty"`
	// DNS is the name servers.
	DNS DNSConfig `json:"dns,omitzero"`
	// IPFamily is IPv4, IPv6 or both.
	IPFamily string `json:"ipFamily,omitempty"`
}

// DNSConfig is a machine's name servers.
type DNSConfig struct {
	// Servers is the name servers' addresses.
	Servers []string `json:"servers,omitempty"`
}

// MachineControllerConfig says whether the controllers of Machines run in the cluster.
type MachineControllerConfig struct {
	// Deploy has them run on the control-plane hosts. Left out, they do where there are dynamicWorkers.
	Deploy *bool `json:"deploy,omitempty"`
}

// OperatingSystemManagerConfig configures operating-system-manager.
type OperatingSystemManagerConfig struct {
	// Deploy installs it.
	Deploy *bool `json:"deploy,omitempty"`
	// EnableNonRootDeviceOwnership lets containers that do not run as root own devices.
	EnableNonRootDeviceOwnership bool `json:"enableNonRootDeviceOwnership,omitempty"`
}

// NodeSet is control-plane machines that are created through a cloud's API.
type NodeSet struct {
	// Name is the set's name. Required.
	Name string `json:"name"`
	// Replicas is how many machines there are.
	Replicas *int `json:"replicas,omitempty"`
	// Generation is raised to replace the machines.
	Generation int64 `json:"generation,omitempty"`
	// NodeSettings is the nodes' metadata.
	NodeSettings NodeSettings `json:"nodeSettings,omitzero"`
	// OperatingSystem is the machines' operating system.
	OperatingSystem string `json:"operatingSystem,omitempty"`
	// OperatingSystemSpec is settings of the operating system.
	OperatingSystemSpec OperatingSystemSpec `json:"operatingSystemSpec,omitzero"`
	// SSH is how the machines are reached.
	SSH NodeSetSSH `json:"ssh,omitzero"`
	// CloudProviderSpec is the cloud's own specification of a machine.
	CloudProviderSpec Raw `json:"cloudProviderSpec,omitempty" secret:"keys"`
}

// NodeSettings is the metadata of a set's nodes.
type NodeSettings struct {
	// Labels is the nodes' labels.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations is the nodes' annotations.
	Annotations map[string]string `json:"annotations,omitempty"`
	// Taints is the nodes' taints.
	Taints []Taint `json:"taints,omitempty"`
}

// OperatingSystemSpec is settings of a set's operating system.
type OperatingSystemSpec struct {
	// DistUpgradeOnBoot upgrades all packages at the first boot.
	DistUpgradeOnBoot bool `json:"distUpgradeOnBoot,omitempty"`
}

// NodeSetSSH is how a set's machines are reached.
type NodeSetSSH struct {
	// PublicKeys is the keys that may log in.
	PublicKeys []string `json:"publicKeys,omitempty" lines:"yes"`
	// Port is the SSH port.
	Port int `json:"port,omitempty"`
	// Username is the user that logs in.
	Username string `json:"username,omitempty"`
	// PrivateKeyFile is the file with the private key.
	PrivateKeyFile string `json:"privateKeyFile,omitempty"`
	// CertFile is the file with the private key's certificate.
	CertFile string `json:"certFile,omitempty"`
	// HostPublicKey is the machines' public key in base64.
	HostPublicKey string `json:"hostPublicKey,omitempty" lines:"yes"`
	// AgentSocket is the SSH agent's socket.
	AgentSocket string `json:"agentSocket,omitempty"`
	// Bastion is the jump host's address.
	Bastion string `json:"bastion,omitempty"`
	// BastionPort is the jump host's SSH port.
	BastionPort int `json:"bastionPort,omitempty"`
	// BastionUser is the user that logs in to the jump host.
	BastionUser string `json:"bastionUser,omitempty"`
	// BastionHostPublicKey is the jump host's public key in base64.
	BastionHostPublicKey string `json:"bastionHostPublicKey,omitempty" lines:"yes"`
	// BastionPrivateKeyFile is the file with the private key for the jump host.
	BastionPrivateKeyFile string `json:"bastionPrivateKeyFile,omitempty"`
}
