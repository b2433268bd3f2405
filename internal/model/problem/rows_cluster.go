package problem

var clusterRows = []row{
	{
		code: ControlPlaneMissing, class: ClassConfig,
		meaning: "The manifest has no control-plane host.",
		what:    "the manifest has no control-plane host",
		do:      "add one, or better three, to controlPlane.hosts",
	},
	{
		code: VersionInvalid, class: ClassConfig,
		meaning: "The wanted Kubernetes version is not a version.",
		what:    `the wanted Kubernetes version "{version}" is not a valid version`,
		do:      "write it as in 1.36.3",
	},
	{
		code: LimitUnknown, class: ClassConfig,
		meaning: "The limit names a host that the manifest does not have.",
		what:    `the limit names "{name}", which is not in the manifest`,
		do:      "name a host of the manifest",
	},
	{
		code: LeaderOutsideLimit, class: ClassConfig,
		meaning: "A new cluster begins on a host that the limit leaves out.",
		what:    "a new cluster begins on this host, and it is outside the limit",
		do:      "add the host to the limit",
	},
	{
		code: HostOutsideLimit, class: ClassConfig,
		meaning: "A host has not joined, and the limit leaves it out.",
		what:    "has not joined, and is outside the limit",
		do:      "run the command without a limit to let the host join",
	},
	{
		code: StepRunning, class: ClassRuntime,
		meaning: "A step of an earlier run is still running on the host.",
		what:    `step "{step}" of run {run} is still running`,
		do:      "wait: kubeone does nothing else on the host until the step has ended",
	},
	{
		code: ClusterCAConflict, class: ClassConfig,
		meaning: "Control-plane hosts hold different CAs of one cluster name.",
		what:    `control-plane hosts disagree about the CA of cluster "{cluster}": {cas}`,
		do: "two clusters have this name, or one was made twice: give each its own manifest and name, or " +
			"reset the hosts of the wrong one",
	},
	{
		code: ClusterCAChanged, class: ClassConfig,
		meaning: "A control-plane host holds another CA than the one by which this machine knows the cluster.",
		what:    "its CA is {ca}, and this machine knows the cluster by {known}",
		do: "if the cluster was made anew elsewhere, remove the file ca of its state directory, or give the new " +
			"CA's certificate with --ca-file; if not, somebody poses as the cluster",
	},
	{
		code: EndpointChanged, class: ClassConfig,
		meaning: "The manifest has another API endpoint than the cluster, and it cannot move there now.",
		what: "the API's endpoint is {endpoint}, which kubelets dial and the certificates are made for, and the " +
			"manifest has {wanted}: {problem}",
		do: "see to that, and apply without a limit; or set apiEndpoint in the manifest back to {endpoint} " +
			"(without it, the first control-plane host is the endpoint, whichever stands first)",
	},
	{
		code: EndpointIsHost, class: ClassConfig,
		meaning: "The API's endpoint is one of several control-plane hosts, and the cluster is not made yet.",
		what: "{endpoint} is the API's endpoint, and this host's: when it stops, no kubelet finds the API, and " +
			"it cannot be taken out of the cluster",
		do: "set apiEndpoint.host to a load balancer's name or address; doing so later restarts every kubelet",
	},
	{
		code: NamesInUse, class: ClassConfig,
		meaning: "Names of the API cannot be dropped, because somebody may still dial them.",
		what:    "the API servers' certificates keep their former names because of {name}: {problem}",
		do:      "see to that, or take the host out of the cluster; former names do no harm meanwhile",
	},
	{
		code: NamesFormer, class: ClassConfig,
		meaning: "An API server's certificate has names that neither the manifest nor kubeadm gives it.",
		what:    "its API server's certificate still has {names}",
		do:      "when nobody dials them any more, kubeone apply --drop-old-names takes them out",
	},
	{
		code: NetworkImmutable, class: ClassConfig,
		meaning: "The manifest has other subnets, or another DNS domain, than the cluster was made with.",
		what: "podSubnet, serviceSubnet or serviceDomainName in the manifest's clusterNetwork differ from " +
			"those of the cluster, and they cannot be changed",
		do: "restore the former values; the cluster keeps its manifest in the ConfigMap kube-system/kubeone",
	},
	{
		code: NetworkPluginChanged, class: ClassConfig,
		meaning: "The manifest wants another network plugin than the one that was deployed.",
		what:    `the cluster has the network plugin {deployed}, and the manifest wants "{wanted}"`,
		do: "set clusterNetwork.cni to {deployed}; or to external, once another plugin has taken its place " +
			"in the whole cluster",
	},
	{
		code: HostNameDuplicate, class: ClassConfig,
		meaning: "Several hosts have one name.",
		what:    `{hosts} have the same name, "{name}"`,
		do:      "give each host its own name, or set hostname in the manifest",
	},
	{
		code: MachineIDDuplicate, class: ClassRuntime,
		meaning: "Several hosts have one machine ID, as copies of a disk image do.",
		what:    "{hosts} have the same machine ID, {machineID}",
		do:      "make new ones with systemd-machine-id-setup: networks may take the hosts for one",
	},
	{
		code: ClusterStateUnknown, class: ClassConfig,
		meaning: "Control-plane hosts may hold this cluster and do not say so. A new cluster is only made when " +
			"all of them have answered.",
		what: "{hosts} may hold this cluster; no new cluster is made while that is unknown",
		do:   "bring the hosts back; or take them out of the manifest, if they never belonged to this cluster",
	},
	{
		code: NotCompared, class: ClassRuntime,
		meaning: "The objects of a component in the cluster could not be compared with what they must be.",
		what:    "whether {component} in the cluster is as it must be could not be found out: {problem}",
		do:      "run kubeone status again; where a webhook refuses, put that right first",
	},
	{
		code: RecordUnreadable, class: ClassKube,
		meaning: "A key of the ConfigMap kube-system/kubeone, the cluster's record, is not what a run writes. It " +
			"counts as missing.",
		what: "the key {key} of the ConfigMap kube-system/kubeone cannot be read: {problem}",
		do: "kubeone apply writes it again, the key nodes only once every host answers; find out who else writes " +
			"that ConfigMap",
	},
	{
		code: NodeOwnerUnknown, class: ClassKube,
		meaning: "A host that is to join has the name of a Node, which may be that of a host that does not " +
			"answer. The key nodes of the ConfigMap kube-system/kubeone would say so, and cannot be read.",
		what: "whether the Node {node} is that of {hosts}, which does not answer, cannot be found out: the key " +
			"nodes of the ConfigMap kube-system/kubeone cannot be read, and this host does not join under that " +
			"name",
		do: "bring {hosts} back, or take it out of the manifest, and apply again",
	},
	{
		code: AddonsUnreadable, class: ClassKube,
		meaning: "The key addons of the ConfigMap kube-system/kubeone is not what a run writes. No addon is " +
			"applied or removed, and no network plugin taken for another, until it is put right.",
		what: "the key addons of the ConfigMap kube-system/kubeone, which says what addons the cluster has, " +
			"cannot be read: {problem}; no addon is applied or removed meanwhile",
		do: "where the network plugin of the manifest is the one that runs, remove the key with kubectl -n " +
			"kube-system edit configmap kubeone; then kubeone apply applies all addons again",
	},
	{
		code: ComponentNotRunning, class: ClassKube,
		meaning: "The network plugin, kube-proxy or cluster DNS has no ready pod where it must have one.",
		what:    "{component} does not run on {nodes}",
		do:      "kubectl describe pod says of its pods why",
	},
	{
		code: FilesEdited, class: ClassRuntime,
		meaning: "Somebody has changed files on a host that this program made, or has deleted them.",
		what:    "somebody has changed {files}",
		do: "kubeone apply restores what they were, and kubeone upgrade --force makes those anew of which the " +
			"host has kept no copy; what you have changed there on purpose belongs in the manifest",
	},
	{
		code: FilesExposed, class: ClassRuntime,
		meaning: "Files with keys on a host have another mode or owner than they were written with.",
		what:    "others than root may read or change {files}",
		do: "kubeone apply gives them back to root alone, without a restart; rotate the keys if others may have " +
			"read them",
	},
	{
		code: StaticPodsEdited, class: ClassRuntime,
		meaning: "Somebody has changed the manifests of static pods on a control-plane host, or has deleted them.",
		what:    "somebody has changed {files}",
		do: "they stay as they are, and the host is not upgraded meanwhile: what you need in them belongs in the " +
			"manifest, in controlPlaneComponents",
	},
	{
		code: EditsInTheWay, class: ClassRuntime,
		meaning: "An upgrade would lose what somebody has changed in static pods on control-plane hosts.",
		what:    "an upgrade would lose what somebody has changed in static pods, {files}",
		do: "undo that on the hosts; or keep it, flags in controlPlaneComponents of the manifest and all else as " +
			"a patch of kubeadm's in /etc/kubeone/patches on the host, and upgrade with --discard-edits",
	},
	{
		code: GuardMissing, class: ClassRuntime,
		meaning: "A control-plane host lacks a command with which it watches, after it was away, whether the " +
			"cluster has been recovered without it.",
		what: "{tools} are missing, without which nobody watches there whether the cluster was recovered " +
			"while the host was away",
		do: "install them: the next step on the host sets the watch up",
	},
	{
		code: PodsOutsideNetwork, class: ClassKube,
		meaning: "Pods have addresses that are not of the cluster's pod network. They got them from other CNI " +
			"configuration than the network plugin's.",
		what: "pods have addresses outside the pod network, {subnets}: {pods}",
		do: "look for other files than the network plugin's in /etc/cni/net.d on their hosts, move these files " +
			"elsewhere, and delete the pods: those that take their place get addresses of the pod network",
	},
	{
		code: ForeignCNIFirst, class: ClassRuntime,
		meaning: "A member has CNI configuration whose name goes before the network plugin's. New pods get their " +
			"network from there.",
		what: "CNI configuration goes before the network plugin's {own}: {files} in /etc/cni/net.d",
		do: "leave it if a network plugin that you have deployed beside {own} writes it; otherwise move it " +
			"elsewhere, and delete those pods of the host that are not of the pod network",
	},
	{
		code: HealthPortTaken, class: ClassRuntime,
		meaning: "Where a component of a host tells how it is, a process of another user than root answers. It " +
			"is not believed, and the component counts as not healthy.",
		what: "a process of another user than root listens where components answer about themselves: {ports}",
		do: "find out who that is (ss -ltnep on the host), end the process, and see to the host: whoever it is " +
			"has waited for the component to end",
	},
	{
		code: CertificatesEnding, class: ClassRuntime,
		meaning: "Certificates on a host expire within 30 days, and nobody has renewed them.",
		what:    "certificates expire within 30 days: {certificates}",
		do: "kubeone apply renews those of the control plane, a kubelet that runs its own, and nobody those of " +
			"CAs; kubeone certificates status says which is which",
	},
	{
		code: EncryptionForeign, class: ClassConfig,
		meaning: "An API server encrypts what it stores by a configuration that somebody else has made, and the " +
			"manifest asks for encryption at rest.",
		what: "the API server encrypts what it stores by {file}, which is not kubeone's, and the manifest sets " +
			"features.encryptionProviders",
		do: "take features.encryptionProviders out of the manifest and keep the flag of your own; or store " +
			"Secrets unencrypted first, as described at kubernetes.io, and take the flag away",
	},
	{
		code: EncryptionKeysDiffer, class: ClassRuntime,
		meaning: "Two control-plane hosts have different keys of one name: what one has stored the other cannot " +
			"read.",
		what: "its key {key}, by which Secrets are encrypted, is another one than that of {other}",
		do: "find out who has changed /etc/kubernetes/encryption there, and put back what it was, from the copy " +
			"of a backup; nothing is changed while the two differ",
	},
	{
		code: EncryptionWaits, class: ClassConfig,
		meaning: "How Secrets are stored in etcd is to be changed, and a control-plane host that the manifest " +
			"does not have would not get the keys.",
		what: "how Secrets are stored is not changed: control-plane host {name} is not in the manifest, so that " +
			"nobody would bring it the keys, and its API server could not read what the others store",
		do: "put the host back into the manifest, or take it out of the cluster with kubeone node remove",
	},
	{
		code: RotationBegun, class: ClassConfig,
		meaning: "Control-plane hosts trust more than one key of an authority, or not all the same: its rotation " +
			"has begun and not ended. The cluster works, and new hosts join.",
		what: "the rotation of {authorities} has begun and not ended",
		do:   "run kubeone certificates rotate-ca --resume",
	},
	{
		code: EndpointSilent, class: ClassKube,
		meaning: "The API answers on a control-plane host, and not where the manifest has its users look for it.",
		what:    "no API server answers at {endpoint}, where kubelets and everybody else look for it: {problem}",
		do:      "look at the load balancer, or at who has that address or name",
	},
}
