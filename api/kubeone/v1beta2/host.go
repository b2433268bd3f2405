package v1beta2

// HostConfig is one host, and how it is reached.
type HostConfig struct {
	// ID is the host's identity, for as long as the machine is this host: opaque, unique in the manifest, and kept on
	// the host. Hosts with an ID, or a hostname, are recognised when they swap addresses. An ID that is given later
	// replaces the derived one. Default: derived once, from the address at which the host is installed.
	ID string `json:"id,omitempty"`
	// PublicAddress is the IP address or DNS name at which the host is reached over SSH. Required, or else
	// privateAddress. Default: privateAddress.
	PublicAddress string `json:"publicAddress,omitempty"`
	// PrivateAddress is the IP address at which the other hosts reach it. It must be given where publicAddress is a DNS
	// name. Default: publicAddress.
	PrivateAddress string `json:"privateAddress,omitempty"`
	// IPv6Addresses is the host's IPv6 addresses. Its Node and its etcd member are recognised by them too. None is
	// announced to Kubernetes: dual stack is not carried out.
	IPv6Addresses []string `json:"ipv6Addresses,omitempty"`
	// Hostname is the node's name. Default: what the host itself says.
	Hostname string `json:"hostname,omitempty"`
	// IsLeader marks the control-plane host on which a new cluster begins; at most one. Default: the first host.
	IsLeader bool `json:"isLeader,omitempty"`
	// OperatingSystem is the distribution, by a name from [the table](operating-systems.md). Each host is asked itself,
	// so the name need not be given. Default: what the host itself says.
	OperatingSystem string `json:"operatingSystem,omitempty" carried:"nothing to do"`
	// Taints is the node's taints; an empty list means none. Default: node-role.kubernetes.io/control-plane:NoSchedule
	// on control-plane hosts, none on workers.
	Taints []Taint `json:"taints,omitzero"`
	// Labels is labels of the node; a key that ends in "-" is removed from it.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations is annotations of the node; a key that ends in "-" is removed from it.
	Annotations map[string]string `json:"annotations,omitempty"`
	// Kubelet is the kubelet's settings on this host; they win over kubeletConfig field by field.
	Kubelet KubeletConfig `json:"kubelet,omitzero"`
	// Versions is the versions of this worker, where they differ from the cluster's. Only for workers.
	Versions HostVersions `json:"versions,omitzero"`

	SSHConfig `json:",inline"`
}

// HostVersions is the versions of one worker. When they change, up or down, it alone is drained and changed.
type HostVersions struct {
	// Kubernetes is the version of the kubelet: not newer than versions.kubernetes, and at most three minors older.
	// kubeadm and kube-proxy stay at versions.kubernetes. Default: versions.kubernetes.
	Kubernetes string `json:"kubernetes,omitempty"`
	// Containerd is the version of the container runtime; it must be one that the kubelet supports. Without it the
	// container runtime stays as it is until the next upgrade of the host, which brings the one that goes with
	// versions.kubernetes.
	Containerd string `json:"containerd,omitempty"`
}

// SSHConfig is how a host is reached over SSH. What is not set here is taken from the operator's ~/.ssh/config.
type SSHConfig struct {
	// SSHPort is the host's SSH port. Default: 22.
	SSHPort int `json:"sshPort,omitempty"`
	// SSHUsername is the user that logs in; it must be root or able to use sudo without a password. Default: root.
	SSHUsername string `json:"sshUsername,omitempty"`
	// SSHPrivateKeyFile is the file with the private key; relative to the manifest's folder, ~/ is the home directory.
	SSHPrivateKeyFile string `json:"sshPrivateKeyFile,omitempty"`
	// SSHCertFile is the file with the private key's certificate; relative to the manifest's folder.
	SSHCertFile string `json:"sshCertFile,omitempty"`
	// SSHHostPublicKey is the host's public key in base64, as in the second column of /etc/ssh/ssh_host_*_key.pub. When
	// set, no other key is accepted.
	SSHHostPublicKey string `json:"sshHostPublicKey,omitempty" lines:"yes"`
	// SSHAgentSocket is the SSH agent's socket: an absolute path, env:NAME for the path in a variable, or none.
	// Default: env:SSH_AUTH_SOCK, if there is no key file.
	SSHAgentSocket string `json:"sshAgentSocket,omitempty"`
	// Bastion is the address of a jump host through which the host is reached.
	Bastion string `json:"bastion,omitempty"`
	// BastionPort is the jump host's SSH port. Default: 22.
	BastionPort int `json:"bastionPort,omitempty"`
	// BastionUser is the user that logs in to the jump host. Default: sshUsername.
	BastionUser string `json:"bastionUser,omitempty"`
	// BastionHostPublicKey is the jump host's public key in base64; when set, no other key is accepted.
	BastionHostPublicKey string `json:"bastionHostPublicKey,omitempty" lines:"yes"`
	// BastionPrivateKeyFile is the file with the private key for the jump host. Default: sshPrivateKeyFile.
	BastionPrivateKeyFile string `json:"bastionPrivateKeyFile,omitempty"`
}

// Taint is a node's taint.
type Taint struct {
	// Key is the taint's key. Required.
	Key string `json:"key"`
	// Value is the taint's value.
	Value string `json:"value,omitempty"`
	// Effect is NoSchedule, PreferNoSchedule or NoExecute. Required.
	Effect string `json:"effect"`
}

// KubeletConfig is the kubelet's settings. What is not set is left to the kubelet.
type KubeletConfig struct {
	// SystemReserved is resources kept for the system, such as cpu: 200m; also memory, ephemeral-storage and pid.
	SystemReserved map[string]string `json:"systemReserved,omitempty"`
	// KubeReserved is resources kept for Kubernetes' own processes, such as memory: 300Mi; the same four.
	KubeReserved map[string]string `json:"kubeReserved,omitempty"`
	// EvictionHard is thresholds at which pods are evicted, by the kubelet's signals: memory.available: 100Mi, or
	// nodefs.available: 10%. 0% means no threshold.
	EvictionHard map[string]string `json:"evictionHard,omitempty"`
	// MaxPods is how many pods the node runs at most.
	MaxPods *int32 `json:"maxPods,omitempty"`
	// PodPidsLimit is how many processes a pod may have; -1 means no limit.
	PodPidsLimit *int64 `json:"podPidsLimit,omitempty"`
	// ImageGCHighThresholdPercent is the disk usage, 0 to 100 %, above which unused images are always removed.
	ImageGCHighThresholdPercent *int32 `json:"imageGCHighThresholdPercent,omitempty"`
	// ImageGCLowThresholdPercent is the disk usage, 0 to 100 %, down to which unused images are removed.
	ImageGCLowThresholdPercent *int32 `json:"imageGCLowThresholdPercent,omitempty"`
	// ImageMinimumGCAge is how old an unused image must be before it is removed, as a Go duration.
	ImageMinimumGCAge string `json:"imageMinimumGCAge,omitempty"`
	// ImageMaximumGCAge is how long an image may stay unused before it is removed, as a Go duration; 0s means forever.
	ImageMaximumGCAge string `json:"imageMaximumGCAge,omitempty"`
}
