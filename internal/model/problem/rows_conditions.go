package problem

var conditionsRows = []row{
	{
		code: HostNotAsked, class: ClassConnection,
		what: "was not probed",
		do:   "start the host, or correct its address, port or network path",
	},
	{
		code: HostUnreachable, class: ClassConnection,
		meaning: "No SSH connection to the host could be made.",
		what:    "{error}",
		do:      "start the host, or correct its address, port or network path",
	},
	{
		code: HostKeyRefused, class: ClassSSH,
		meaning: "The host's SSH key is revoked, unknown where unknown keys are refused, or not the one in the " +
			"manifest.",
		what: "{error}",
		do:   "compare the fingerprint with the host's own key, and correct known_hosts or the manifest",
	},
	{
		code: HostKeyChanged, class: ClassSSH,
		meaning: "The SSH key of the host, or of its bastion, is not the known one.",
		what:    "{name} offers the SSH host key {offered}; the known key is {known}",
		do: "compare it with the key on the machine's console: ssh-keygen -lf " +
			"/etc/ssh/ssh_host_ed25519_key.pub; if the machine was reinstalled, accept the key with " +
			"--accept-host-key {name}={offered}; otherwise the connection may be intercepted",
	},
	{
		code: HostKeyReplaced, class: ClassSSH,
		meaning: "A new SSH host key was accepted with --accept-host-key.",
		what: "{name} offers the SSH host key {offered} instead of the known key {known}; approving a plan " +
			"records the new key",
		do: "compare it with the key on the machine's console: ssh-keygen -lf " +
			"/etc/ssh/ssh_host_ed25519_key.pub",
	},
	{
		code: HostLoginRefused, class: ClassSSH,
		meaning: "The host answers, but refuses the login or sudo.",
		what:    "{error}",
		do:      "correct the user, the key or the sudo rights",
	},
	{
		code: HostUnclear, class: ClassRuntime,
		what: "cannot tell whether it has {items}",
		do:   "inspect the host: its file system may be damaged or read-only",
	},
	{
		code: HostUnwritable, class: ClassRuntime,
		meaning: "kubeone cannot write to the disk of the worker, so it cannot lock the worker.",
		what:    "cannot be locked, so it is left alone: {error} (/var/lib/kubeone)",
		do:      "free space there, or repair the disk",
	},
	{
		code: ControlPlaneClaimed, class: ClassConfig,
		what: "is a worker in the manifest, but holds a control-plane marker, static-pod manifests or etcd " +
			"data unknown to etcd and the API; kubeone leaves it alone",
		do: "find out where they came from; kubeone node replace resets the host, keeps its etcd data, and " +
			"joins it again",
	},
	{
		code: ForeignCluster, class: ClassConfig,
		meaning: "The host's marker names another cluster. kubeone leaves the host alone.",
		what:    `belongs to cluster "{cluster}", not to "{wanted}"`,
		do: `use the manifest of cluster "{cluster}"; or use that manifest to remove the host: kubeone ` +
			"reset --host {host}",
	},
	{
		code: ForeignCA, class: ClassConfig,
		meaning: "The host's marker names this cluster, but another CA signed its files.",
		what:    `has {items} from another CA ({ca}) than that of cluster "{cluster}" ({wanted})`,
		do: "use the manifest the host belongs to; or, if you do not need its data, run kubeone reset --host " +
			"{host}",
	},
	{
		code: ForeignCAWithoutMarker, class: ClassConfig,
		meaning: "Another CA signed the host's files, and the host has no marker.",
		what:    `has {items} from another CA ({ca}) than that of cluster "{cluster}" ({wanted})`,
		do: "use the manifest the host belongs to; or, if you do not need /etc/kubernetes and /var/lib/etcd " +
			"there, run kubeadm reset -f; rm -rf /etc/kubernetes /var/lib/etcd /var/lib/kubelet",
	},
	{
		code: ForeignData, class: ClassConfig,
		meaning: "The host holds Kubernetes data without a marker.",
		what:    "has {items} of unknown origin",
		do: "use the manifest the host belongs to; or, if you do not need /etc/kubernetes and /var/lib/etcd " +
			"there, run kubeadm reset -f; rm -rf /etc/kubernetes /var/lib/etcd /var/lib/kubelet",
	},
	{
		code: HostEmpty, class: ClassRuntime,
		what: "has no Kubernetes data",
		do:   "run kubeone apply: it installs the host",
	},
	{
		code: InstallationBegun, class: ClassRuntime,
		what: "installation has started, but there is no Kubernetes data yet",
		do:   "run kubeone apply: it resumes the installation",
	},
	{
		code: InstallationIncomplete, class: ClassRuntime,
		what: "installation is incomplete: found only {items}",
		do:   "run kubeone apply: it resumes the installation",
	},
	{
		code: JoinIncomplete, class: ClassRuntime,
		meaning: "The join was interrupted before the host's etcd member could vote.",
		what:    "its etcd member is still a learner",
		do:      "run kubeone apply: it resumes the join",
	},
	{
		code: NeverJoined, class: ClassRuntime,
		what: "has this cluster's {items}, but never joined",
		do:   "run kubeone apply: it resumes the installation",
	},
	{
		code: HostFenced, class: ClassRuntime,
		meaning: "A recovery stopped etcd and the API server on the host.",
		what:    "fenced by a cluster recovery (run {run})",
		do:      "let the recovery finish; then run kubeone apply, which joins the host again",
	},
	{
		code: MemberDataMissing, class: ClassRuntime,
		meaning: "The marker says that the host is a member, but all member data is missing.",
		what:    "was a member, but its kubelet.conf, PKI and etcd data are missing",
		do:      "find out who emptied the host; then run kubeone node replace",
	},
	{
		code: KubeletConfMissing, class: ClassRuntime,
		what: "its kubelet.conf is missing",
		do:   "run kubeone apply: it regenerates the file if the host's other data allows it",
	},
	{
		code: KubeletCertificateMissing, class: ClassRuntime,
		what: "the kubelet's client certificate is missing",
		do:   "run kubeone apply: it regenerates the certificate",
	},
	{
		code: KubeletCertificateExpired, class: ClassRuntime,
		what: "the kubelet's client certificate has expired",
		do:   "run kubeone apply: it regenerates the certificate",
	},
	{
		code: CertificatesExpired, class: ClassRuntime,
		meaning: "Control plane certificates have expired.",
		what:    "certificates have expired: {certificates}",
		do:      "run kubeone apply: it renews them",
	},
	{
		code: StaticPodMissing, class: ClassRuntime,
		what: "the static-pod manifest of {pod} is missing",
		do:   "run kubeone apply: it restores the manifest",
	},
	{
		code: UpgradeStuck, class: ClassRuntime,
		meaning: "An upgrade of a control-plane host cannot resume. The new API server settings may be wrong, " +
			"such as a flag.",
		what: "its upgrade to {version} has started, but no API server answers",
		do: "correct the API server settings in the manifest, then run kubeone apply: it rewrites the " +
			"static-pod manifest and resumes the upgrade",
	},
	{
		code: SettingsStuck, class: ClassRuntime,
		meaning: "An upgrade or a settings change has started on a control-plane host. The new kubelet settings " +
			"may be wrong.",
		what: "a change to this host has started, but its kubelet is not running",
		do: "correct the kubelet settings in the manifest, then run kubeone apply: it rewrites them and " +
			"resumes",
	},
	{
		code: StaleEpoch, class: ClassEtcd,
		meaning: "The host's etcd data is older than a recovery of the cluster. Its member belongs to another " +
			"etcd cluster and must not serve.",
		what: "holds data from before the cluster was recovered",
		do:   "run kubeone apply: it moves the data aside and joins the host again",
	},
	{
		code: EtcdDataMissing, class: ClassEtcd,
		what: "its etcd data is missing",
		do:   "run kubeone apply: it joins the host again if the other members keep quorum",
	},
	{
		code: EtcdDataUnusable, class: ClassEtcd,
		what: "its etcd member cannot use its data ({error})",
		do: "run kubeone apply: it moves the data aside and joins the host again if the other members keep " +
			"quorum",
	},
	{
		code: ContainerdStopped, class: ClassRuntime,
		what: "containerd is not running ({state})",
		do:   "run kubeone apply: it starts the unit",
	},
	{
		code: KubeletStopped, class: ClassRuntime,
		what: "kubelet is not running ({state})",
		do:   "run kubeone apply: it starts the unit",
	},
	{
		code: KubeletUnhealthy, class: ClassRuntime,
		what: "kubelet does not answer its health check",
		do:   "run kubeone apply: it restarts the unit",
	},
	{
		code: ComponentUnhealthy, class: ClassRuntime,
		what: "{component} fails its health check",
		do:   "read the component log on the host with crictl logs",
	},
	{
		code: ComponentUnknown, class: ClassRuntime,
		what: "health of {component} is unknown",
		do:   "read the kubelet log on the host: journalctl -u kubelet",
	},
	{
		code: CAExpired, class: ClassRuntime,
		what: "the CA {certificates} has expired, and so has everything it signed",
		do:   "renew the CA as described at kubernetes.io",
	},
	{
		code: EncryptionKeysMissing, class: ClassRuntime,
		meaning: "The host has lost the keys that encrypt Secrets in etcd. Its API server cannot start without " +
			"them, and kubeone does not start it.",
		what: "the keys that encrypt Secrets are missing: /etc/kubernetes/encryption/{digest}.yaml does not " +
			"exist or was changed",
		do: "kubeone apply copies them from another control-plane host. If no host has them and another API " +
			"server runs without --encryption-provider-config, nothing is encrypted yet: remove that flag from " +
			"/etc/kubernetes/manifests/kube-apiserver.yaml on this host. Otherwise restore the file, mode 0600, " +
			"from a backup taken after the last key change: age -d -i KEY BACKUP | tar -xO encryption.yaml. If etcd " +
			"has also lost quorum, kubeone recover --from BACKUP restores them",
	},
	{
		code: CAKeyMissing, class: ClassRuntime,
		what: "the cluster CA key is missing",
		do:   "copy /etc/kubernetes/pki/ca.key from another control-plane host, or from a backup",
	},
	{
		code: EtcdMemberMissing, class: ClassEtcd,
		meaning: "etcd does not list this control-plane host.",
		what:    "is not a member of etcd",
		do:      "replace the host with kubeone node replace",
	},
	{
		code: EtcdMemberDown, class: ClassEtcd,
		what: "its etcd member does not answer",
		do:   "read the etcd log on the host with crictl logs",
	},
	{
		code: EtcdMemberUnknown, class: ClassEtcd,
		what: "health of its etcd member is unknown",
		do:   "run kubeone status again once etcd answers",
	},
	{
		code: EtcdAlarm, class: ClassEtcd,
		what: "etcd alarm {alarms}",
		do:   "make room in etcd with kubeone etcd defragment, then run kubeone etcd disarm",
	},
	{
		code: NodeMissing, class: ClassKube,
		what: "has no Node object in the cluster",
		do:   "read the kubelet log on the host: journalctl -u kubelet",
	},
	{
		code: NodeUnknown, class: ClassKube,
		what: "state of its Node is unknown: the API does not answer",
		do:   "restore the API first",
	},
	{
		code: NodeNotReady, class: ClassKube,
		what: "its Node is not Ready",
		do:   "run kubectl describe node and read the conditions",
	},
	{
		code: NodeStatusUnknown, class: ClassKube,
		what: "state of its Node is unknown: the kubelet stopped reporting",
		do:   "read the kubelet log on the host: journalctl -u kubelet",
	},
	{
		code: NetworkPluginPending, class: ClassKube,
		what: "its Node is not Ready: the network plugin has not been applied yet",
		do:   "run kubeone apply: it applies the plugin",
	},
}
