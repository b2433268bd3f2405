package probe

import (
	"slices"
	"strings"

	"kubeone/internal/model/observed"
	"kubeone/internal/text/pattern"
)

// swapName is what the path of a device or file in use as swap looks like.
var swapName = pattern.Lazy(`^/[0-9A-Za-z._/@+-]{1,160}$`)

// cniName is what the name of a file looks like that container runtimes read as CNI configuration.
var cniName = pattern.Lazy(`^[0-9A-Za-z_][0-9A-Za-z._@+-]{0,127}\.(conf|conflist|json)$`)

// kubeletAllows is a setting of the kubelet that allows, or does not allow, what else it refuses to start with.
var kubeletAllows = pattern.Lazy(`(failSwapOn|failCgroupV1)"?\s*:\s*(true|false)`)

const (
	mostSwaps    = 16
	mostCNIFiles = 32
)

// before fills in what was on the host before us and matters to the kubelet and to pods.
func before(h *observed.Host, l lines) {
	for _, name := range l["swap"] {
		if swapName().MatchString(name) && len(h.Swaps) < mostSwaps {
			h.Swaps = append(h.Swaps, name)
		}
	}
	for _, name := range l["cni"] {
		if cniName().MatchString(name) && len(h.CNIFiles) < mostCNIFiles {
			h.CNIFiles = append(h.CNIFiles, name)
		}
	}
	slices.Sort(h.CNIFiles)
	h.CNIFiles = slices.Compact(h.CNIFiles)
	if n := number(l.one("cgroups")); n == 1 || n == 2 {
		h.Cgroups = n
	}
	h.SwapAllowed, h.CgroupV1Allowed = allowed(l["kubelet-allows"])
	h.OtherKubernetes = otherKubernetes(units(l["unit"]))
}

// allowed reports which of both the kubelet is told to start with: by the last line, which goes before all others. What
// its configuration says of control groups does not count: kubeadm writes it again in an upgrade.
func allowed(settings []string) (swap, cgroupV1 bool) {
	for _, text := range settings {
		switch flag := strings.ReplaceAll(text, " ", "="); flag {
		case "--fail-swap-on=true", "--fail-swap-on=false":
			swap = flag == "--fail-swap-on=false"
		case "--fail-cgroupv1=true", "--fail-cgroupv1=false":
			cgroupV1 = flag == "--fail-cgroupv1=false"
		}
		file, setting, _ := strings.Cut(text, ":")
		for _, m := range kubeletAllows().FindAllStringSubmatch(setting, -1) {
			switch {
			case m[1] == "failSwapOn":
				swap = m[2] == "false"
			case file != "/var/lib/kubelet/config.yaml":
				cgroupV1 = m[2] == "false"
			}
		}
	}
	return swap, cgroupV1
}

// otherKubernetes are the units of the probe script that are neither ours nor of what we install, and run or start at
// boot.
func otherKubernetes(units map[string]map[string]string) []string {
	var out []string
	for _, name := range []string{
		"crio.service", "k3s.service", "k3s-agent.service", "rke2-server.service", "rke2-agent.service",
		"k0scontroller.service", "k0sworker.service", "snap.microk8s.daemon-kubelite.service",
		"snap.k8s.kubelet.service",
	} {
		switch is := units[name]; {
		case is["LoadState"] != "loaded":
		case is["ActiveState"] != "inactive" && is["ActiveState"] != "failed", is["UnitFileState"] == "enabled":
			out = append(out, name)
		}
	}
	return out
}
