package problem

var etcdRows = []row{
	{
		code: OrphanMember, class: ClassEtcd,
		meaning: "etcd has a member of no host of the manifest.",
		what:    "etcd member {member} is {state} and has no host in the manifest",
		do:      "put its host back into the manifest; kubeone node remove then takes it out safely",
	},
	{
		code: ReplacedMember, class: ClassEtcd,
		meaning: "etcd has a member whose host holds none of its data: the host was replaced or emptied.",
		what:    "etcd member {member} is {state} and its host has none of its data",
		do:      "run kubeone apply: it removes the member once it is known to be dead",
	},
	{
		code: EtcdMembersUnknown, class: ClassEtcd,
		meaning: "The list of etcd's members is unknown.",
		what:    "etcd's members are unknown: {error}",
		do:      "read the logs of etcd and kube-apiserver on a control-plane host",
	},
	{
		code: EtcdQuorumLost, class: ClassEtcd,
		meaning: "So many of etcd's voters have failed that the others are no majority: the cluster cannot be " +
			"written to.",
		what: "etcd has lost its quorum: {healthy} of {voters} voters healthy, quorum {quorum}",
		do:   "bring hosts back; only if that is impossible, run kubeone recover",
	},
	{
		code: ServedElsewhere, class: ClassEtcd,
		meaning: "No control-plane host of the manifest that answers serves the cluster, and an API server is " +
			"ready where the cluster's users look for it: others have etcd's quorum.",
		what: "an API server is ready at {endpoint}, and it is none of the control-plane hosts that answered",
		do: "bring back the way to the hosts that serve, or put them into the manifest; a recovery or an " +
			"installation would make a second cluster",
	},
	{
		code: EtcdWithoutMembers, class: ClassEtcd,
		meaning: "No control-plane host holds an etcd member any more.",
		what:    "etcd has lost its quorum: no control-plane host holds an etcd member",
		do:      "restore a backup with kubeone recover",
	},
	{
		code: RecoveryIncomplete, class: ClassEtcd,
		meaning: "A recovery of the cluster was interrupted.",
		what:    "a recovery is incomplete: it has stopped etcd on {hosts}",
		do:      "run the same kubeone recover command again",
	},
	{
		code: SuccessorNeeded, class: ClassRuntime,
		meaning: "A host has left the cluster, and its machine is gone.",
		what:    "has left the cluster and needs a successor",
		do:      "make a new machine in its place",
	},
}
