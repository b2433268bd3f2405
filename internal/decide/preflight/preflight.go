// Package preflight checks whether a host can be installed.
package preflight

import (
	"slices"
	"strings"
	"time"

	"kubeone/internal/decide/match"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/distro"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/version"
)

// Requirements of a host. Memory of control planes and the number of CPUs are kubeadm's own limits.
const (
	minKernel             = "4.19"
	minControlPlaneMemory = 1700 // MiB
	minWorkerMemory       = 900  // MiB
	minDisk               = 5 * 1024
	minControlPlaneCPUs   = 2
	maxClockSkew          = 30 * time.Second
)

// Check checks a host that is to be installed: problems stop everything, warnings do not. An unknown fact is a problem.
// It checks free ports and disk space on a fresh host only, because a begun installation may itself use them. Kubelet
// is the version to install.
func Check(host *desired.Host, is *observed.Host, kubelet string, fresh bool) (problems, warnings []problem.Problem) {
	for _, p := range [...]*problem.Problem{
		checkOS(is), checkTools(is), checkKernel(is), checkMemory(host.Role, is), Clock(host, is), checkName(host, is),
		checkOthers(is), Cgroups(host, is, kubelet),
	} {
		if p != nil {
			problems = append(problems, *p)
		}
	}
	if fresh {
		if p := checkDisk(is); p != nil {
			problems = append(problems, *p)
		}
		problems = append(problems, checkPorts(host.Role, is)...)
	}
	if p := checkCPUs(host.Role, is); p != nil {
		warnings = append(warnings, *p)
	}
	for _, list := range [...][]problem.Problem{problems, warnings} {
		for i := range list {
			list[i].Host = host.ID
		}
	}
	return problems, warnings
}

func foundProblem(code problem.Code, parameters problem.Parameters) *problem.Problem {
	return &problem.Problem{Code: code, Parameters: parameters}
}

func checkOS(is *observed.Host) *problem.Problem {
	if distro.Supported(is.OS.ID) {
		return nil
	}
	return foundProblem(problem.OSUnsupported, problem.Parameters{"os": is.OS.ID, "supported": distro.IDs()})
}

// checkTools returns the problem of a host that lacks commands and has no package manager to install them with.
func checkTools(is *observed.Host) *problem.Problem {
	if len(is.Tools) == 0 {
		return nil
	}
	if system, ok := distro.Find(is.OS.ID); !ok || len(system.Packages.Managers) > 0 {
		return nil
	}
	return foundProblem(problem.ToolsMissing, problem.Parameters{"tools": is.Tools, "os": is.OS.ID})
}

// Packages returns the distribution's packages that a host lacks and that are installed with it.
func Packages(is *observed.Host) []string {
	system, _ := distro.Find(is.OS.ID)
	return system.PackagesOf(is.Tools)
}

// checkOthers returns the problem of a host with another Kubernetes distribution.
func checkOthers(is *observed.Host) *problem.Problem {
	if len(is.OtherKubernetes) == 0 {
		return nil
	}
	return foundProblem(problem.OtherKubernetes, problem.Parameters{"units": is.OtherKubernetes})
}

// Cgroups returns the problem of a host with cgroup v1 if a kubelet of that version would not start there.
func Cgroups(host *desired.Host, is *observed.Host, kubelet string) *problem.Problem {
	if is.Cgroups != 1 || is.CgroupV1Allowed || !RefusesCgroupV1(kubelet) {
		return nil
	}
	p := foundProblem(problem.CgroupV1Refused, problem.Parameters{"kubelet": kubelet})
	p.Host = host.ID
	return p
}

// RefusesCgroupV1 reports whether a kubelet of that version starts with cgroup v1 only if configured to allow it.
func RefusesCgroupV1(kubelet string) bool {
	v, err := version.ParseGeneric(kubelet)
	return err == nil && v.AtLeast(version.MustParseGeneric("1.35"))
}

// ForeignCNI lists the host's CNI configuration files that are not the cluster's network plugin's, sorted; none if the
// plugin is external.
func ForeignCNI(cni desired.CNI, is *observed.Host) []string {
	if cni.Name == desired.ExternalCNI {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(is.CNIFiles), func(name string) bool {
		return slices.Contains(cni.Files, name)
	})
}

func checkKernel(is *observed.Host) *problem.Problem {
	// Distributions put anything after the numbers: "5.14.0-427.el9.x86_64".
	numbers, _, _ := strings.Cut(is.Kernel, "-")
	numbers, _, _ = strings.Cut(numbers, "+")
	have, err := version.ParseGeneric(numbers)
	if err == nil && have.AtLeast(version.MustParseGeneric(minKernel)) {
		return nil
	}
	return foundProblem(problem.KernelTooOld, problem.Parameters{"kernel": is.Kernel, "minimum": minKernel})
}

func checkMemory(role desired.Role, is *observed.Host) *problem.Problem {
	need := minWorkerMemory
	if role == desired.ControlPlane {
		need = minControlPlaneMemory
	}
	return checkAmount(problem.MemoryTooSmall, is.MemoryMiB, need)
}

func checkDisk(is *observed.Host) *problem.Problem {
	return checkAmount(problem.DiskTooSmall, is.DiskMiB, minDisk)
}

// checkAmount compares numbers; 0 means that the probe could not find out.
func checkAmount(code problem.Code, have, need int) *problem.Problem {
	if have >= need {
		return nil
	}
	return foundProblem(code, problem.Parameters{"have": have, "need": need})
}

// Clock returns the problem of a host whose clock differs too much from this machine's.
func Clock(host *desired.Host, is *observed.Host) *problem.Problem {
	if is.ClockSkew.Abs() <= maxClockSkew {
		return nil
	}
	code := problem.ClockAhead
	if is.ClockSkew < 0 {
		code = problem.ClockBehind
	}
	p := foundProblem(code, problem.Parameters{
		"skew":  is.ClockSkew.Abs().Round(time.Second).String(),
		"limit": maxClockSkew.String(),
	})
	p.Host = host.ID
	return p
}

func checkName(host *desired.Host, is *observed.Host) *problem.Problem {
	name := match.NodeName(host, is, nil)
	// It is also the Node's label kubernetes.io/hostname; with a longer one, the API refuses to register the kubelet.
	if len(name) <= validation.LabelValueMaxLength && len(validation.IsDNS1123Subdomain(name)) == 0 {
		return nil
	}
	return foundProblem(problem.HostNameInvalid, problem.Parameters{"name": name})
}

// requiredPorts returns the ports that a host of the role needs.
func requiredPorts(role desired.Role) []int {
	if role == desired.ControlPlane {
		return []int{6443, 2379, 2380, 10250, 10257, 10259}
	}
	return []int{10250}
}

func checkPorts(role desired.Role, is *observed.Host) []problem.Problem {
	var out []problem.Problem
	for _, p := range is.Ports {
		if !slices.Contains(requiredPorts(role), p.Number) {
			continue
		}
		by := p.Process
		if by == "" {
			by = "an unknown process"
		}
		out = append(out, problem.Problem{
			Code:       problem.PortTaken,
			Parameters: problem.Parameters{"port": p.Number, "process": by},
		})
	}
	return out
}

func checkCPUs(role desired.Role, is *observed.Host) *problem.Problem {
	if role != desired.ControlPlane {
		return nil
	}
	return checkAmount(problem.CPUsTooFew, is.CPUs, minControlPlaneCPUs)
}
