package problem

var identityRows = []row{
	{
		code: HostIDDuplicate, class: ClassConfig,
		meaning: "Two machines carry the same host ID, as copies of one disk do.",
		what:    `the machines at {address} and {other} both say that they are host "{id}"`,
		do: "take the copy out of the manifest; on the copy, and only there, remove what it was copied with: " +
			"kubeadm reset -f; rm -rf /etc/kubeone /var/lib/kubeone",
	},
	{
		code: HostIDMismatch, class: ClassConfig,
		meaning: "The manifest gives a host another ID than its machine carries.",
		what: `the manifest says that {address} is host "{id}", and the machine there says ` +
			`that it is host "{says}"`,
		do: "correct the address or the ID in the manifest",
	},
	{
		code: HostIDElsewhere, class: ClassConfig,
		meaning: "The manifest gives an ID to one machine, and another machine carries it.",
		what: `the machine at {address}, where the manifest has host "{id}", says that it is host "{says}"; ` +
			"the one at {other}, where the manifest has that host, does not say so",
		do: "correct the addresses or the IDs in the manifest",
	},
	{
		code: HostnameChanged, class: ClassConfig,
		meaning: "The manifest gives a member another hostname than its Node has.",
		what:    `the manifest calls it "{wanted}", and it has joined, or begun to, as Node "{says}"`,
		do: "put the hostname back; to rename a host, take it out under its own name, with kubeone node remove, " +
			"or with kubeone reset --host where there is no cluster yet, and let it join under the new name",
	},
	{
		code: RoleChanged, class: ClassConfig,
		meaning: "The manifest gives a member another role than it has joined with.",
		what:    "the manifest has it as {wanted}, and it is in the cluster as {says}",
		do: "put it back where it was in the manifest; to change its role, take it out with kubeone node remove " +
			"first, and then let it join in the other role",
	},
	{
		code: HostMoved, class: ClassConfig,
		meaning: "A host was recognised at another address than the manifest gives it. A worker that needs " +
			"credentials gets none there; nothing else is stopped by this.",
		what: "the manifest has it at {address}, and its machine answers at {found}",
		do:   "correct the address in the manifest",
	},
	{
		code: HostNameTaken, class: ClassConfig,
		meaning: "A host calls itself by a name that belongs to another Node, a Machine or the cluster itself. " +
			"The manifest does not give the host a name.",
		what: `the host calls itself "{name}", which is {holder}`,
		do: "if you did not name it so, examine the host: it may be compromised; otherwise rename it with " +
			"hostnamectl set-hostname, or set its hostname in the manifest; of a Node whose host is gone for " +
			"good, delete the Node first",
	},
	{
		code: HostRenamed, class: ClassConfig,
		meaning: "A host is known as one Node and calls itself by another name. The manifest gives it no name.",
		what:    `the cluster knows the host as Node "{node}", and the host calls itself "{says}"`,
		do: "if you did not rename it, examine the host: it may be compromised; otherwise put its name back with " +
			"hostnamectl set-hostname {node}, or set its hostname in the manifest; for a new machine under " +
			"another name, delete the old Node first",
	},
}

var machineRows = []row{
	{
		code: HostClaimed, class: ClassConfig,
		meaning: "A Machine's host is another Machine's, or the manifest's, by its own note.",
		what:    "the host is {owner}",
		do: "delete the Machine that is not meant to have the host; or take the host out of the manifest, with " +
			"kubeone node remove",
	},
	{
		code: HostOfMachine, class: ClassConfig,
		meaning: "A host of the manifest is a Machine's, by its own note.",
		what:    "the host belongs to Machine {machine}",
		do: "take it out of the manifest; or delete that Machine with kubectl, which returns the host, and apply " +
			"again",
	},
	{
		code: JoinTokensForAny, class: ClassKube,
		meaning: "The cluster has a rule of kubeadm's by which whoever has a join token gets the certificate of " +
			"any Node. No Machine is given a token while it is there, or nobody knows whether it is.",
		what: "the rule kubeadm:node-autoapprove-bootstrap is in the cluster, or may be",
		do:   "kubeone apply, which removes it",
	},
	{
		code: NodeOfAnother, class: ClassKube,
		meaning: "A Machine's host is to join, and the cluster has a Node of its name that is not the Machine's.",
		what:    "the Node {node} is there, and is somebody else's",
		do: "give the host another name; or delete the Node with kubectl, if its host is no more, and the " +
			"Machine joins",
	},
	{
		code: ControllersSilent, class: ClassKube,
		meaning: "A cluster is to be reset that has Machines, and the controllers, which return their hosts, are " +
			"not there.",
		what: "hosts of Machines ({count}) are to be returned first, and kubeone controller, which does that, " +
			"was not heard of within the last seconds: {hosts}",
		do: "start kubeone controller; or reset with --abandon-machines, which leaves these hosts as they are",
	},
	{
		code: MachinesOfOthers, class: ClassKube,
		meaning: "A cluster is to be reset that has Machines which this program has not made and cannot return.",
		what:    "this program has no provider that returns what these Machines have: {machines}",
		do: "delete them with the program that has made them; or reset with --abandon-machines, which leaves " +
			"the hosts of all Machines as they are",
	},
	{
		code: SystemAwaitsMachines, class: ClassKube,
		meaning: "What kubeadm applies follows the cluster's version when every Node has its images.",
		what:    "{apps}: another version than {version}, until the kubelets of these Machines have it: {machines}",
		do: "give their MachineDeployments that version (kubeone apply --upgrade-machine-deployments), " +
			"and apply again",
	},
	{
		code: MachineFailed, class: ClassKube,
		meaning: "A Machine has an error that only a person can correct. Nothing is stopped by this.",
		what:    "Machine {machine} has an error: {error}",
		do:      "correct the object, or delete it",
	},
	{
		code: MachinesUnknown, class: ClassKube,
		meaning: "A cluster is to be reset, and its Machines could not be read although the API answers.",
		what:    "it is not known whether hosts of Machines are to be returned first: {error}",
		do: "see why kubectl get machines fails; or reset with --abandon-machines, which leaves the hosts of " +
			"Machines as they are",
	},
	{
		code: SettingsLater, class: ClassKube,
		meaning: "A Machine's host has other settings than the cluster's record, and gets those when it is its " +
			"turn.",
		what: "its settings are to change, and it is not its turn",
		do:   "nothing, unless the Machine's condition SettingsCurrent says so: see kubectl describe machine",
	},
	{
		code: DefinitionsOfOthers, class: ClassConfig,
		meaning: "The controllers of Machines are to run in the cluster, and another program, such as " +
			"machine-controller, has defined these kinds. kubeone never overwrites them.",
		what: "these CustomResourceDefinitions belong to another program: {names}",
		do: "keep that program, and apply with machineController.deploy: false and without --with-machines; or " +
			"delete its Machines, remove the program, delete these definitions, and apply again",
	},
	{
		code: NodeWithoutMachine, class: ClassKube,
		meaning: "A Node has the name of a Host that no Machine has, or is marked as the Node of a Machine that " +
			"is gone. Its host may still run what that Machine had, and gets pods.",
		what: "the Node {node} belongs to no Machine",
		do: "inspect the host first: it may have pretended to be reset. Then kubectl delete node {node}, and " +
			"install the host again before a Machine gets it",
	},
	{
		code: HostInPool, class: ClassConfig,
		meaning: "A host of the manifest has no Node, and the pool has a Host of its name that no Machine has. " +
			"The API server refuses such a Node.",
		what: "the pool has a Host {name}, which no Machine has: its Node would be refused",
		do:   "kubeone host remove {name}, which leaves the host to the manifest",
	},
}
