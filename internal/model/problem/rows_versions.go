package problem

var versionsRows = []row{
	{
		code: VersionsUnknown, class: ClassKube,
		meaning: "The version that some members run is unknown.",
		what:    "the version of {hosts} is unknown",
		do:      "inspect the hosts with kubeone status",
	},
	{
		code: APIServerVersionUnknown, class: ClassKube,
		meaning: "No API server said its version.",
		what:    "no API server said its version",
		do:      "inspect the control plane with kubeone status",
	},
	{
		code: RunningVersionInvalid, class: ClassKube,
		meaning: "A member runs something whose version is not a version.",
		what:    `the running version "{version}" is not a valid version`,
		do:      "inspect the hosts with kubeone status",
	},
	{
		code: MajorVersionChange, class: ClassKube,
		meaning: "The wanted version has another major version than the running one.",
		what:    "{running} runs and {wanted} is wanted: they differ in the major version",
		do:      "set the version in the manifest to one of the running major version",
	},
	{
		code: Downgrade, class: ClassConfig,
		meaning: "Something newer than the wanted version runs. Kubernetes cannot be downgraded.",
		what:    "{wanted} is wanted and {running} runs: Kubernetes cannot be downgraded",
		do:      "set the version in the manifest to the running version or a higher one",
	},
	{
		code: DowngradeOfSome, class: ClassConfig,
		meaning: "Some members run something newer than the wanted version.",
		what:    "{wanted} is wanted and {running} runs: Kubernetes cannot be downgraded; newer are {newer}",
		do:      "set the version in the manifest to the running version or a higher one",
	},
	{
		code: KubeletAhead, class: ClassConfig,
		meaning: "Kubelets are newer than every API server, and newer than the wanted version.",
		what:    "{wanted} is wanted and {running} runs: Kubernetes cannot be downgraded; newer are {newer}",
		do:      "no API server is newer: take {hosts} out and let it join again with kubeone node replace",
	},
	{
		code: MinorSkipped, class: ClassConfig,
		meaning: "The wanted version is more than one minor above the running one.",
		what:    "{wanted} is wanted and API servers run {running}: no minor version may be skipped",
		do:      "upgrade to {next} first: set it in the manifest, or name a version of it with --through",
	},
	{
		code: KubeletSkew, class: ClassConfig,
		meaning: "A kubelet may not speak to an API server of the wanted version: it may be three minors older, " +
			"and never newer.",
		what: "node {node}: kubelet {kubelet} does not work with API server {apiServer}",
		do:   "upgrade the node to a version in between, or remove it; see kubectl get nodes",
	},
	{
		code: KubeletSkewOutsideLimit, class: ClassConfig,
		meaning: "Workers inside the limit would get a kubelet that is too new for an API server outside of it.",
		what: "{name} is outside the limit, and its API server {apiServer} does not work with kubelet " +
			"{kubelet}, which workers inside the limit would get",
		do: "add the control plane to the limit",
	},
	{
		code: KubeletSkewElsewhere, class: ClassConfig,
		meaning: "A control-plane host that the manifest does not have may run an API server that is too old for " +
			"the wanted kubelets.",
		what: "the control-plane Node {node} is of no host of the manifest, and its kubelet is {kubelet}: its " +
			"API server may be too old for kubelets of {wanted}, which reach it too",
		do: "put the host back into the manifest, and upgrade it, or take it out of the cluster then with " +
			"kubeone node remove",
	},
	{
		code: ControlPlaneVersionNamed, class: ClassConfig,
		meaning: "Versions are named for a control-plane host. Those are of the cluster's version, all of them.",
		what:    "a control-plane host has the cluster's versions, and others are named for it",
		do:      "name versions for workers only",
	},
	{
		code: KubeletVersionRefused, class: ClassConfig,
		meaning: "The kubelet's version that is named for a worker is newer than the cluster's, or more than " +
			"three minors older.",
		what: "kubelet {kubelet} does not work with API server {apiServer}",
		do:   "name a version for this worker that is not newer than the cluster's, and at most three minors older",
	},
	{
		code: ContainerdRefused, class: ClassConfig,
		meaning: "The version of containerd that is named for a worker is none that its kubelet supports.",
		what:    "kubelet {kubelet} does not work with containerd {containerd}",
		do:      "name a version of containerd 2 for this worker",
	},
}
