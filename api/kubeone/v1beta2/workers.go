package v1beta2

// Raw is a part of the manifest with fields that kubeone does not define: a cloud's machine specification, a chart's
// values.
type Raw map[string]any

// DynamicWorkerConfig is a set of worker Machines.
type DynamicWorkerConfig struct {
	// Name is the MachineDeployment's name: at most 63 lower-case letters, digits, dashes and dots. Required.
	Name string `json:"name"`
	// Replicas is the number of Machines.
	Replicas *int `json:"replicas,omitempty"`
	// ProviderSpec specifies each Machine. An existing host keeps its own keys, operating system and network.
	ProviderSpec ProviderSpec `json:"providerSpec,omitzero"`
}

// ProviderSpec specifies a worker Machine.
type ProviderSpec struct {
	// CloudProviderSpec is the provider's own specification of a machine.
	CloudProviderSpec Raw `json:"cloudProviderSpec,omitempty" secret:"keys"`
	// Annotations are the MachineDeployment's annotations.
	Annotations map[string]string `json:"annotations,omitempty"`
	// MachineAnnotations are accepted only for older manifests. Deprecated: use nodeAnnotations.
	MachineAnnotations map[string]string `json:"machineAnnotations,omitempty" carried:"nothing to do"`
	// NodeAnnotations are the Nodes' annotations.
	NodeAnnotations map[string]string `json:"nodeAnnotations,omitempty"`
	// MachineObjectAnnotations are the Machine objects' annotations.
	MachineObjectAnnotations map[string]string `json:"machineObjectAnnotations,omitempty"`
	// Labels are the Nodes' labels.
	Labels map[string]string `json:"labels,omitempty"`
	// Taints are the Nodes' taints.
	Taints []Taint `json:"taints,omitempty"`
	// SSHPublicKeys are the keys that may log in.
	SSHPublicKeys []string `json:"sshPublicKeys,omitempty" carried:"no" lines:"yes"`
	// OperatingSystem is the machines' operating system.
	OperatingSystem string `json:"operatingSystem,omitempty" carried:"no"`
	// OperatingSystemSpec configures the operating system.
	OperatingSystemSpec Raw `json:"operatingSystemSpec,omitempty" carried:"no" secret:"keys"`
	// Network is the machines' static network.
	Network *ProviderStaticNetworkConfig `json:"network,omitempty" carried:"no"`
	// OverwriteCloudConfig replaces the machines' user data.
	OverwriteCloudConfig *string `json:"overwriteCloudConfig,omitempty" carried:"no" secret:"true" lines:"yes"`
}

// ProviderStaticNetworkConfig is a machine's static network.
type ProviderStaticNetworkConfig struct {
	// CIDR is the machine's address and prefix length.
	CIDR string `json:"cidr,omitempty"`
	// Gateway is the default gateway.
	Gateway string `json:"gateway,omitempty"`
	// DNS has the name servers.
	DNS DNSConfig `json:"dns,omitzero"`
	// IPFamily is IPv4, IPv6 or both.
	IPFamily string `json:"ipFamily,omitempty"`
}

// DNSConfig has a machine's name servers.
type DNSConfig struct {
	// Servers are the name servers' addresses.
	Servers []string `json:"servers,omitempty"`
}

// MachineControllerConfig configures the controllers of Machines.
type MachineControllerConfig struct {
	// Deploy runs the controllers on the control-plane hosts. If unset, they run if there are dynamicWorkers.
	Deploy *bool `json:"deploy,omitempty"`
}

// OperatingSystemManagerConfig configures operating-system-manager.
type OperatingSystemManagerConfig struct {
	// Deploy installs it.
	Deploy *bool `json:"deploy,omitempty"`
	// EnableNonRootDeviceOwnership lets containers that do not run as root own devices.
	EnableNonRootDeviceOwnership bool `json:"enableNonRootDeviceOwnership,omitempty"`
}

// NodeSet is a set of control-plane machines that a cloud's API creates.
type NodeSet struct {
	// Name is the set's name. Required.
	Name string `json:"name"`
	// Replicas is the number of machines.
	Replicas *int `json:"replicas,omitempty"`
	// Generation replaces the machines when it grows.
	Generation int64 `json:"generation,omitempty"`
	// NodeSettings is the nodes' metadata.
	NodeSettings NodeSettings `json:"nodeSettings,omitzero"`
	// OperatingSystem is the machines' operating system.
	OperatingSystem string `json:"operatingSystem,omitempty"`
	// OperatingSystemSpec has settings of the operating system.
	OperatingSystemSpec OperatingSystemSpec `json:"operatingSystemSpec,omitzero"`
	// SSH sets how the machines are reached.
	SSH NodeSetSSH `json:"ssh,omitzero"`
	// CloudProviderSpec is the cloud's own specification of a machine.
	CloudProviderSpec Raw `json:"cloudProviderSpec,omitempty" secret:"keys"`
}

// NodeSettings is the metadata of a set's nodes.
type NodeSettings struct {
	// Labels are the nodes' labels.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations are the nodes' annotations.
	Annotations map[string]string `json:"annotations,omitempty"`
	// Taints are the nodes' taints.
	Taints []Taint `json:"taints,omitempty"`
}

// OperatingSystemSpec has settings of a set's operating system.
type OperatingSystemSpec struct {
	// DistUpgradeOnBoot upgrades all packages at the first boot.
	DistUpgradeOnBoot bool `json:"distUpgradeOnBoot,omitempty"`
}

// NodeSetSSH sets how a set's machines are reached.
type NodeSetSSH struct {
	// PublicKeys are the keys that may log in.
	PublicKeys []string `json:"publicKeys,omitempty" lines:"yes"`
	// Port is the SSH port.
	Port int `json:"port,omitempty"`
	// Username is the login user.
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
	// BastionUser is the login user on the jump host.
	BastionUser string `json:"bastionUser,omitempty"`
	// BastionHostPublicKey is the jump host's public key in base64.
	BastionHostPublicKey string `json:"bastionHostPublicKey,omitempty" lines:"yes"`
	// BastionPrivateKeyFile is the file with the private key for the jump host.
	BastionPrivateKeyFile string `json:"bastionPrivateKeyFile,omitempty"`
}
