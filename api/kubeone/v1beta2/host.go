package v1beta2

// HostConfig describes one host and how to reach it.
type HostConfig struct {
	// ID is the host's identity: opaque, unique in the manifest, and stored on the host. Hosts with an ID or a hostname
	// are recognised when they swap addresses. An ID that you add later replaces the derived one. Default: derived once
	// from the host's address at installation.
	ID string `json:"id,omitempty"`
	// PublicAddress is the IP address or DNS name for SSH. Required unless privateAddress is set. Default:
	// privateAddress.
	PublicAddress string `json:"publicAddress,omitempty"`
	// PrivateAddress is the IP address that the other hosts use. Mandatory if publicAddress is a DNS name. Default:
	// publicAddress.
	PrivateAddress string `json:"privateAddress,omitempty"`
	// IPv6Addresses are the host's IPv6 addresses. They help to recognise its Node and etcd member. In a dual-stack
	// cluster they are required, and the first one is an address of the Node.
	IPv6Addresses []string `json:"ipv6Addresses,omitempty"`
	// Hostname is the name of the Node. Default: the host's own hostname.
	Hostname string `json:"hostname,omitempty"`
	// IsLeader marks the control-plane host where a new cluster starts; at most one. Default: the first host.
	IsLeader bool `json:"isLeader,omitempty"`
	// OperatingSystem is the distribution, by a name from [the table](operating-systems.md). kubeone detects the
	// distribution on each host.
	OperatingSystem string `json:"operatingSystem,omitempty" carried:"nothing to do"`
	// Taints are the Node's taints; an empty list means none. Default: node-role.kubernetes.io/control-plane:NoSchedule
	// on control-plane hosts, none on workers.
	Taints []Taint `json:"taints,omitzero"`
	// Labels are labels of the Node. A key that ends in "-" removes the label.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations are annotations of the Node. A key that ends in "-" removes the annotation.
	Annotations map[string]string `json:"annotations,omitempty"`
	// Kubelet sets the kubelet's settings on this host. They override kubeletConfig field by field.
	Kubelet KubeletConfig `json:"kubelet,omitzero"`
	// Versions sets this worker's own versions. A change drains and then upgrades or downgrades only this worker. Only
	// for workers.
	Versions HostVersions `json:"versions,omitzero"`

	SSHConfig `json:",inline"`
}

// HostVersions sets the versions of one worker.
type HostVersions struct {
	// Kubernetes is the kubelet's version: not newer than versions.kubernetes, and at most three minors older. kubeadm
	// and kube-proxy stay at versions.kubernetes. Default: versions.kubernetes.
	Kubernetes string `json:"kubernetes,omitempty"`
	// Containerd is a containerd version that the kubelet supports. If unset, containerd changes only with the host's
	// next upgrade.
	Containerd string `json:"containerd,omitempty"`
}

// SSHConfig sets how a host is reached over SSH. Unset fields come from the operator's ~/.ssh/config.
type SSHConfig struct {
	// SSHPort is the host's SSH port. Default: 22.
	SSHPort int `json:"sshPort,omitempty"`
	// SSHUsername is the login user: root, or a user with passwordless sudo. Default: root.
	SSHUsername string `json:"sshUsername,omitempty"`
	// SSHPrivateKeyFile is the private key file, relative to the manifest's folder. ~/ is the home directory.
	SSHPrivateKeyFile string `json:"sshPrivateKeyFile,omitempty"`
	// SSHCertFile is the certificate of the private key, relative to the manifest's folder.
	SSHCertFile string `json:"sshCertFile,omitempty"`
	// SSHHostPublicKey is the host's public key in base64, as in the second column of /etc/ssh/ssh_host_*_key.pub. If
	// set, kubeone accepts no other key.
	SSHHostPublicKey string `json:"sshHostPublicKey,omitempty" lines:"yes"`
	// SSHAgentSocket is the SSH agent's socket: an absolute path, env:NAME for the path in a variable, or none.
	// Default: env:SSH_AUTH_SOCK, if there is no key file.
	SSHAgentSocket string `json:"sshAgentSocket,omitempty"`
	// Bastion is the address of a jump host.
	Bastion string `json:"bastion,omitempty"`
	// BastionPort is the jump host's SSH port. Default: 22.
	BastionPort int `json:"bastionPort,omitempty"`
	// BastionUser is the login user on the jump host. Default: sshUsername.
	BastionUser string `json:"bastionUser,omitempty"`
	// BastionHostPublicKey is the jump host's public key in base64. If set, kubeone accepts no other key.
	BastionHostPublicKey string `json:"bastionHostPublicKey,omitempty" lines:"yes"`
	// BastionPrivateKeyFile is the private key file for the jump host. Default: sshPrivateKeyFile.
	BastionPrivateKeyFile string `json:"bastionPrivateKeyFile,omitempty"`
}

// Taint is a taint of a Node.
type Taint struct {
	// Key is the taint's key. Required.
	Key string `json:"key"`
	// Value is the taint's value.
	Value string `json:"value,omitempty"`
	// Effect is NoSchedule, PreferNoSchedule or NoExecute. Required.
	Effect string `json:"effect"`
}

// KubeletConfig configures the kubelet. Unset fields keep the kubelet's defaults.
type KubeletConfig struct {
	// SystemReserved reserves resources for the system, such as cpu: 200m. Keys: cpu, memory, ephemeral-storage, pid.
	SystemReserved map[string]string `json:"systemReserved,omitempty"`
	// KubeReserved reserves resources for Kubernetes' own processes, with the same keys.
	KubeReserved map[string]string `json:"kubeReserved,omitempty"`
	// EvictionHard sets eviction thresholds by the kubelet's signals, such as memory.available: 100Mi or
	// nodefs.available: 10%. 0% disables a threshold.
	EvictionHard map[string]string `json:"evictionHard,omitempty"`
	// MaxPods is the maximum number of pods on the node.
	MaxPods *int32 `json:"maxPods,omitempty"`
	// PodPidsLimit is the maximum number of processes in a pod; -1 means no limit.
	PodPidsLimit *int64 `json:"podPidsLimit,omitempty"`
	// ImageGCHighThresholdPercent is the disk usage in percent that triggers removal of unused images.
	ImageGCHighThresholdPercent *int32 `json:"imageGCHighThresholdPercent,omitempty"`
	// ImageGCLowThresholdPercent is the disk usage in percent where removal of unused images stops.
	ImageGCLowThresholdPercent *int32 `json:"imageGCLowThresholdPercent,omitempty"`
	// ImageMinimumGCAge is the minimum age of an unused image before removal, as a Go duration.
	ImageMinimumGCAge string `json:"imageMinimumGCAge,omitempty"`
	// ImageMaximumGCAge is how long an image may stay unused, as a Go duration; 0s means forever.
	ImageMaximumGCAge string `json:"imageMaximumGCAge,omitempty"`
}
