// Package preflight says whether a host is fit to be installed.
package preflight

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"kubeone/internal/decide/match"
	"kubeone/internal/desired"
	"kubeone/internal/distro"
	"kubeone/internal/observed"
	"kubeone/internal/problem"

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

// Check checks a host that is to be installed: problems stop everything, warnings do not. A fact that is not
// known is a problem, because nobody could say that the host is fit. Artifacts that have not been resolved are not asked
// for. Free ports and disk space are asked of a fresh host only: on one where our installation has begun, what takes them
// may be ours.
func Check(want *desired.Cluster, host *desired.Host, is *observed.Host, fresh bool) (problems, warnings []problem.Problem) {
	for _, p := range [...]*problem.Problem{
		checkOS(is), checkKernel(is), checkArch(want, is), checkMemory(host.Role, is), Clock(is), checkName(host, is),
	} {
		if p != nil {
			problems = append(problems, At(host, *p))
		}
	}
	if fresh {
		if p := checkDisk(is); p != nil {
			problems = append(problems, At(host, *p))
		}
		for _, p := range checkPorts(host.Role, is) {
			problems = append(problems, At(host, p))
		}
	}
	if p := checkCPUs(host.Role, is); p != nil {
		warnings = append(warnings, At(host, *p))
	}
	return problems, warnings
}

func At(h *desired.Host, p problem.Problem) problem.Problem {
	p.Host = h.ID
	return p
}

func checkOS(is *observed.Host) *problem.Problem {
	if distro.Supported(is.OS.ID) {
		return nil
	}
	return &problem.Problem{
		Class: problem.ClassRuntime,
		What:  "operating system " + problem.Quoted(is.OS.ID) + " is not supported",
		Do:    "install one of " + strings.Join(distro.IDs(), ", "),
	}
}

func checkKernel(is *observed.Host) *problem.Problem {
	// Distributions put anything after the numbers: "5.14.0-427.el9.x86_64".
	numbers, _, _ := strings.Cut(is.Kernel, "-")
	numbers, _, _ = strings.Cut(numbers, "+")
	have, err := version.ParseGeneric(numbers)
	if err == nil && have.AtLeast(version.MustParseGeneric(minKernel)) {
		return nil
	}
	return &problem.Problem{Class: problem.ClassRuntime, Host: "", What: "kernel " + problem.Quoted(is.Kernel) + " is not " + minKernel + " or newer", Do: "install a newer kernel, or use a newer release of the distribution"}
}

// checkArch asks for artifacts only when they have been resolved.
func checkArch(want *desired.Cluster, is *observed.Host) *problem.Problem {
	if _, ok := want.Artifacts[is.Arch]; ok || len(want.Artifacts) == 0 {
		return nil
	}
	return &problem.Problem{
		Class: problem.ClassRuntime, Host: "", What: "no binaries of Kubernetes " + want.KubernetesVersion + " for architecture " + problem.Quoted(is.Arch),
		Do: "use a host, or a bundle, of an architecture that the release has",
	}
}

func checkMemory(role desired.Role, is *observed.Host) *problem.Problem {
	need := minWorkerMemory
	if role == desired.ControlPlane {
		need = minControlPlaneMemory
	}
	return checkAmount("memory", is.MemoryMiB, need, "give the host more memory")
}

func checkDisk(is *observed.Host) *problem.Problem {
	return checkAmount("free disk space below /var/lib", is.DiskMiB, minDisk, "free space there, or give the host a larger disk")
}

// checkAmount compares MiB; 0 is what the probe leaves where it could not find out.
func checkAmount(what string, have, need int, do string) *problem.Problem {
	if have >= need {
		return nil
	}
	return &problem.Problem{Class: problem.ClassRuntime, Host: "", What: fmt.Sprintf("%d MiB of %s, %d MiB are needed", have, what, need), Do: do}
}

func Clock(is *observed.Host) *problem.Problem {
	if is.ClockSkew.Abs() <= maxClockSkew {
		return nil
	}
	way := "ahead of"
	if is.ClockSkew < 0 {
		way = "behind"
	}
	return &problem.Problem{
		Class: problem.ClassRuntime, Host: "", What: fmt.Sprintf("clock is %s %s this machine's, %s are allowed", is.ClockSkew.Abs().Round(time.Second), way, maxClockSkew),
		Do: "set the clock on both, and let chrony or systemd-timesyncd keep it",
	}
}

func checkName(host *desired.Host, is *observed.Host) *problem.Problem {
	name := match.NodeName(host, is, nil)
	if isSubdomain(name) {
		return nil
	}
	return &problem.Problem{
		Class: problem.ClassConfig, Host: "", What: "host name " + problem.Quoted(name) + " cannot name a Node: only a-z, 0-9, '-' and '.', at most 253 of them",
		Do: "rename the host, or set its hostname in the manifest",
	}
}

// ports are those that a host of the role needs for itself.
func ports(role desired.Role) []int {
	if role == desired.ControlPlane {
		return []int{6443, 2379, 2380, 10250, 10257, 10259}
	}
	return []int{10250}
}

func checkPorts(role desired.Role, is *observed.Host) []problem.Problem {
	var out []problem.Problem
	for _, p := range is.Ports {
		if !slices.Contains(ports(role), p.Number) {
			continue
		}
		by := "an unknown process"
		if p.Process != "" {
			by = p.Process
		}
		out = append(out, problem.Problem{Class: problem.ClassRuntime, Host: "", What: fmt.Sprintf("port %d is taken by %s", p.Number, by), Do: "stop it, or use another host"})
	}
	return out
}

func checkCPUs(role desired.Role, is *observed.Host) *problem.Problem {
	if role != desired.ControlPlane || is.CPUs >= minControlPlaneCPUs {
		return nil
	}
	return &problem.Problem{
		Class: problem.ClassRuntime, Host: "", What: fmt.Sprintf("%d CPUs, a control-plane host should have %d", is.CPUs, minControlPlaneCPUs),
		Do: "give the host more CPUs",
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
