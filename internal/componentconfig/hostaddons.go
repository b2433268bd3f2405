package componentconfig

import (
	"fmt"
	"slices"
	"strings"

	"kubeone/internal/model/desired"
)

// AddonsDir is the directory on hosts for the files of addons that are timers.
const AddonsDir = "/etc/kubeone/addons"

// HostAddonFiles returns the files of the addons that are timers on the host, except for their programs.
func HostAddonFiles(in Input) []Text {
	var out []Text
	for _, a := range in.Want.HostAddonsOf(in.Host) {
		out = append(out, filesOfHostAddon(a)...)
	}
	return out
}

func filesOfHostAddon(a desired.HostAddon) []Text {
	if a.Name == desired.EtcdDefragAddon {
		return []Text{
			{"file_etcd_defrag_service", fmt.Sprintf(defragService, a.Threshold, AddonsDir)},
			{"file_etcd_defrag_timer", hostTimer("defragments this host's etcd member", a.Schedule, "")},
		}
	}
	return []Text{
		{"file_unattended_upgrades_service", fmt.Sprintf(upgradesService, AddonsDir)},
		{"file_unattended_upgrades_timer", hostTimer("installs security updates", a.Schedule,
			"RandomizedDelaySec=3600\n")},
		{"file_unattended_upgrades_apt", aptConfiguration()},
		{"file_unattended_upgrades_dnf", dnfConfiguration()},
	}
}

// hostAddonDigests returns the digest of each addon that is a timer on the host.
func hostAddonDigests(in Input) map[string]string {
	out := map[string]string{}
	for _, a := range in.Want.HostAddonsOf(in.Host) {
		var texts []string
		for _, f := range filesOfHostAddon(a) {
			texts = append(texts, f.Content)
		}
		out[a.Name] = digestOf(texts...)
	}
	return out
}

// hostAddonUnits returns the units of an addon, which are empty if the host is not to have it.
func hostAddonUnits(in Input, name string) []File {
	content := map[string]string{}
	for _, f := range HostAddonFiles(in) {
		content[f.Name] = f.Content
	}
	function := "file_" + strings.ReplaceAll(name, "-", "_")
	return []File{
		{"/etc/systemd/system/kubeone-" + name + ".service", content[function+"_service"]},
		{"/etc/systemd/system/kubeone-" + name + ".timer", content[function+"_timer"]},
	}
}

func hostTimer(about string, at desired.Calendar, more string) string {
	return fmt.Sprintf(`[Unit]
Description=%s

[Timer]
OnCalendar=%s
AccuracySec=5
%s
[Install]
WantedBy=timers.target`, about, at, more)
}

// A run waits for a snapshot for up to 15 minutes, and etcd may take 10 minutes. It ends before that of the next host.
const defragService = `[Unit]
Description=defragments this host's etcd member
ConditionPathExists=/etc/kubernetes/manifests/etcd.yaml
After=containerd.service

[Service]
Type=oneshot
Environment=THRESHOLD=%d
ExecStart=%s/etcd-defrag.sh
TimeoutStartSec=1600`

// A package that is being installed must not be interrupted: KillMode=process ends only the program, which waits for
// the package.
const upgradesService = `[Unit]
Description=installs security updates
Wants=network-online.target
After=network-online.target

[Service]
Type=oneshot
ExecStart=/bin/sh -c 'if command -v unattended-upgrade >/dev/null; then ` +
	`apt-get -o DPkg::Lock::Timeout=600 -q update && exec unattended-upgrade; ` +
	`else exec dnf-automatic %s/dnf-automatic.conf; fi'
KillMode=process
TimeoutStopSec=900`

// managedPackages returns names of packages with the programs that kubeone installs in other ways.
func managedPackages() []string {
	return []string{
		"containerd", "containerd.io", "cri-tools", "etcd", "etcd-client", "etcd-server", "kubeadm", "kubectl", "kubelet",
		"kubernetes-cni", "runc",
	}
}

// aptConfiguration returns a file of /etc/apt/apt.conf.d. Its entries are added to those of other files there.
//
// Format: README.md of unattended-upgrades; entries of the list are regular expressions.
func aptConfiguration() string {
	var b strings.Builder
	b.WriteString("// Written by kubeone.\nUnattended-Upgrade::Package-Blacklist {\n")
	for _, name := range managedPackages() {
		fmt.Fprintf(&b, "\t%q;\n", "^"+strings.ReplaceAll(name, ".", "[.]")+"$")
	}
	return b.String() + "};\nUnattended-Upgrade::Automatic-Reboot \"false\";"
}

// dnfConfiguration returns the configuration of dnf-automatic.
//
// Format: https://dnf.readthedocs.io/en/latest/automatic.html
func dnfConfiguration() string {
	return `# Written by kubeone.
[commands]
upgrade_type = security
random_sleep = 0
download_updates = yes
apply_updates = yes
reboot = never
[emitters]
emit_via = stdio
[base]
excludepkgs = ` + strings.Join(slices.Sorted(slices.Values(managedPackages())), " ")
}
