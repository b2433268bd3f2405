package problem

var preflightRows = []row{
	{
		code: OSUnsupported, class: ClassRuntime,
		what: `operating system "{os}" is not supported`,
		do:   "install one of {supported}",
	},
	{
		code: ToolsMissing, class: ClassRuntime,
		what: `commands are missing, and kubeone knows no package manager of "{os}" to install them: {tools}`,
		do:   "install them by hand",
	},
	{
		code: KernelTooOld, class: ClassRuntime,
		what: `kernel "{kernel}" is older than {minimum}`,
		do:   "install a newer kernel, or a newer release of the distribution",
	},
	{
		code: MemoryTooSmall, class: ClassRuntime,
		what: "{have} MiB of memory, {need} MiB are needed",
		do:   "give the host more memory",
	},
	{
		code: DiskTooSmall, class: ClassRuntime,
		what: "{have} MiB of free disk space below /var/lib, {need} MiB are needed",
		do:   "free space there, or give the host a larger disk",
	},
	{
		code: CPUsTooFew, class: ClassRuntime,
		what: "too few CPUs: {have}, a control-plane host should have {need}",
		do:   "give the host more CPUs",
	},
	{
		code: ClockAhead, class: ClassRuntime,
		what: "clock is {skew} ahead of this machine's, {limit} are allowed",
		do:   "set both clocks, and keep them in sync with chrony or systemd-timesyncd",
	},
	{
		code: ClockBehind, class: ClassRuntime,
		what: "clock is {skew} behind this machine's, {limit} are allowed",
		do:   "set both clocks, and keep them in sync with chrony or systemd-timesyncd",
	},
	{
		code: HostNameInvalid, class: ClassConfig,
		what: `host name "{name}" is not a valid Node name: use a-z, 0-9, '-' and '.', at most 63 characters`,
		do:   "rename the host, or set its hostname in the manifest",
	},
	{
		code: PortTaken, class: ClassRuntime,
		what: "port {port} is taken by {process}",
		do:   "stop that process, or use another host",
	},
	{
		code: CgroupV1Refused, class: ClassRuntime,
		what: "has control groups v1, and kubelet {kubelet} refuses to start with them",
		do: "switch to control groups v2: set the kernel parameter systemd.unified_cgroup_hierarchy=1 and " +
			"restart the host; or allow v1 with failCgroupV1: false in a drop-in of the kubelet's configuration, " +
			"in the folder of --config-dir in KUBELET_EXTRA_ARGS of /etc/default/kubelet",
	},
	{
		code: OtherKubernetes, class: ClassRuntime,
		what: "another Kubernetes distribution or container runtime runs here, or starts at boot: {units}",
		do:   "uninstall it, or use another host",
	},
}
