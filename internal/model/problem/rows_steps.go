package problem

var stepRows = []row{
	{
		code: InspectConnection,
		do: "Find out why {name} ({address}) does not answer: power, network, SSH. If it comes back, run " +
			"kubeone apply again.",
	},
	{
		code: InspectFileSystem,
		do: "Log in to {name} ({address}) and check whether /etc/kubernetes and /var/lib can be read; a " +
			"damaged disk is mounted read-only. Then run kubeone apply again.",
	},
	{
		code: SettleFirst,
		do: "Nothing is done to {name} ({address}) before this is settled: {advice}. Then run kubeone apply " +
			"again.",
	},
	{
		code: FreeSpace,
		do: "Log in to {name} ({address}) and free space below /var/lib/kubeone (df -h, df -i), or repair its " +
			"disk. Then run kubeone apply again.",
	},
	{
		code: StartUnitsOutsideLimit,
		do:   "Run kubeone apply without a limit, or with {address} in it: it starts {units} again.",
	},
	{
		code: RegenerateOutsideLimit,
		do:   "Run kubeone apply without a limit, or with {address} in it: it regenerates {parts}.",
	},
	{
		code: RegenerateAfterOthers,
		do:   "Bring the other hosts back first; then kubeone apply regenerates {parts} on {name}.",
	},
	{
		code: RejoinOutsideLimit,
		do: "Run kubeone apply without a limit, or with {address} in it: it takes {name} out of etcd and " +
			"lets it join again.",
	},
	{
		code: RejoinAfterOthers,
		do: "Bring the other members of etcd back first; then kubeone apply takes {name} out of etcd and " +
			"lets it join again.",
	},
	{code: DescribeNode, do: "Run kubectl describe node {node} and read its conditions."},
	{
		code: ReadHostLogs,
		do: "Log in to {name} ({address}) and read journalctl -u kubelet -u containerd --since -15min. When " +
			"the host is healthy again, run kubeone apply.",
	},
	{
		code: ReadComponentLogs,
		do: "Log in to {name} ({address}) and read journalctl -u kubelet --since -15min, crictl ps -a and " +
			"crictl logs of what fails. When the host is healthy again, run kubeone apply.",
	},
	{
		code: FindWhoEmptied,
		do:   "Find out who emptied {name} ({address}): it cannot continue as the member that it was.",
	},
	{code: KeepHost, do: "Do not delete {name}: nothing is lost on it."},
	{
		code: KeepHostMembersUnknown,
		do: "Do not delete {name} and do not take it out of the manifest: etcd's members are unknown, so " +
			"it is not known whether the quorum holds without it.",
	},
	{
		code: KeepHostQuorum,
		do: "Do not delete {name} and do not take it out of the manifest: without it, {healthy} of {voters} " +
			"voters are healthy, and the quorum is {quorum}.",
	},
	{
		code: ReplaceSafely,
		do: "If {name} cannot be saved, replace it. That is safe now: without it, {healthy} of {voters} " +
			"voters are healthy, and the quorum is {quorum}.",
	},
	{
		code: ReplaceWithoutMember,
		do:   "If {name} cannot be saved, replace it. No etcd member is lost with it.",
	},
	{
		code: ReplaceWorker,
		do:   "If {name} cannot be saved, replace it. Its pods start again on other nodes.",
	},
	{
		code: ReplaceInPlace,
		do: "Run kubeone node replace {name}: it empties the host and joins it again. If the machine is no " +
			"good, run kubeone node remove {name}, put a new machine in its place, and run kubeone apply.",
	},
	{
		code: MakeMachine,
		do: "Delete the old machine and make a new, empty one. With Terraform: terraform taint RESOURCE " +
			"(that of {address}), terraform apply, terraform output -json > tf.json.",
	},
	{
		code: UpdateManifest,
		do: "If its address is another one and Terraform does not fill the manifest, put that into {list} in " +
			"the place of {address}.",
	},
	{
		code: JoinSuccessor,
		do:   "Run kubeone apply (with -t tf.json after Terraform): it joins the new host.",
	},
	{
		code: JoinControlPlaneSuccessor,
		do: "Run kubeone apply (with -t tf.json after Terraform): it removes the old etcd member once it is " +
			"confirmed to be dead, joins the new host as a learner, and promotes it.",
	},
	{
		code: AwaitHealthy,
		do:   "Wait until kubeone status is healthy before you touch another control-plane host.",
	},
	{
		code: ReadEtcdLogs,
		do: "On a control-plane host, read crictl logs of etcd and of kube-apiserver, and check whether " +
			"/etc/kubernetes/pki/etcd can be read.",
	},
	{
		code: KeepControlPlane,
		do: "Delete no control-plane host until kubeone status lists etcd's members again. Then " +
			"run kubeone apply.",
	},
	{code: FindMemberMachine, do: "Find the machine that runs etcd member {member} at {peers}."},
	{
		code: SilenceMember,
		do:   "Clear the member's alarms or stop it there; then run kubeone apply again.",
	},
	{
		code: RemoveMemberAfterOthers,
		do: "Bring the other etcd members back first: without it, {healthy} of {voters} voters are healthy, " +
			"and the quorum is {quorum}. Then run kubeone apply, which removes {member}.",
	},
	{
		code: RemoveMemberOutsideLimit,
		do: "Run kubeone apply without a limit: it removes {member}. Without it, {healthy} of {voters} " +
			"voters are healthy, and the quorum is {quorum}.",
	},
	{
		code: InspectMemberMachine,
		do:   "Find out whether the machine of {member} at {peers} is still alive; nothing is known of it.",
	},
	{
		code: RemoveDeadMember,
		do:   "If it is gone for good, run kubeone apply again once the member is known not to answer.",
	},
	{
		code: ResumeRecovery,
		do: "Run the same kubeone recover command again: it resumes the recovery. What it moved aside is in " +
			"/var/lib/kubeone-old on each host.",
	},
	{
		code: AddServingHosts,
		do: "Hosts that did not answer, or that the manifest does not have, serve the cluster at {endpoint}. " +
			"Bring back the way to the former, put the latter into the manifest, and run kubeone apply, which " +
			"has the other hosts join them. If it is another cluster that answers there, correct apiEndpoint.",
	},
	{
		code: BringBackHosts,
		do: "Bring back {count} of {hosts}: start the machine, repair its network or disk, start its units. " +
			"Then etcd has its quorum again, no data is lost, and kubeone apply does the rest. Only if that " +
			"is impossible, go on.",
	},
	{
		code: KeepEtcdData,
		do: "Delete no host, empty no /var/lib/etcd and run neither kubeadm reset nor kubeone reset on " +
			"{hosts}: their data may be all that is left.",
	},
	{
		code: RecoverFromMember,
		do: "Run {command}: it shows a plan, asks, stops etcd everywhere, brings the cluster back from the " +
			"data of {hosts} and lets the other control-plane hosts join again.",
	},
	{
		code: RecoverFromCopy,
		do:   "If that data is damaged, use a copy instead: {command}, or --from SNAPSHOT.",
	},
	{
		code: FindBackup,
		do: "No control-plane host that answered holds etcd data. Find the newest backup, and the private " +
			"key of one of its recipients.",
	},
	{
		code: RecoverFromBackup,
		do: "Run {command}: it shows a plan, asks, and makes the cluster anew from the backup, with the same " +
			"CAs and service-account keys, so that workers find it again.",
	},
	{
		code: ConfirmDestroyed,
		do: "Confirm a host as destroyed only when its machine is off for good or deleted: one that is " +
			"merely cut off may still be serving.",
	},
	{
		code: ResetCluster,
		do: "Without a backup the cluster cannot be restored. If everything that ran in it may be lost, run " +
			"kubeone reset on every host and then kubeone apply.",
	},
}
