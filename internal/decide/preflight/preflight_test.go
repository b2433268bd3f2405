package preflight

import (
	gocmp "cmp"
	"strings"
	"testing"
	"time"

	"kubeone/internal/model/desired"
	"kubeone/internal/model/distro"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"kubeone/internal/testutil/decidetest"

	"github.com/google/go-cmp/cmp"
)

func problemTexts(problems []problem.Problem) []string {
	var out []string
	for _, p := range problems {
		out = append(out, p.String())
	}
	return out
}

func unsupportedOS(id string) string {
	return "OSUnsupported(os=" + id + ", supported=" + strings.Join(distro.IDs(), "+") + ")"
}

func TestCheck(t *testing.T) {
	t.Parallel()
	type host = observed.Host
	tests := []struct {
		name     string
		role     desired.Role
		change   func(*host)
		used     bool   // the host is not empty
		kubelet  string // "": of decidetest
		problems []string
		warnings []string
	}{
		{name: "fit control plane", role: desired.ControlPlane},
		{name: "fit worker", role: desired.Worker, change: func(h *host) { h.MemoryMiB, h.CPUs = 900, 1 }},
		{name: "Flatcar", change: func(h *host) { h.OS.ID, h.Kernel = "flatcar", "6.6.95-flatcar" }},
		{name: "SUSE", change: func(h *host) { h.OS.ID, h.Kernel = "opensuse-leap", "6.4.0-150600.23.53-default" }},
		{name: "unknown OS", change: func(h *host) { h.OS.ID = "alpine" }, problems: []string{unsupportedOS("alpine")}},
		{name: "OS not known", change: func(h *host) { h.OS.ID = "" }, problems: []string{unsupportedOS("")}},
		{name: "commands that come in packages", change: func(h *host) { h.Tools = []string{"iptables", "losetup"} }},
		{name: "commands that no package manager brings", change: func(h *host) {
			h.OS.ID, h.Tools = "flatcar", []string{"iptables"}
		}, problems: []string{"ToolsMissing(os=flatcar, tools=iptables)"}},
		{name: "oldest kernel", change: func(h *host) { h.Kernel = "4.19.0-27-amd64" }},
		{name: "kernel too old", change: func(h *host) { h.Kernel = "4.18.0-553.el8_10.x86_64" },
			problems: []string{"KernelTooOld(kernel=4.18.0-553.el8_10.x86_64, minimum=4.19)"}},
		{name: "kernel not known", change: func(h *host) { h.Kernel = "" },
			problems: []string{"KernelTooOld(kernel=, minimum=4.19)"}},
		{name: "kernel with a plus", change: func(h *host) { h.Kernel = "6.8.0+custom" }},
		{name: "kernel with an underscore", change: func(h *host) { h.Kernel = "6.12.41_1" }},
		{name: "too little memory", change: func(h *host) { h.MemoryMiB = 1699 },
			problems: []string{"MemoryTooSmall(have=1699, need=1700)"}},
		{name: "just enough memory", change: func(h *host) { h.MemoryMiB = 1700 }},
		{name: "too little memory for a worker", role: desired.Worker, change: func(h *host) { h.MemoryMiB = 899 },
			problems: []string{"MemoryTooSmall(have=899, need=900)"}},
		{name: "disk full", change: func(h *host) { h.DiskMiB = 0 },
			problems: []string{"DiskTooSmall(have=0, need=5120)"}},
		{name: "just enough disk", change: func(h *host) { h.DiskMiB = 5120 }},
		{name: "clock ahead", change: func(h *host) { h.ClockSkew = 31 * time.Second },
			problems: []string{"ClockAhead(limit=30s, skew=31s)"}},
		{name: "clock behind", change: func(h *host) { h.ClockSkew = -2 * time.Minute },
			problems: []string{"ClockBehind(limit=30s, skew=2m0s)"}},
		{name: "clock just good enough", change: func(h *host) { h.ClockSkew = -30 * time.Second }},
		{name: "one CPU", change: func(h *host) { h.CPUs = 1 }, warnings: []string{"CPUsTooFew(have=1, need=2)"}},
		{
			name: "ports taken", change: func(h *host) {
				h.Ports = []observed.Port{
					{Number: 6443, Process: "haproxy"},
					{Number: 10250},
					{Number: 22, Process: "sshd"},
				}
			},
			problems: []string{"PortTaken(port=6443, process=haproxy)",
				"PortTaken(port=10250, process=an unknown process)"},
		},
		{name: "port of no concern to a worker", role: desired.Worker,
			change: func(h *host) { h.Ports = []observed.Port{{Number: 6443, Process: "haproxy"}} }},
		{name: "our own port and images on an unfinished host", used: true, change: func(h *host) {
			h.Ports, h.DiskMiB = []observed.Port{{Number: 2379, Process: "etcd"}}, 100
		}},
		{name: "control groups v1", change: func(h *host) { h.Cgroups = 1 },
			problems: []string{"CgroupV1Refused(kubelet=1.36.3)"}},
		{name: "control groups v1 on an unfinished host", used: true, kubelet: "1.35.0",
			change: func(h *host) { h.Cgroups = 1 }, problems: []string{"CgroupV1Refused(kubelet=1.35.0)"}},
		{name: "control groups v1 and a kubelet that takes them", kubelet: "1.34.9",
			change: func(h *host) { h.Cgroups = 1 }},
		{name: "control groups v1 that are allowed", change: func(h *host) { h.Cgroups, h.CgroupV1Allowed = 1, true }},
		{name: "control groups v2", change: func(h *host) { h.Cgroups = 2 }},
		{name: "another Kubernetes", used: true, change: func(h *host) { h.OtherKubernetes = []string{"k3s.service"} },
			problems: []string{"OtherKubernetes(units=k3s.service)"}},
		{
			name: "everything at once", change: func(h *host) { h.OS.ID, h.DiskMiB, h.CPUs = "", 1, 0 },
			problems: []string{unsupportedOS(""), "DiskTooSmall(have=1, need=5120)"},
			warnings: []string{"CPUsTooFew(have=0, need=2)"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			role := tt.role
			if role == "" {
				role = desired.ControlPlane
			}
			w := decidetest.Host(role, "h", 1)
			is := decidetest.Bare(w)
			if tt.change != nil {
				tt.change(&is)
			}
			problems, warnings := Check(&w, &is, gocmp.Or(tt.kubelet, decidetest.Version), !tt.used)
			if diff := cmp.Diff(tt.problems, problemTexts(problems)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.warnings, problemTexts(warnings)); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			for _, p := range append(problems, warnings...) {
				if p.Host != w.ID || problem.Check(p.Code, p.Parameters) != nil {
					t.Errorf("%+v lacks its host or a parameter", p)
				}
			}
		})
	}
}

// A system that kubeone does not support has its own problem.
func TestUpgrader(t *testing.T) {
	t.Parallel()
	for system, want := range map[string]string{
		"debian": "", "rocky": "", "alpine": "", "flatcar": "UpgraderUnknown(os=flatcar)",
	} {
		h := observed.Host{}
		h.OS.ID = system
		got := ""
		if p := Upgrader(&h); p != nil {
			got = p.String()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", system, got, want)
		}
	}
}

func TestNamesOfNodes(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 60) + ".org"
	for name, good := range map[string]bool{
		"cp-1": true, "cp-1.example.org": true, "1": true, "CP-1": true, long[:63]: true,
		"": false, "cp_1": false, "-cp": false, "cp-": false, "cp..org": false, "cp.": false, "höst": false,
		long: false,
	} {
		w := desired.Host{Role: desired.Worker}
		is := decidetest.Bare(w)
		is.Hostname = name
		if got := checkName(&w, &is) == nil; got != good {
			t.Errorf("%q: %t, want %t", name, got, good)
		}
	}
}
