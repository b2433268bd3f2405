package problem

var identityRows = []row{
	{
		code: HostIDDuplicate, class: ClassConfig,
		meaning: "Two machines carry the same host ID, as copies of one disk do.",
		what:    `the machines at {address} and {other} both say that they are host "{id}"`,
		do: "remove the copy from the manifest; on the copy only, run kubeadm reset -f; rm -rf " +
			"/etc/kubeone /var/lib/kubeone",
	},
	{
		code: HostIDMismatch, class: ClassConfig,
		what: `the manifest says that {address} is host "{id}", but the machine there says it is host ` +
			`"{says}"`,
		do: "correct the address or the ID in the manifest",
	},
	{
		code: HostIDElsewhere, class: ClassConfig,
		meaning: "Another machine carries the ID that the manifest gives to this one.",
		what: `the machine at {address}, which the manifest calls host "{id}", says it is host "{says}"; the ` +
			"machine at {other}, which the manifest calls that, does not",
		do: "correct the addresses or the IDs in the manifest",
	},
	{
		code: HostnameChanged, class: ClassConfig,
		what: `the manifest calls it "{wanted}", but it joined, or began to join, as Node "{says}"`,
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
		meaning: "A host answers at another address than the manifest gives it. This stops only the delivery of " +
			"credentials to a worker there.",
		what: "the manifest has it at {address}, but its machine answers at {found}",
		do:   "correct the address in the manifest",
	},
	{
		code: HostNameTaken, class: ClassConfig,
		meaning: "The manifest does not name the host, and the host's own name belongs to another Node, a " +
			"Machine or the cluster.",
		what: `the host calls itself "{name}", which is {holder}`,
		do: "if you did not name it so, examine the host: it may be compromised; otherwise run hostnamectl " +
			"set-hostname, or set its hostname in the manifest; if that Node's host no longer exists, delete the " +
			"Node first",
	},
	{
		code: HostRenamed, class: ClassConfig,
		meaning: "The manifest does not name the host, and its own name is not that of its Node.",
		what:    `the cluster knows the host as Node "{node}", but the host calls itself "{says}"`,
		do: "if you did not rename it, examine the host: it may be compromised; otherwise run hostnamectl " +
			"set-hostname {node}, or set its hostname in the manifest; for a new machine under another name, " +
			"delete the old Node first",
	},
}

var machineRows = []row{
	{
		code: HostClaimed, class: ClassConfig,
		meaning: "The host's own note says that another Machine or the manifest has it.",
		what:    "the host is {owner}",
		do: "delete the Machine that should not have the host; or remove the host from the manifest with " +
			"kubeone node remove",
	},
	{
		code: HostOfMachine, class: ClassConfig,
		meaning: "A host of the manifest has a note that a Machine owns it.",
		what:    "the host belongs to Machine {machine}",
		do: "remove it from the manifest; or delete that Machine with kubectl, which returns the host, and " +
			"apply again",
	},
	{
		code: JoinTokensForAny, class: ClassKube,
		meaning: "With this kubeadm rule, a join token is enough to get the certificate of any Node. Machines " +
			"get no token while the rule may exist.",
		what: "the rule kubeadm:node-autoapprove-bootstrap is in the cluster, or may be",
		do:   "run kubeone apply, which removes it",
	},
	{
		code: NodeOfAnother, class: ClassKube,
		meaning: "A Machine's host is to join, but its name is that of a Node which is not the Machine's.",
		what:    "the Node {node} exists and belongs to another host",
		do: "rename the host; or, if the Node's host no longer exists, delete the Node with kubectl, and " +
			"the Machine joins",
	},
	{
		code: ControllersSilent, class: ClassKube,
		meaning: "A reset must return the hosts of Machines first, but the controllers do not run.",
		what: "hosts of Machines ({count}) must be returned first, but kubeone controller has not been " +
			"active in the last seconds: {hosts}",
		do: "start kubeone controller; or reset with --abandon-machines, which leaves these hosts as they " +
			"are",
	},
	{
		code: MachinesOfOthers, class: ClassKube,
		meaning: "A reset finds Machines that kubeone did not make and cannot return.",
		what:    "kubeone has no provider for these Machines: {machines}",
		do: "delete them with the program that made them; or reset with --abandon-machines, which leaves " +
			"the hosts of all Machines as they are",
	},
	{
		code: SystemAwaitsMachines, class: ClassKube,
		meaning: "kube-proxy and cluster DNS follow the cluster's version once every kubelet has it.",
		what:    "{apps}: not at version {version} until the kubelets of these Machines are: {machines}",
		do: "give their MachineDeployments that version (kubeone apply --upgrade-machine-deployments), and " +
			"apply again",
	},
	{
		code: MachineFailed, class: ClassKube,
		meaning: "A Machine needs a correction by an operator. Nothing else stops.",
		what:    "Machine {machine} has an error: {error}",
		do:      "correct the object, or delete it",
	},
	{
		code: MachinesUnknown, class: ClassKube,
		meaning: "A reset could not read the cluster's Machines although the API answers.",
		what:    "cannot tell whether hosts of Machines must be returned first: {error}",
		do: "find out why kubectl get machines fails; or reset with --abandon-machines, which leaves the " +
			"hosts of Machines as they are",
	},
	{
		code: SettingsLater, class: ClassKube,
		meaning: "A Machine's host has other settings than the cluster's record. The change waits for its turn " +
			"in the rollout.",
		what: "its settings will change later in the rollout",
		do:   "nothing, unless the Machine's condition SettingsCurrent says so: see kubectl describe machine",
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
		what: "the Node {node} belongs to no Machine",
		do: "inspect the host first: its reset may have been faked. Then kubectl delete node {node}, and " +
			"reinstall the host before a Machine gets it",
	},
	{
		code: HostInPool, class: ClassConfig,
		meaning: "The API server would refuse the Node of a host that the pool also lists.",
		what:    "the pool has a Host {name} without a Machine: its Node would be refused",
		do:      "run kubeone host remove {name}, which leaves the host to the manifest",
	},
}
