package problem

var identityRows = []row{
	{
		code: HostIDDuplicate, class: ClassConfig,
		meaning: "Two machines have the same host ID, as copies of one disk do.",
		what:    `the machines at {address} and {other} both report that they are host "{id}"`,
		do: "remove the copy from the manifest; on the copy only, run kubeadm reset -f; rm -rf " +
			"/etc/kubeone /var/lib/kubeone",
	},
	{
		code: HostIDMismatch, class: ClassConfig,
		what: `the manifest says that {address} is host "{id}", but the machine there reports that it is host ` +
			`"{says}"`,
		do: "correct the address or the ID in the manifest",
	},
	{
		code: HostIDElsewhere, class: ClassConfig,
		meaning: "A machine reports the ID that the manifest gives to a machine at another address.",
		what: `the machine at {address} is host "{id}" in the manifest, but reports that it is host "{says}"; ` +
			"the manifest lists {other} as that host, but the machine there does not report the same",
		do: "correct the addresses or the IDs in the manifest",
	},
	{
		code: HostnameChanged, class: ClassConfig,
		what: `the manifest calls it "{wanted}", but it joined, or started to join, as Node "{says}"`,
		do: "restore the hostname; to rename a host, remove it under its old name with kubeone node remove " +
			"(kubeone reset --host if there is no cluster yet), and join it under the new one",
	},
	{
		code: RoleChanged, class: ClassConfig,
		what: "the manifest lists it as {wanted}, but it is in the cluster as {says}",
		do: "move it back in the manifest; to change its role, remove it with kubeone node remove, then " +
			"join it in the new role",
	},
	{
		code: HostMoved, class: ClassConfig,
		meaning: "A host answers at an address other than the one in the manifest. kubeone then only withholds " +
			"credentials from a worker there.",
		what: "the manifest lists it at {address}, but its machine answers at {found}",
		do:   "correct the address in the manifest",
	},
	{
		code: HostNameTaken, class: ClassConfig,
		meaning: "The manifest does not set a name for the host, and the host's own name belongs to another Node, " +
			"a Machine or the cluster.",
		what: `the host reports the name "{name}", which is {holder}`,
		do: "if you did not choose this name, examine the host: it may be compromised; otherwise run " +
			"hostnamectl set-hostname, or set its hostname in the manifest; if that Node's host no longer exists, " +
			"delete the Node first",
	},
	{
		code: HostRenamed, class: ClassConfig,
		meaning: "The manifest does not set a name for the host, and the host's own name is not that of its Node.",
		what:    `the host is Node "{node}" in the cluster, but reports the name "{says}"`,
		do: "if you did not rename it, examine the host: it may be compromised; otherwise run hostnamectl " +
			"set-hostname {node}, or set its hostname in the manifest; for a new machine under another name, " +
			"delete the old Node first",
	},
}

var machineRows = []row{
	{
		code: HostClaimed, class: ClassConfig,
		meaning: "A note on the host says that it belongs to another Machine or to the manifest.",
		what:    "the host is {owner}",
		do: "delete the Machine that should not have the host; or remove the host from the manifest with " +
			"kubeone node remove",
	},
	{
		code: HostOfMachine, class: ClassConfig,
		meaning: "A note on a host in the manifest says that a Machine owns it.",
		what:    "the host belongs to Machine {machine}",
		do: "remove it from the manifest; or delete that Machine with kubectl, which returns the host, and " +
			"apply again",
	},
	{
		code: JoinTokensForAny, class: ClassKube,
		meaning: "With this kubeadm rule, a join token is enough to get the certificate of any Node. kubeone " +
			"issues no token to Machines while the rule may exist.",
		what: "the rule kubeadm:node-autoapprove-bootstrap exists, or may exist, in the cluster",
		do:   "run kubeone apply, which removes it",
	},
	{
		code: NodeOfAnother, class: ClassKube,
		meaning: "A Machine's host would join under the name of a Node that does not belong to the Machine.",
		what:    "the Node {node} exists and belongs to another host",
		do: "rename the host; or, if the Node's host no longer exists, delete the Node with kubectl, so that " +
			"the Machine can join",
	},
	{
		code: ControllersSilent, class: ClassKube,
		meaning: "A reset must return Machine hosts first, but the controllers are not running.",
		what: "Machine hosts ({count}) must be returned first, but kubeone controller has not been active in " +
			"the last seconds: {hosts}",
		do: "start kubeone controller; or reset with --abandon-machines, which leaves these hosts as they " +
			"are",
	},
	{
		code: MachinesOfOthers, class: ClassKube,
		meaning: "A reset finds Machines that kubeone did not create and cannot return.",
		what:    "kubeone has no provider for these Machines: {machines}",
		do: "delete them with the program that created them; or reset with --abandon-machines, which leaves " +
			"all Machine hosts as they are",
	},
	{
		code: SystemAwaitsMachines, class: ClassKube,
		meaning: "kube-proxy and cluster DNS move to the cluster version once every kubelet runs it.",
		what:    "{apps}: the update to version {version} waits for the kubelets of these Machines: {machines}",
		do: "set that version in their MachineDeployments (kubeone apply --upgrade-machine-deployments), and " +
			"apply again",
	},
	{
		code: MachineFailed, class: ClassKube,
		meaning: "An operator must correct a Machine. Nothing else is affected.",
		what:    "Machine {machine} has an error: {error}",
		do:      "correct the object, or delete it",
	},
	{
		code: MachinesUnknown, class: ClassKube,
		meaning: "A reset could not read the Machines in the cluster although the API answers.",
		what:    "cannot tell whether Machine hosts must be returned first: {error}",
		do: "find out why kubectl get machines fails; or reset with --abandon-machines, which leaves Machine " +
			"hosts as they are",
	},
	{
		code: SettingsLater, class: ClassKube,
		meaning: "The settings on a Machine's host differ from the cluster record. The change waits for its turn " +
			"in the rollout.",
		what: "its settings will change later in the rollout",
		do: "nothing, unless the Machine's condition SettingsCurrent asks for it; see kubectl describe " +
			"machine",
	},
	{
		code: DefinitionsOfOthers, class: ClassConfig,
		meaning: "Another program, such as machine-controller, defined these kinds. kubeone never overwrites " +
			"them.",
		what: "these CustomResourceDefinitions belong to another program: {names}",
		do: "keep that program, and apply with machineController.deploy: false and without " +
			"--with-machines; or delete its Machines, remove it and these definitions, and apply again",
	},
	{
		code: NodeWithoutMachine, class: ClassKube,
		meaning: "A Node has the name of an unused Host, or the label of a deleted Machine. Its host may still " +
			"run that Machine's workload.",
		what: "the Node {node} does not belong to a Machine",
		do: "inspect the host first: its reset may have been faked. Then kubectl delete node {node}, and " +
			"reinstall the host before a Machine uses it",
	},
	{
		code: HostInPool, class: ClassConfig,
		meaning: "A host is both in the manifest and in the pool.",
		what:    "the pool lists Host {name} without a Machine, so the API server would refuse its Node",
		do:      "run kubeone host remove {name}, which leaves the host to the manifest",
	},
}
