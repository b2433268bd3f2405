package problem

var preflightRows = []row{
	{
		code: OSUnsupported, class: ClassRuntime,
		meaning: "The host's operating system is not supported.",
		what:    `operating system "{os}" is not supported`,
		do:      "install one of {supported}",
	},
	{
		code: ToolsMissing, class: ClassRuntime,
		meaning: "The host lacks commands that Kubernetes needs, and no package manager is known that brings them.",
		what:    `commands are missing, and there is no package manager of "{os}" to install them with: {tools}`,
		do:      "put them on the host, as its system does that",
	},
	{
		code: KernelTooOld, class: ClassRuntime, meaning: "The host's kernel is too old.",
		what: `kernel "{kernel}" is older than {minimum}`,
		do:   "install a newer kernel, or a newer release of the distribution",
	},
	{
		code: MemoryTooSmall, class: ClassRuntime, meaning: "The host has too little memory.",
		what: "{have} MiB of memory, {need} MiB are needed",
		do:   "give the host more memory",
	},
	{
		code: DiskTooSmall, class: ClassRuntime,
		meaning: "The host has too little free disk space.",
		what:    "{have} MiB of free disk space below /var/lib, {need} MiB are needed",
		do:      "free space there, or give the host a larger disk",
	},
	{
		code: CPUsTooFew, class: ClassRuntime,
		meaning: "The host has fewer CPUs than a control-plane host should have.",
		what:    "too few CPUs: {have}, a control-plane host should have {need}",
		do:      "give the host more CPUs",
	},
	{
		code: ClockAhead, class: ClassRuntime,
		meaning: "The host's clock is ahead of that of the machine that runs kubeone.",
		what:    "clock is {skew} ahead of this machine's, {limit} are allowed",
		do:      "set the clock on both, and keep it with chrony or systemd-timesyncd",
	},
	{
		code: ClockBehind, class: ClassRuntime,
		meaning: "The host's clock is behind that of the machine that runs kubeone.",
		what:    "clock is {skew} behind this machine's, {limit} are allowed",
		do:      "set the clock on both, and keep it with chrony or systemd-timesyncd",
	},
	{
		code: HostNameInvalid, class: ClassConfig,
		meaning: "The host's name cannot be the name of a Node.",
		what:    `host name "{name}" is not a valid Node name: use a-z, 0-9, '-' and '.', at most 63 characters`,
		do:      "rename the host, or set its hostname in the manifest",
	},
	{
		code: PortTaken, class: ClassRuntime,
		meaning: "Something listens on a port that Kubernetes needs.",
		what:    "port {port} is taken by {process}",
		do:      "stop that process, or use another host",
	},
	{
		code: CgroupV1Refused, class: ClassRuntime,
		meaning: "The host has control groups v1, and a kubelet of the wanted version does not start with them.",
		what:    "has control groups v1, and kubelet {kubelet} refuses to start with them",
		do: "switch the host to control groups v2: kernel parameter systemd.unified_cgroup_hierarchy=1, and a " +
			"restart of the host; or allow v1 there: failCgroupV1: false in a drop-in of the kubelet's " +
			"configuration, whose folder --config-dir in KUBELET_EXTRA_ARGS of /etc/default/kubelet names",
	},
	{
		code: OtherKubernetes, class: ClassRuntime,
		meaning: "Another Kubernetes distribution or CRI-O runs on a host that is to join, or starts at its boot.",
		what:    "another Kubernetes distribution or container runtime runs here, or starts at boot: {units}",
		do:      "uninstall it as its documentation says, or use another host",
	},
}
