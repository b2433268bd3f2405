package problem

var stepRows = []row{
	{
		code: InspectConnection,
		do: "Find out why {name} ({address}) does not answer: power, network, SSH. If it comes back, run " +
			"kubeone apply again.",
	},
	{
		code: InspectFileSystem,
		do: "Log in to {name} ({address}) and check that /etc/kubernetes and /var/lib are readable; a " +
			"damaged disk is mounted read-only. Then run kubeone apply again.",
	},
	{
		code: SettleFirst,
		do: "kubeone leaves {name} ({address}) alone until this is resolved: {advice}. Then run kubeone " +
			"apply again.",
	},
	{
		code: FreeSpace,
		do: "Log in to {name} ({address}) and free space in /var/lib/kubeone (df -h, df -i), or repair its " +
			"disk. Then run kubeone apply again.",
	},
	{
		code: StartUnitsOutsideLimit,
		do:   "Run kubeone apply without a limit, or with {address} in it, to start {units} again.",
	},
	{
		code: RegenerateOutsideLimit,
		do:   "Run kubeone apply without a limit, or with {address} in it, to regenerate {parts}.",
	},
	{
		code: RegenerateAfterOthers,
		do:   "Bring the other hosts back first; then run kubeone apply to regenerate {parts} on {name}.",
	},
	{
		code: RejoinOutsideLimit,
		do: "Run kubeone apply without a limit, or with {address} in it: it removes {name} from etcd and " +
			"joins it again.",
	},
	{
		code: RejoinAfterOthers,
		do: "Bring the other etcd members back first; then run kubeone apply, which removes {name} from " +
			"etcd and joins it again.",
	},
	{
		code: DescribeNode,
		do:   "Run kubectl describe node {node} and read its conditions.",
	},
	{
		code: ReadHostLogs,
		do: "Log in to {name} ({address}) and read journalctl -u kubelet -u containerd --since -15min. " +
			"When the host is healthy again, run kubeone apply.",
	},
	{
		code: ReadComponentLogs,
		do: "Log in to {name} ({address}) and read journalctl -u kubelet --since -15min, crictl ps -a and " +
			"crictl logs of the failing container. When the host is healthy again, run kubeone apply.",
	},
	{
		code: FindWhoEmptied,
		do:   "Find out who emptied {name} ({address}): it cannot continue as the same member.",
	},
	{
		code: KeepHost,
		do:   "Do not delete {name}: nothing is lost on it.",
	},
	{
		code: KeepHostMembersUnknown,
		do: "Do not delete {name} or remove it from the manifest: the etcd members are unknown, and quorum " +
			"may depend on this host.",
	},
	{
		code: KeepHostQuorum,
		do: "Do not delete {name} or remove it from the manifest: without it, {healthy} of {voters} voters " +
			"are healthy, and the quorum is {quorum}.",
	},
	{
		code: ReplaceSafely,
		do: "If {name} cannot be saved, replace it. That is safe now: without it, {healthy} of {voters} " +
			"voters are healthy, and the quorum is {quorum}.",
	},
	{
		code: ReplaceWithoutMember,
		do:   "If {name} cannot be saved, replace it. It has no etcd member to lose.",
	},
	{
		code: ReplaceWorker,
		do:   "If {name} cannot be saved, replace it. Its pods start again on other nodes.",
	},
	{
		code: ReplaceInPlace,
		do: "Run kubeone node replace {name}: it resets the host and joins it again. If the machine is " +
			"broken, run kubeone node remove {name}, put a new machine in its place, and run kubeone apply.",
	},
	{
		code: MakeMachine,
		do: "Delete the old machine and create a new, empty one. With Terraform: terraform taint RESOURCE " +
			"(the one for {address}), terraform apply, terraform output -json > tf.json.",
	},
	{
		code: UpdateManifest,
		do:   "If its address changes and Terraform does not fill the manifest, replace {address} in {list}.",
	},
	{
		code: JoinSuccessor,
		do:   "Run kubeone apply (with -t tf.json after Terraform) to join the new host.",
	},
	{
		code: JoinControlPlaneSuccessor,
		do: "Run kubeone apply (with -t tf.json after Terraform): it removes the old etcd member once it " +
			"is confirmed dead, joins the new host as a learner, and promotes it.",
	},
	{
		code: AwaitHealthy,
		do:   "Wait until kubeone status is healthy before you touch another control-plane host.",
	},
	{
		code: ReadEtcdLogs,
		do: "On a control-plane host, read crictl logs of etcd and kube-apiserver, and check that " +
			"/etc/kubernetes/pki/etcd is readable.",
	},
	{
		code: KeepControlPlane,
		do: "Do not delete a control-plane host until kubeone status lists the etcd members again. Then run " +
			"kubeone apply.",
	},
	{
		code: FindMemberMachine,
		do:   "Find the machine that runs etcd member {member} at {peers}.",
	},
	{
		code: SilenceMember,
		do:   "Clear the member's alarms or stop it there; then run kubeone apply again.",
	},
	{
		code: RemoveMemberAfterOthers,
		do: "Bring the other etcd members back first: without {member}, {healthy} of {voters} voters are " +
			"healthy, and the quorum is {quorum}. Then run kubeone apply, which removes it.",
	},
	{
		code: RemoveMemberOutsideLimit,
		do: "Run kubeone apply without a limit to remove {member}. Without it, {healthy} of {voters} " +
			"voters are healthy, and the quorum is {quorum}.",
	},
	{
		code: InspectMemberMachine,
		do:   "Find out whether the machine of {member} at {peers} is still alive; kubeone cannot tell.",
	},
	{
		code: RemoveDeadMember,
		do:   "If it no longer exists, run kubeone apply again once the member is known not to answer.",
	},
	{
		code: ResumeRecovery,
		do: "Run the same kubeone recover command again to resume the recovery. The data it moved aside is " +
			"in /var/lib/kubeone-old on each host.",
	},
	{
		code: AddServingHosts,
		do: "The cluster at {endpoint} is served by hosts that did not answer, or that are not in the " +
			"manifest. Restore the connection to the former, add the latter to the manifest, and run kubeone " +
			"apply to join the other hosts. If another cluster answers there, correct apiEndpoint.",
	},
	{
		code: BringBackHosts,
		do: "Bring back {count} of {hosts}: start the machine, repair its network or disk, start its units. " +
			"Then etcd has quorum again, no data is lost, and kubeone apply does the rest. Only if that is " +
			"impossible, continue.",
	},
	{
		code: KeepEtcdData,
		do: "Do not delete {hosts}, do not empty /var/lib/etcd there, and do not run kubeadm reset or " +
			"kubeone reset: this data may be all that is left.",
	},
	{
		code: RecoverFromMember,
		do: "Run {command}: it shows a plan, asks, stops etcd everywhere, restores the cluster from the " +
			"data of {hosts}, and joins the other control-plane hosts again.",
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
		do: "Run {command}: it shows a plan, asks, and restores the cluster from the backup. CAs and " +
			"service-account keys stay the same, so workers reconnect.",
	},
	{
		code: ConfirmDestroyed,
		do: "Confirm a host as destroyed only when its machine is off for good or deleted: a host that is " +
			"merely unreachable may still be serving.",
	},
	{
		code: ResetCluster,
		do: "Without a backup the cluster cannot be restored. If you do not need anything in it, run kubeone " +
			"reset on every host and then kubeone apply.",
	},
}
