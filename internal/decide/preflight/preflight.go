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

// Check checks a host that is to be installed. Problems prevent the installation; warnings do not. An unknown fact is a
// problem. Free ports and disk space are checked only if fresh is true, because an unfinished installation may itself
// use them. kubelet is the version to install.
func Check(host *desired.Host, seen *observed.Host, kubelet string, fresh bool) (problems, warnings []problem.Problem) {
	for _, p := range [...]*problem.Problem{
		checkOS(seen), checkTools(seen), checkKernel(seen), checkMemory(host.Role, seen), Clock(host, seen),
		checkName(host, seen), checkOthers(seen), Cgroups(host, seen, kubelet),
	} {
		if p != nil {
			problems = append(problems, *p)
		}
	}
	if fresh {
		if p := checkDisk(seen); p != nil {
			problems = append(problems, *p)
		}
		problems = append(problems, checkPorts(host.Role, seen)...)
	}
	if p := checkCPUs(host.Role, seen); p != nil {
		warnings = append(warnings, *p)
	}
	for _, list := range [...][]problem.Problem{problems, warnings} {
		for i := range list {
			list[i].Host = host.ID
		}
	}
	return problems, warnings
}

func newProblem(code problem.Code, parameters problem.Parameters) *problem.Problem {
	return &problem.Problem{Code: code, Parameters: parameters}
}

func checkOS(seen *observed.Host) *problem.Problem {
	if distro.Supported(seen.OS.ID) {
		return nil
	}
	return newProblem(problem.OSUnsupported, problem.Parameters{"os": seen.OS.ID, "supported": distro.IDs()})
}

// checkTools returns a problem if the host lacks commands and has no package manager to install them with.
func checkTools(seen *observed.Host) *problem.Problem {
	if len(seen.Tools) == 0 {
		return nil
	}
	if system, ok := distro.Find(seen.OS.ID); !ok || len(system.Packages.Managers) > 0 {
		return nil
	}
	return newProblem(problem.ToolsMissing, problem.Parameters{"tools": seen.Tools, "os": seen.OS.ID})
}

// Upgrader returns a problem if the operating system has no program that installs security updates on its own. Check
// reports an unsupported system.
func Upgrader(seen *observed.Host) *problem.Problem {
	system, found := distro.Find(seen.OS.ID)
	if !found || system.Packages.Upgrader != "" {
		return nil
	}
	return newProblem(problem.UpgraderUnknown, problem.Parameters{"os": seen.OS.ID})
}

// Packages returns the packages of the distribution that the host lacks. They are installed together with it.
func Packages(seen *observed.Host) []string {
	system, _ := distro.Find(seen.OS.ID)
	return system.PackagesOf(seen.Tools)
}

// checkOthers returns a problem if the host has another Kubernetes distribution.
func checkOthers(seen *observed.Host) *problem.Problem {
	if len(seen.OtherKubernetes) == 0 {
		return nil
	}
	return newProblem(problem.OtherKubernetes, problem.Parameters{"units": seen.OtherKubernetes})
}

// Cgroups returns a problem if the host uses cgroup v1 and a kubelet of the given version would refuse to start there.
// Otherwise it returns nil.
func Cgroups(host *desired.Host, seen *observed.Host, kubelet string) *problem.Problem {
	if seen.Cgroups != 1 || seen.CgroupV1Allowed || !RefusesCgroupV1(kubelet) {
		return nil
	}
	p := newProblem(problem.CgroupV1Refused, problem.Parameters{"kubelet": kubelet})
	p.Host = host.ID
	return p
}

// RefusesCgroupV1 reports whether a kubelet of the given version starts with cgroup v1 only if its configuration allows
// it.
func RefusesCgroupV1(kubelet string) bool {
	v, err := version.ParseGeneric(kubelet)
	return err == nil && v.AtLeast(version.MustParseGeneric("1.35"))
}

// ForeignCNI returns the CNI configuration files on the host that do not belong to the cluster's network plugin,
// sorted. It returns nil if the plugin is external.
func ForeignCNI(cni desired.CNI, seen *observed.Host) []string {
	if cni.Name == desired.ExternalCNI {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(seen.CNIFiles), func(name string) bool {
		return slices.Contains(cni.Files, name)
	})
}

func checkKernel(seen *observed.Host) *problem.Problem {
	// Distributions put anything after the numbers: "5.14.0-427.el9.x86_64".
	numbers, _, _ := strings.Cut(seen.Kernel, "-")
	numbers, _, _ = strings.Cut(numbers, "+")
	have, err := version.ParseGeneric(numbers)
	if err == nil && have.AtLeast(version.MustParseGeneric(minKernel)) {
		return nil
	}
	return newProblem(problem.KernelTooOld, problem.Parameters{"kernel": seen.Kernel, "minimum": minKernel})
}

func checkMemory(role desired.Role, seen *observed.Host) *problem.Problem {
	need := minWorkerMemory
	if role == desired.ControlPlane {
		need = minControlPlaneMemory
	}
	return checkAmount(problem.MemoryTooSmall, seen.MemoryMiB, need)
}

func checkDisk(seen *observed.Host) *problem.Problem {
	return checkAmount(problem.DiskTooSmall, seen.DiskMiB, minDisk)
}

// checkAmount returns a problem if have is less than need. An amount of 0 means that the probe could not find it out.
func checkAmount(code problem.Code, have, need int) *problem.Problem {
	if have >= need {
		return nil
	}
	return newProblem(code, problem.Parameters{"have": have, "need": need})
}

// Clock returns a problem if the clock of the host differs too much from that of this machine.
func Clock(host *desired.Host, seen *observed.Host) *problem.Problem {
	if seen.ClockSkew.Abs() <= maxClockSkew {
		return nil
	}
	code := problem.ClockAhead
	if seen.ClockSkew < 0 {
		code = problem.ClockBehind
	}
	p := newProblem(code, problem.Parameters{
		"skew":  seen.ClockSkew.Abs().Round(time.Second).String(),
		"limit": maxClockSkew.String(),
	})
	p.Host = host.ID
	return p
}

func checkName(host *desired.Host, seen *observed.Host) *problem.Problem {
	name := match.NodeName(host, seen, nil)
	// It is also the Node's label kubernetes.io/hostname; with a longer one, the API refuses to register the kubelet.
	if len(name) <= validation.LabelValueMaxLength && len(validation.IsDNS1123Subdomain(name)) == 0 {
		return nil
	}
	return newProblem(problem.HostNameInvalid, problem.Parameters{"name": name})
}

// requiredPorts returns the ports that a host of the role needs.
func requiredPorts(role desired.Role) []int {
	if role == desired.ControlPlane {
		return []int{6443, 2379, 2380, 10250, 10257, 10259}
	}
	return []int{10250}
}

func checkPorts(role desired.Role, seen *observed.Host) []problem.Problem {
	var out []problem.Problem
	for _, p := range seen.Ports {
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

func checkCPUs(role desired.Role, seen *observed.Host) *problem.Problem {
	if role != desired.ControlPlane {
		return nil
	}
	return checkAmount(problem.CPUsTooFew, seen.CPUs, minControlPlaneCPUs)
}
