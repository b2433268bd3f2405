package decide

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"kubeone/internal/desired"
	"kubeone/internal/distro"
	"kubeone/internal/observed"

	"k8s.io/apimachinery/pkg/util/version"
)

// What a host needs. Memory of control planes and the number of CPUs are kubeadm's own limits.
const (
	minKernel             = "4.19"
	minControlPlaneMemory = 1700 // MiB
	minWorkerMemory       = 900  // MiB
	minDisk               = 5 * 1024
	minControlPlaneCPUs   = 2
	maxClockSkew          = 30 * time.Second
)

// Preconditions checks a host that is to be installed: problems stop everything, warnings do not. A fact that is not
// known is a problem, because nobody could say that the host is fit. Artifacts that have not been resolved are not asked
// for. Free ports and disk space are asked of a fresh host only: on one where our installation has begun, what takes them
// may be ours.
func Preconditions(want *desired.Cluster, host *desired.Host, is *observed.Host, fresh bool) (problems, warnings []Problem) {
	for _, p := range [...]*Problem{
		checkOS(is), checkKernel(is), checkArch(want, is), checkMemory(host.Role, is), checkClock(is), checkName(host, is),
	} {
		if p != nil {
			problems = append(problems, at(host, *p))
		}
	}
	if fresh {
		if p := checkDisk(is); p != nil {
			problems = append(problems, at(host, *p))
		}
		for _, p := range checkPorts(host.Role, is) {
			problems = append(problems, at(host, p))
		}
	}
	if p := checkCPUs(host.Role, is); p != nil {
		warnings = append(warnings, at(host, *p))
	}
	return problems, warnings
}

func at(h *desired.Host, p Problem) Problem {
	p.Host = h.ID
	return p
}

func checkOS(is *observed.Host) *Problem {
	if distro.Supported(is.OS.ID) {
		return nil
	}
	return &Problem{
		Class: ClassRuntime,
		What:  "operating system " + quoted(is.OS.ID) + " is not supported",
		Do:    "install one of " + strings.Join(distro.IDs(), ", "),
	}
}

func checkKernel(is *observed.Host) *Problem {
	// Distributions put anything after the numbers: "5.14.0-427.el9.x86_64".
	numbers, _, _ := strings.Cut(is.Kernel, "-")
	numbers, _, _ = strings.Cut(numbers, "+")
	have, err := version.ParseGeneric(numbers)
	if err == nil && have.AtLeast(version.MustParseGeneric(minKernel)) {
		return nil
	}
	return &Problem{ClassRuntime, "", "kernel " + quoted(is.Kernel) + " is not " + minKernel + " or newer", "install a newer kernel, or use a newer release of the distribution"}
}

// checkArch asks for artifacts only when they have been resolved.
func checkArch(want *desired.Cluster, is *observed.Host) *Problem {
	if _, ok := want.Artifacts[is.Arch]; ok || len(want.Artifacts) == 0 {
		return nil
	}
	return &Problem{
		ClassRuntime, "", "no binaries of Kubernetes " + want.KubernetesVersion + " for architecture " + quoted(is.Arch),
		"use a host, or a bundle, of an architecture that the release has",
	}
}

func checkMemory(role desired.Role, is *observed.Host) *Problem {
	need := minWorkerMemory
	if role == desired.ControlPlane {
		need = minControlPlaneMemory
	}
	return checkAmount("memory", is.MemoryMiB, need, "give the host more memory")
}

func checkDisk(is *observed.Host) *Problem {
	return checkAmount("free disk space below /var/lib", is.DiskMiB, minDisk, "free space there, or give the host a larger disk")
}

// checkAmount compares MiB; 0 is what the probe leaves where it could not find out.
func checkAmount(what string, have, need int, do string) *Problem {
	if have >= need {
		return nil
	}
	return &Problem{ClassRuntime, "", fmt.Sprintf("%d MiB of %s, %d MiB are needed", have, what, need), do}
}

func checkClock(is *observed.Host) *Problem {
	if is.ClockSkew.Abs() <= maxClockSkew {
		return nil
	}
	way := "ahead of"
	if is.ClockSkew < 0 {
		way = "behind"
	}
	return &Problem{
		ClassRuntime, "", fmt.Sprintf("clock is %s %s this machine's, %s are allowed", is.ClockSkew.Abs().Round(time.Second), way, maxClockSkew),
		"set the clock on both, and let chrony or systemd-timesyncd keep it",
	}
}

func checkName(host *desired.Host, is *observed.Host) *Problem {
	name := nodeName(host, is, nil)
	if isSubdomain(name) {
		return nil
	}
	return &Problem{
		ClassConfig, "", "host name " + quoted(name) + " cannot name a Node: only a-z, 0-9, '-' and '.', at most 253 of them",
		"rename the host, or set its hostname in the manifest",
	}
}

// ports are those that a host of the role needs for itself.
func ports(role desired.Role) []int {
	if role == desired.ControlPlane {
		return []int{6443, 2379, 2380, 10250, 10257, 10259}
	}
	return []int{10250}
}

func checkPorts(role desired.Role, is *observed.Host) []Problem {
	var out []Problem
	for _, p := range is.Ports {
		if !slices.Contains(ports(role), p.Number) {
			continue
		}
		by := "an unknown process"
		if p.Process != "" {
			by = p.Process
		}
		out = append(out, Problem{ClassRuntime, "", fmt.Sprintf("port %d is taken by %s", p.Number, by), "stop it, or use another host"})
	}
	return out
}

func checkCPUs(role desired.Role, is *observed.Host) *Problem {
	if role != desired.ControlPlane || is.CPUs >= minControlPlaneCPUs {
		return nil
	}
	return &Problem{
		ClassRuntime, "", fmt.Sprintf("%d CPUs, a control-plane host should have %d", is.CPUs, minControlPlaneCPUs),
		"give the host more CPUs",
	}
}

// isSubdomain reports whether the name is a DNS-1123 subdomain, as names of Nodes are: labels of letters, digits and
// inner hyphens, in lower case, between dots.
func isSubdomain(name string) bool {
	if name == "" || len(name) > 253 {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || strings.Trim(label, "-") != label || strings.ContainsFunc(label, notInLabel) {
			return false
		}
	}
	return true
}

func notInLabel(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-'
}
