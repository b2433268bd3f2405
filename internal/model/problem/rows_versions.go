package problem

var versionsRows = []row{
	{
		code: VersionsUnknown, class: ClassKube,
		what: "the version of {hosts} is unknown",
		do:   "inspect the hosts with kubeone status",
	},
	{
		code: APIServerVersionUnknown, class: ClassKube,
		what: "no API server reported its version",
		do:   "inspect the control plane with kubeone status",
	},
	{
		code: RunningVersionInvalid, class: ClassKube,
		what: `the running version "{version}" is not a valid version`,
		do:   "inspect the hosts with kubeone status",
	},
	{
		code: MajorVersionChange, class: ClassKube,
		what: "cannot change the major version: {running} is running, {wanted} is desired",
		do:   "set a version of the running major version in the manifest",
	},
	{
		code: Downgrade, class: ClassConfig,
		what: "{wanted} is desired and {running} is running: Kubernetes cannot be downgraded",
		do:   "set the running version or a higher one in the manifest",
	},
	{
		code: DowngradeOfSome, class: ClassConfig,
		meaning: "Some members run a version newer than the desired one.",
		what: "{wanted} is desired and {running} is running: Kubernetes cannot be downgraded; these are newer: " +
			"{newer}",
		do: "set the running version or a higher one in the manifest",
	},
	{
		code: KubeletAhead, class: ClassConfig,
		meaning: "Kubelets are newer than the desired version and every API server.",
		what: "{wanted} is desired and {running} is running: Kubernetes cannot be downgraded; these are newer: " +
			"{newer}",
		do: "no API server is newer: reinstall {hosts} with kubeone node replace",
	},
	{
		code: MinorSkipped, class: ClassConfig,
		what: "{wanted} is desired and API servers run {running}: minor versions cannot be skipped",
		do:   "upgrade to {next} first: set it in the manifest, or name a version of it with --through",
	},
	{
		code: KubeletSkew, class: ClassConfig,
		meaning: "A kubelet may be at most three minors older than the API server, and never newer.",
		what:    "node {node}: kubelet {kubelet} does not work with API server {apiServer}",
		do:      "upgrade the node to a version in between, or remove it; see kubectl get nodes",
	},
	{
		code: KubeletSkewOutsideLimit, class: ClassConfig,
		what: "{name} is outside the limit, and its API server {apiServer} does not work with kubelet " +
			"{kubelet}, which workers inside the limit would get",
		do: "add the control plane to the limit",
	},
	{
		code: KubeletSkewElsewhere, class: ClassConfig,
		what: "the control-plane Node {node} (kubelet {kubelet}) is not in the manifest, and its API server " +
			"may be too old for kubelet {wanted}",
		do: "put the host back into the manifest and upgrade it, or remove it from the cluster with " +
			"kubeone node remove",
	},
	{
		code: ControlPlaneVersionNamed, class: ClassConfig,
		what: "a control-plane host runs the cluster's versions, but the manifest sets others for it",
		do:   "set versions for workers only",
	},
	{
		code: KubeletVersionRefused, class: ClassConfig,
		meaning: "A worker's kubelet version in the manifest is newer than the cluster's, or more than three " +
			"minors older.",
		what: "kubelet {kubelet} does not work with API server {apiServer}",
		do:   "set a kubelet version that is not newer than the cluster's, and at most three minors older",
	},
	{
		code: ContainerdRefused, class: ClassConfig,
		meaning: "A worker's kubelet does not support the containerd version in the manifest.",
		what:    "kubelet {kubelet} does not work with containerd {containerd}",
		do:      "set a version of containerd 2 for this worker",
	},
}
