package problem

var clusterRows = []row{
	{
		code: ControlPlaneMissing, class: ClassConfig,
		what: "the manifest has no control-plane host",
		do:   "add one, or preferably three, to controlPlane.hosts",
	},
	{
		code: VersionInvalid, class: ClassConfig,
		what: `the desired Kubernetes version "{version}" is not a valid version`,
		do:   "write it as in 1.36.3",
	},
	{
		code: LimitUnknown, class: ClassConfig,
		what: `the limit names "{name}", which is not in the manifest`,
		do:   "name a host in the manifest",
	},
	{
		code: LeaderOutsideLimit, class: ClassConfig,
		what: "a new cluster starts on this host, but the host is outside the limit",
		do:   "add the host to the limit",
	},
	{
		code: HostOutsideLimit, class: ClassConfig,
		what: "has not joined, and is outside the limit",
		do:   "run the command without a limit to join the host",
	},
	{
		code: StepRunning, class: ClassRuntime,
		what: `step "{step}" of run {run} is still running`,
		do:   "wait until the step has ended; kubeone does nothing else on the host before that",
	},
	{
		code: ClusterCAConflict, class: ClassConfig,
		what: `control-plane hosts hold different CAs for cluster "{cluster}": {cas}`,
		do: "two clusters have this name, or one was created twice: give each its own manifest and name, or " +
			"reset the hosts that do not belong to it",
	},
	{
		code: ClusterCAChanged, class: ClassConfig,
		meaning: "The CA on a control-plane host is not the one that this machine has on record.",
		what:    "its CA is {ca}, but this machine has {known} on record for the cluster",
		do: "if the cluster was recreated elsewhere, remove the file ca from its state directory, or pass " +
			"the new CA certificate with --ca-file; otherwise another machine is impersonating the cluster",
	},
	{
		code: EndpointChanged, class: ClassConfig,
		meaning: "The manifest changes the API endpoint, and the cluster cannot move there now.",
		what:    "the cluster API endpoint is {endpoint}, but the manifest sets {wanted}: {problem}",
		do: "fix this and apply without a limit; or set apiEndpoint in the manifest back to {endpoint} " +
			"(without apiEndpoint, the first control-plane host is the endpoint)",
	},
	{
		code: EndpointIsHost, class: ClassConfig,
		meaning: "The endpoint of a new cluster is one of several control-plane hosts.",
		what: "the API endpoint {endpoint} is this host: when the host stops, kubelets lose the API, and the " +
			"host cannot be removed from the cluster",
		do: "set apiEndpoint.host to the name or address of a load balancer now; a later change restarts " +
			"every kubelet",
	},
	{
		code: NamesInUse, class: ClassConfig,
		meaning: "API names cannot be dropped, because clients may still use them.",
		what:    "the API server certificates keep their old names because of {name}: {problem}",
		do:      "fix this, or remove the host from the cluster; old names are harmless",
	},
	{
		code: NamesFormer, class: ClassConfig,
		meaning: "An API server certificate contains names that neither the manifest nor kubeadm requires.",
		what:    "its API server certificate still contains {names}",
		do:      "once no client uses them, run kubeone apply --drop-old-names",
	},
	{
		code: OtherForm, class: ClassConfig,
		meaning: "The cluster is described by a manifest and the file has objects, or the other way round.",
		what:    "{described} describes the cluster, but the file has {given}",
		do:      "use that form of the desired state; kubeone adopt --as {form} changes the form",
	},
	{
		code: NetworkImmutable, class: ClassConfig,
		what: "ipFamily, a subnet or serviceDomainName under clusterNetwork in the manifest differs from the value " +
			"in the cluster, which cannot be changed",
		do: "restore the old values; the ConfigMap kube-system/kubeone holds the last applied manifest",
	},
	{
		code: NetworkPluginChanged, class: ClassConfig,
		what: `the cluster runs the network plugin {deployed}, but the manifest sets "{wanted}"`,
		do:   "set clusterNetwork.cni to {deployed}, or remove it from the cluster as docs/network-plugins.md says",
	},
	{
		code: NetworkPluginSkipped, class: ClassConfig,
		meaning: "A network plugin is never downgraded, and an upgrade skips no minor version.",
		what:    "{plugin} {deployed} cannot become {plugin} {wanted}: {problem}",
		do: "set clusterNetwork.cni.{plugin}.version to {deployed}, or to a later version of the same or the next minor " +
			"version; if this kubeone does not support that version, use one that does",
	},
	{
		code: CloudImmutable, class: ClassConfig,
		what: "the host joined with another provider or another value of external under cloudProvider than the " +
			"manifest has",
		do: "restore the old value; the ConfigMap kube-system/kubeone holds the last applied manifest",
	},
	{
		code: HostNameDuplicate, class: ClassConfig,
		what: `{hosts} have the same name, "{name}"`,
		do:   "give each host its own name, or set hostname in the manifest",
	},
	{
		code: MachineIDDuplicate, class: ClassRuntime,
		meaning: "Hosts share a machine ID, as copies of one disk image do.",
		what:    "{hosts} have the same machine ID, {machineID}",
		do:      "generate new IDs with systemd-machine-id-setup; otherwise, networks may confuse the hosts",
	},
	{
		code: ClusterStateUnknown, class: ClassConfig,
		meaning: "Some control-plane hosts have not answered. kubeone creates a cluster only after all have.",
		what:    "{hosts} may hold this cluster, so no new cluster is created",
		do:      "bring the hosts back; or remove them from the manifest if they never belonged to this cluster",
	},
	{
		code: NotCompared, class: ClassRuntime,
		what: "could not check whether {component} in the cluster is up to date: {problem}",
		do:   "run kubeone status again; if a webhook refuses the request, fix the webhook first",
	},
	{
		code: RecordUnreadable, class: ClassKube,
		meaning: "A key in the cluster record is malformed. kubeone treats it as missing.",
		what:    "cannot read the key {key} in the ConfigMap kube-system/kubeone: {problem}",
		do: "run kubeone apply to write it again (the key nodes is written only when every host answers); " +
			"find out what else writes to that ConfigMap",
	},
	{
		code: NodeOwnerUnknown, class: ClassKube,
		meaning: "A host would join under the name of an existing Node, but that Node may belong to a host that " +
			"does not answer. The record of which Node belongs to which host is unreadable.",
		what: "the Node {node} may belong to {hosts}, which does not answer, so this host does not join under " +
			"that name: the key nodes in the ConfigMap kube-system/kubeone cannot be read",
		do: "bring {hosts} back, or remove it from the manifest, and apply again",
	},
	{
		code: AddonsUnreadable, class: ClassKube,
		meaning: "The list of addons in the cluster is malformed.",
		what: "cannot read the key addons in the ConfigMap kube-system/kubeone, so no addon is applied or " +
			"removed: {problem}",
		do: "if the network plugin in the manifest is the one that is running, remove the key with kubectl " +
			"-n kube-system edit configmap kubeone, then run kubeone apply: it applies all addons again",
	},
	{
		code: InventoryUnreadable, class: ClassKube,
		meaning: "The list of an addon's objects in the cluster is malformed.",
		what: "cannot read which objects addon {addon} has in the cluster, so those that are no longer part of it " +
			"stay: {problem}",
		do: "run kubectl -n kube-system delete configmap kubeone-addon-{addon}, then kubeone apply: it writes a new " +
			"list; delete other objects of the addon manually",
	},
	{
		code: ReleaseUnreadable, class: ClassKube,
		meaning: "The Secret of a Helm release is malformed.",
		what:    "cannot read Helm release {release}, so it stays as it is: {problem}",
		do:      "run helm history on the release; if helm cannot read it either, delete that Secret, then run kubeone apply",
	},
	{
		code: ComponentNotRunning, class: ClassKube,
		meaning: "The network plugin, kube-proxy or cluster DNS has no ready pod on a node that needs one.",
		what:    "{component} is not running on {nodes}",
		do:      "run kubectl describe pod on its pods",
	},
	{
		code: FilesEdited, class: ClassRuntime,
		meaning: "Files that kubeone wrote were changed or deleted.",
		what:    "changed outside kubeone: {files}",
		do: "run kubeone apply to restore them, or kubeone upgrade --force to regenerate files that have no " +
			"copy on the host; put intended changes into the manifest",
	},
	{
		code: FilesExposed, class: ClassRuntime,
		meaning: "The mode or owner of files that hold keys is not what kubeone set.",
		what:    "users other than root can read or change {files}",
		do: "run kubeone apply to restrict them to root, without a restart; rotate the keys if others may " +
			"have read them",
	},
	{
		code: StaticPodsEdited, class: ClassRuntime,
		meaning: "Static-pod manifests on a control-plane host were changed or deleted.",
		what:    "changed outside kubeone: {files}",
		do: "put the changes you need into controlPlaneComponents in the manifest; until then the files stay " +
			"as they are and the host is not upgraded",
	},
	{
		code: EditsInTheWay, class: ClassRuntime,
		what: "an upgrade would overwrite manual changes to static pods: {files}",
		do: "undo them on the hosts; or move flags to controlPlaneComponents in the manifest and other " +
			"changes to kubeadm patches in /etc/kubeone/patches on the host, then upgrade with --discard-edits",
	},
	{
		code: GuardMissing, class: ClassRuntime,
		meaning: "The guard needs these tools to check whether the cluster was recovered while the host was " +
			"offline.",
		what: "the guard cannot run without {tools}",
		do:   "install them; the next step on the host sets up the guard",
	},
	{
		code: PodsOutsideNetwork, class: ClassKube,
		meaning: "Pods got their addresses from a CNI configuration other than the network plugin's.",
		what:    "pods have addresses outside the pod network, {subnets}: {pods}",
		do: "on their hosts, move files of other plugins out of /etc/cni/net.d, then delete the pods: their " +
			"replacements get addresses in the pod network",
	},
	{
		code: ForeignCNIFirst, class: ClassRuntime,
		meaning: "Another CNI configuration sorts before the network plugin's, so new pods use it.",
		what: "other CNI configuration takes precedence over the network plugin's {own}: {files} in " +
			"/etc/cni/net.d",
		do: "keep it if a plugin you deployed in addition to {own} writes it; otherwise move it elsewhere, " +
			"and delete the host's pods outside the pod network",
	},
	{
		code: HealthPortTaken, class: ClassRuntime,
		meaning: "kubeone does not trust this process and treats the component as unhealthy.",
		what:    "a process of a user other than root listens on a component's health port: {ports}",
		do: "identify the process (ss -ltnep on the host), stop it, and examine the host: it may be " +
			"compromised",
	},
	{
		code: CertificatesEnding, class: ClassRuntime,
		what: "certificates expire within 30 days: {certificates}",
		do: "run kubeone apply to renew the control plane certificates; a running kubelet renews its own; " +
			"CAs are not renewed; see kubeone certificates status",
	},
	{
		code: EncryptionForeign, class: ClassConfig,
		meaning: "The manifest asks for encryption at rest, but the API server uses another encryption " +
			"configuration.",
		what: "the manifest sets features.encryptionProviders, but the API server encrypts with {file}, which " +
			"kubeone does not manage",
		do: "remove features.encryptionProviders from the manifest and keep your own flag; or store " +
			"Secrets unencrypted first, as described at kubernetes.io, and remove the flag",
	},
	{
		code: EncryptionKeysDiffer, class: ClassRuntime,
		meaning: "Two control-plane hosts have different keys with the same name and cannot read each other's " +
			"Secrets.",
		what: "its encryption key {key} differs from the one on {other}",
		do: "find out who changed /etc/kubernetes/encryption there, and restore it from a backup; kubeone " +
			"changes nothing while the keys differ",
	},
	{
		code: EncryptionWaits, class: ClassConfig,
		meaning: "A change to encryption at rest is delayed, because a control-plane host outside the manifest " +
			"would not get the keys.",
		what: "the change to encryption at rest is delayed: control-plane host {name} is not in the manifest, " +
			"would not get the keys, and could not read Secrets",
		do: "put the host back into the manifest, or remove it from the cluster with kubeone node remove",
	},
	{
		code: RotationBegun, class: ClassConfig,
		meaning: "Control-plane hosts trust several keys for one authority, or different keys. The cluster works, " +
			"and hosts can join.",
		what: "the rotation of {authorities} is unfinished",
		do:   "run kubeone certificates rotate-ca --resume",
	},
	{
		code: EndpointSilent, class: ClassKube,
		meaning: "An API server answers on a control-plane host, but not at the API endpoint.",
		what:    "no API server answers at the API endpoint {endpoint}: {problem}",
		do:      "check the load balancer, or which machine has that address or name",
	},
}
