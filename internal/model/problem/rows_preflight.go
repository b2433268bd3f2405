package problem

var preflightRows = []row{
	{
		code: OSUnsupported, class: ClassRuntime,
		what: `operating system "{os}" is not supported`,
		do:   "install one of {supported}",
	},
	{
		code: ToolsMissing, class: ClassRuntime,
		what: `commands are missing, and kubeone knows no package manager for "{os}" to install them: {tools}`,
		do:   "install them manually",
	},
	{
		code: UpgraderUnknown, class: ClassRuntime,
		what: `addon unattended-upgrades is not supported on "{os}"`,
		do:   "remove the addon from the manifest, and update this host as its operating system provides",
	},
	{
		code: KernelTooOld, class: ClassRuntime,
		what: `kernel "{kernel}" is older than {minimum}`,
		do:   "install a newer kernel, or a newer release of the distribution",
	},
	{
		code: MemoryTooSmall, class: ClassRuntime,
		what: "the host has only {have} MiB of memory; {need} MiB is required",
		do:   "give the host more memory",
	},
	{
		code: DiskTooSmall, class: ClassRuntime,
		what: "only {have} MiB of disk space is free in /var/lib; {need} MiB is required",
		do:   "free space there, or give the host a larger disk",
	},
	{
		code: CPUsTooFew, class: ClassRuntime,
		what: "too few CPUs: {have}; a control-plane host should have at least {need}",
		do:   "give the host more CPUs",
	},
	{
		code: ClockAhead, class: ClassRuntime,
		what: "clock is {skew} ahead of this machine's clock; at most {limit} is allowed",
		do:   "set both clocks, and keep them in sync with chrony or systemd-timesyncd",
	},
	{
		code: ClockBehind, class: ClassRuntime,
		what: "clock is {skew} behind this machine's clock; at most {limit} is allowed",
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
		what: "uses cgroup v1, and kubelet {kubelet} refuses to start with it",
		do: "switch to cgroup v2: set the kernel parameter systemd.unified_cgroup_hierarchy=1 and restart " +
			"the host; or allow v1 with failCgroupV1: false in a drop-in file for the kubelet configuration, in the " +
			"folder that --config-dir names in KUBELET_EXTRA_ARGS in /etc/default/kubelet",
	},
	{
		code: OtherKubernetes, class: ClassRuntime,
		what: "another Kubernetes distribution or container runtime runs here, or starts at boot: {units}",
		do:   "uninstall it, or use another host",
	},
}
