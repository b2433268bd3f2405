package problem

var conditionsRows = []row{
	{
		code: HostNotAsked, class: ClassConnection,
		meaning: "The host was not probed.",
		what:    "was not asked",
		do:      "start the host, or correct its address, its port or the network in between",
	},
	{
		code: HostUnreachable, class: ClassConnection,
		meaning: "No SSH connection to the host could be made.",
		what:    "{error}",
		do:      "start the host, or correct its address, its port or the network in between",
	},
	{
		code: HostKeyRefused, class: ClassSSH,
		meaning: "The host's SSH key is revoked, unknown where that is refused, or not the one of the manifest.",
		what:    "{error}",
		do:      "compare the fingerprint with the host's own, and correct known_hosts or the manifest",
	},
	{
		code: HostKeyChanged, class: ClassSSH,
		meaning: "The SSH key of the host, or of the bastion before it, is not the known one.",
		what:    "{name} shows the SSH host key {offered}, and not the known one: {known}",
		do: "compare with the machine's own, on its console: " +
			"ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub; if it was set up anew, accept that key with " +
			"--accept-host-key {name}={offered}; otherwise someone is intercepting the connection",
	},
	{
		code: HostKeyReplaced, class: ClassSSH,
		meaning: "Another SSH host key than the known one was accepted with --accept-host-key.",
		what: "{name} shows the SSH host key {offered} in place of the known one, {known}; approving a plan " +
			"records that",
		do: "compare with the machine's own, on its console: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub",
	},
	{
		code: HostLoginRefused, class: ClassSSH,
		meaning: "The host answers, but refuses the login or sudo.",
		what:    "{error}",
		do:      "correct the user, the key or the rights of sudo",
	},
	{
		code: HostUnclear, class: ClassRuntime,
		meaning: "The host answers, but cannot say whether it holds Kubernetes data.",
		what:    "cannot tell whether it has {items}",
		do:      "inspect the host: its file system may be damaged or read-only",
	},
	{
		code: HostUnwritable, class: ClassRuntime,
		meaning: "The worker answers, but nothing can be written there, so it cannot be locked and is not touched.",
		what:    "cannot be locked, so it is not touched: {error} (/var/lib/kubeone)",
		do:      "free space there, or repair its disk",
	},
	{
		code: ControlPlaneClaimed, class: ClassConfig,
		meaning: "A worker of the manifest has what only control-plane hosts have, and neither etcd nor the API " +
			"knows it as one. It is not touched.",
		what: "is a worker in the manifest, and has a control plane's marker, manifests or etcd data, of which " +
			"neither etcd nor the API knows; it is not touched",
		do: "find out how that came there; kubeone node replace makes it bare, keeps etcd's data, and joins it " +
			"again",
	},
	{
		code: ForeignCluster, class: ClassConfig,
		meaning: "The host carries the marker of another cluster. It is not touched.",
		what:    `belongs to cluster "{cluster}", not to "{wanted}"`,
		do: `use the manifest of cluster "{cluster}"; or, with that manifest, take the host out of it: ` +
			"kubeone reset --host {host}",
	},
	{
		code: ForeignCA, class: ClassConfig,
		meaning: "The host is marked as this cluster's, but what it holds was signed by another CA.",
		what:    `has {items} of another CA ({ca}) than cluster "{cluster}" ({wanted})`,
		do: "use the manifest that the host belongs to; or, if its data may be lost, run kubeone " +
			"reset --host {host}",
	},
	{
		code: ForeignCAWithoutMarker, class: ClassConfig,
		meaning: "The host holds data of another CA, and no marker says whose it is.",
		what:    `has {items} of another CA ({ca}) than cluster "{cluster}" ({wanted})`,
		do: "use the manifest that the host belongs to; or inspect /etc/kubernetes and /var/lib/etcd there, " +
			"and if their content may be lost, run kubeadm reset -f; rm -rf /etc/kubernetes /var/lib/etcd " +
			"/var/lib/kubelet",
	},
	{
		code: ForeignData, class: ClassConfig,
		meaning: "The host holds Kubernetes data, and nothing says whose it is.",
		what:    "has {items} of unknown origin",
		do: "use the manifest that the host belongs to; or inspect /etc/kubernetes and /var/lib/etcd there, " +
			"and if their content may be lost, run kubeadm reset -f; rm -rf /etc/kubernetes /var/lib/etcd " +
			"/var/lib/kubelet",
	},
	{
		code: HostEmpty, class: ClassRuntime,
		meaning: "Nothing of Kubernetes is on the host.",
		what:    "has no Kubernetes data",
		do:      "run kubeone apply: it installs the host",
	},
	{
		code: InstallationBegun, class: ClassRuntime,
		meaning: "An installation has begun on the host and has not written any Kubernetes data.",
		what:    "installation has begun; no Kubernetes data yet",
		do:      "run kubeone apply: it resumes the installation",
	},
	{
		code: InstallationIncomplete, class: ClassRuntime,
		meaning: "An installation of the host was interrupted.",
		what:    "installation is incomplete; has {items}",
		do:      "run kubeone apply: it resumes the installation",
	},
	{
		code: JoinIncomplete, class: ClassRuntime,
		meaning: "The join of a control-plane host was interrupted before its etcd member could vote.",
		what:    "its etcd member is still a learner",
		do:      "run kubeone apply: it resumes the join",
	},
	{
		code: NeverJoined, class: ClassRuntime,
		meaning: "The host holds files of this cluster, but was never a member.",
		what:    "has this cluster's {items}, but never joined",
		do:      "run kubeone apply: it resumes the installation",
	},
	{
		code: HostFenced, class: ClassRuntime,
		meaning: "A recovery of the cluster has stopped etcd and the API server here.",
		what:    "fenced by a recovery of the cluster (run {run})",
		do:      "let the recovery end; then run kubeone apply, which joins the host again",
	},
	{
		code: MemberDataMissing, class: ClassRuntime,
		meaning: "The host is marked as a member and has lost all that a member has.",
		what:    "was a member, but its kubelet.conf, PKI and etcd data are missing",
		do:      "find out who emptied the host; then run kubeone node replace",
	},
	{
		code: KubeletConfMissing, class: ClassRuntime,
		meaning: "The kubelet has no kubelet.conf.",
		what:    "its kubelet.conf is missing",
		do:      "run kubeone apply: it regenerates the file if the host's other data allows it",
	},
	{
		code: KubeletCertificateMissing, class: ClassRuntime,
		meaning: "The kubelet has no client certificate.",
		what:    "the kubelet's client certificate is missing",
		do:      "run kubeone apply: it regenerates the certificate",
	},
	{
		code: KubeletCertificateExpired, class: ClassRuntime,
		meaning: "The kubelet's client certificate has expired, so that the API server refuses the kubelet.",
		what:    "the kubelet's client certificate has expired",
		do:      "run kubeone apply: it regenerates the certificate",
	},
	{
		code: CertificatesExpired, class: ClassRuntime,
		meaning: "Certificates of the control plane have expired.",
		what:    "certificates have expired: {certificates}",
		do:      "run kubeone apply: it renews them",
	},
	{
		code: StaticPodMissing, class: ClassRuntime,
		meaning: "The manifest of a static pod is missing.",
		what:    "the static-pod manifest of {pod} is missing",
		do:      "run kubeone apply: it writes the manifest again",
	},
	{
		code: UpgradeStuck, class: ClassRuntime,
		meaning: "The upgrade of a control-plane host has begun and cannot go on, because no API server answers. " +
			"What the host's own one was given may be wrong, such as a flag.",
		what: "its upgrade to {version} has begun, and no API server answers",
		do: "correct what the manifest says of the API server, and run kubeone apply: it writes the API server's " +
			"static-pod manifest again, and goes on with the upgrade",
	},
	{
		code: SettingsStuck, class: ClassRuntime,
		meaning: "An upgrade or a change of settings has begun on a control-plane host, and its kubelet does not " +
			"run. What the kubelet was given may be wrong, such as a setting.",
		what: "a change of this host has begun, and its kubelet is not running",
		do: "correct what the manifest says of the kubelet, and run kubeone apply: it writes the kubelet's " +
			"settings again, and goes on",
	},
	{
		code: StaleEpoch, class: ClassEtcd,
		meaning: "The host holds data from before a recovery of the cluster. Its etcd member belongs to another " +
			"etcd cluster and must not serve.",
		what: "holds data from before the cluster was recovered",
		do:   "run kubeone apply: it moves the data aside and lets the host join again",
	},
	{
		code: EtcdDataMissing, class: ClassEtcd,
		meaning: "The data of the host's etcd member is missing.",
		what:    "its etcd data is missing",
		do:      "run kubeone apply: it lets the host join again if the other members keep the quorum",
	},
	{
		code: EtcdDataUnusable, class: ClassEtcd,
		meaning: "The host's etcd cannot start with its data.",
		what:    "its etcd cannot use its data ({error})",
		do: "run kubeone apply: it moves the data aside and lets the host join again if the other members " +
			"keep the quorum",
	},
	{
		code: ContainerdStopped, class: ClassRuntime,
		meaning: "The container runtime does not run.",
		what:    "containerd is not running ({state})",
		do:      "run kubeone apply: it starts the unit",
	},
	{
		code: KubeletStopped, class: ClassRuntime,
		meaning: "The kubelet does not run.",
		what:    "kubelet is not running ({state})",
		do:      "run kubeone apply: it starts the unit",
	},
	{
		code: KubeletUnhealthy, class: ClassRuntime,
		meaning: "The kubelet runs and does not answer its health check.",
		what:    "kubelet does not answer its health check",
		do:      "run kubeone apply: it restarts the unit",
	},
	{
		code: ComponentUnhealthy, class: ClassRuntime,
		meaning: "A component of the control plane fails its health check.",
		what:    "{component} fails its health check",
		do:      "read the component's log on the host with crictl logs",
	},
	{
		code: ComponentUnknown, class: ClassRuntime,
		meaning: "The health of a component is unknown.",
		what:    "health of {component} is unknown",
		do:      "read the kubelet's log on the host: journalctl -u kubelet",
	},
	{
		code: CAExpired, class: ClassRuntime,
		meaning: "A certificate authority has expired, and with it everything that it signed.",
		what:    "expired: the CA {certificates}, with all that it signed",
		do:      "renew the CA as described at kubernetes.io",
	},
	{
		code: EncryptionKeysMissing, class: ClassRuntime,
		meaning: "The host has lost the keys by which Secrets are encrypted in etcd, and its API server would " +
			"not start any more. It is never started without.",
		what: "the keys by which Secrets are encrypted are gone: /etc/kubernetes/encryption/{digest}.yaml is not " +
			"there, or is another file",
		do: "kubeone apply brings them from another control-plane host. Where no host has them, and the API " +
			"server of another control-plane host runs without --encryption-provider-config, nothing is stored " +
			"by them yet: take that flag out of /etc/kubernetes/manifests/kube-apiserver.yaml here. Else put the " +
			"file back, mode 0600, from a backup that was taken since the keys last changed: age -d -i KEY " +
			"BACKUP | tar -xO encryption.yaml. Where etcd has lost its quorum too, kubeone recover --from BACKUP " +
			"brings them",
	},
	{
		code: CAKeyMissing, class: ClassRuntime,
		meaning: "The private key of the cluster's CA is missing.",
		what:    "the key of the cluster's CA is missing",
		do:      "copy /etc/kubernetes/pki/ca.key from another control-plane host, or from a backup",
	},
	{
		code: EtcdMemberMissing, class: ClassEtcd,
		meaning: "The host is a control-plane host of the cluster, and etcd does not list it.",
		what:    "is not a member of etcd",
		do:      "replace the host with kubeone node replace",
	},
	{
		code: EtcdMemberDown, class: ClassEtcd,
		meaning: "The host's etcd member does not answer.",
		what:    "its etcd member does not answer",
		do:      "read the log of etcd on the host with crictl logs",
	},
	{
		code: EtcdMemberUnknown, class: ClassEtcd,
		meaning: "The health of the host's etcd member is unknown.",
		what:    "health of its etcd member is unknown",
		do:      "run kubeone status again once etcd answers",
	},
	{
		code: EtcdAlarm, class: ClassEtcd,
		meaning: "etcd has raised an alarm.",
		what:    "etcd alarm {alarms}",
		do:      "make room in etcd with kubeone etcd defragment, then run kubeone etcd disarm",
	},
	{
		code: NodeMissing, class: ClassKube,
		meaning: "The host is a member, and the API has no Node of it.",
		what:    "has no Node object in the cluster",
		do:      "read the kubelet's log on the host: journalctl -u kubelet",
	},
	{
		code: NodeUnknown, class: ClassKube,
		meaning: "The API does not answer, so that the state of the Node is unknown.",
		what:    "state of its Node is unknown: the API does not answer",
		do:      "bring the API back first",
	},
	{
		code: NodeNotReady, class: ClassKube,
		meaning: "The Node is not Ready.",
		what:    "its Node is not Ready",
		do:      "run kubectl describe node and read the conditions",
	},
	{
		code: NodeStatusUnknown, class: ClassKube,
		meaning: "The kubelet has stopped reporting the state of its Node.",
		what:    "state of its Node is unknown: the kubelet stopped reporting",
		do:      "read the kubelet's log on the host: journalctl -u kubelet",
	},
	{
		code: NetworkPluginPending, class: ClassKube,
		meaning: "No Node can be Ready before the network plugin has been applied.",
		what:    "its Node is not Ready: the network plugin has not been applied yet",
		do:      "run kubeone apply: it applies the plugin",
	},
}
