package problem

var etcdRows = []row{
	{
		code: OrphanMember, class: ClassEtcd,
		what: "etcd member {member} is {state} and its host is not in the manifest",
		do:   "put its host back into the manifest; kubeone node remove then removes it safely",
	},
	{
		code: ReplacedMember, class: ClassEtcd,
		meaning: "The member's host was replaced or emptied.",
		what:    "etcd member {member} is {state} and its host has none of its data",
		do:      "run kubeone apply: it removes the member once it is known to be dead",
	},
	{
		code: EtcdMembersUnknown, class: ClassEtcd,
		what: "the etcd members are unknown: {error}",
		do:   "read the etcd and kube-apiserver logs on a control-plane host",
	},
	{
		code: EtcdQuorumLost, class: ClassEtcd,
		meaning: "Too few voters are left for a majority, so the cluster is read-only.",
		what:    "etcd has lost quorum: {healthy} of {voters} voters are healthy, and the quorum is {quorum}",
		do:      "bring hosts back; only if that is impossible, run kubeone recover",
	},
	{
		code: ServedElsewhere, class: ClassEtcd,
		meaning: "Other hosts have etcd quorum and serve the cluster.",
		what:    "an API server is ready at {endpoint}, but not on any control-plane host that answered",
		do: "restore the connection to the hosts that serve, or put them into the manifest; a recovery or " +
			"an installation would create a second cluster",
	},
	{
		code: EtcdWithoutMembers, class: ClassEtcd,
		what: "etcd has lost quorum: no control-plane host holds an etcd member",
		do:   "restore a backup with kubeone recover",
	},
	{
		code: RecoveryIncomplete, class: ClassEtcd,
		what: "a recovery is incomplete: it has stopped etcd on {hosts}",
		do:   "run the same kubeone recover command again",
	},
	{
		code: SuccessorNeeded, class: ClassRuntime,
		what: "has left the cluster and needs a replacement",
		do:   "create a new machine to replace it",
	},
}
