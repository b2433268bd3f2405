package probe

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/model/observed"
)

// What a host had before: CNI configuration, active swap, and the operator's own kubelet settings.
func TestScriptSaysWhatWasOnTheHostBefore(t *testing.T) {
	t.Parallel()
	root, text := controlPlaneHost(t)
	for path, content := range map[string]string{
		"/etc/cni/net.d/10-containerd-net.conflist":  "{}",
		"/etc/cni/net.d/87-podman-bridge.conflist":   "{}",
		"/etc/cni/net.d/99-loopback.conf":            "{}",
		"/etc/cni/net.d/notes.txt":                   "",
		"/etc/default/kubelet":                       "KUBELET_EXTRA_ARGS=\"--v=2 --config-dir=/etc/kubelet.conf.d\"\n",
		"/etc/kubelet.conf.d/10-first.conf":          "failSwapOn: true\n# failCgroupV1: true\n",
		"/etc/kubelet.conf.d/20-second.conf":         "kind: KubeletConfiguration\nfailCgroupV1: false\n",
		"/etc/kubelet.conf.d/30-json.conf":           `{"kind": "KubeletConfiguration", "failSwapOn": false}`,
		"/etc/kubelet.conf.d/40-ignored.conf.backup": "failSwapOn: true\n",
		"/proc/swaps": "Filename Type Size Used Priority\n/dev/zram0 partition 1 0 100\n/swap.img file 1 0 -2\n",
	} {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		content = strings.ReplaceAll(content, "=/etc/", "="+root+"/etc/")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text = strings.ReplaceAll(text, "/proc/swaps", root+"/proc/swaps")
	cmd := exec.CommandContext(t.Context(), "sh", "-c", text, "probe", argFacts)
	cmd.Env = append(os.Environ(), "PATH="+root+"/shims:/usr/bin:/bin")
	a, err := Parse(output(t, cmd), sent, received)
	if err != nil {
		t.Fatal(err)
	}
	want := observed.Host{
		CNIFiles: []string{"10-containerd-net.conflist", "87-podman-bridge.conflist", "99-loopback.conf"},
		Swaps:    []string{"/dev/zram0", "/swap.img"}, SwapAllowed: true, CgroupV1Allowed: true,
	}
	got := a.Host
	got = observed.Host{
		CNIFiles: got.CNIFiles, Swaps: got.Swaps, SwapAllowed: got.SwapAllowed, CgroupV1Allowed: got.CgroupV1Allowed,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if a.Host.Cgroups == 0 {
		t.Error("the version of control groups is not known")
	}
}

func TestWhatTheKubeletAllows(t *testing.T) {
	t.Parallel()
	const config = "/var/lib/kubelet/config.yaml:"
	for name, test := range map[string]struct {
		settings       []string
		swap, cgroupV1 bool
	}{
		"nothing":                   {nil, false, false},
		"a flag":                    {[]string{"--fail-swap-on=false", "--fail-cgroupv1 false"}, true, true},
		"a flag against a drop-in":  {[]string{"/d/x.conf:failSwapOn: false", "--fail-swap-on=true"}, false, false},
		"the configuration of swap": {[]string{config + "failSwapOn: false"}, true, false},
		// kubeadm rewrites it in an upgrade
		"the configuration of control groups": {[]string{config + "failCgroupV1: false"}, false, false},
		"another flag":                        {[]string{"--config-dir=/x", "--fail-swap-on=maybe"}, false, false},
	} {
		if swap, cgroupV1 := parseAllowed(test.settings); swap != test.swap || cgroupV1 != test.cgroupV1 {
			t.Errorf("%s: swap %t, control groups v1 %t", name, swap, cgroupV1)
		}
	}
}

func TestOtherKubernetesOnAHost(t *testing.T) {
	t.Parallel()
	of := func(load, active, file string) map[string]string {
		return map[string]string{"LoadState": load, "ActiveState": active, "UnitFileState": file}
	}
	got := otherKubernetes(map[string]map[string]string{
		"kubelet.service": of("loaded", "active", "enabled"), "crio.service": of("loaded", "inactive", "enabled"),
		"k3s.service":        of("loaded", "activating", "disabled"),
		"k0sworker.service":  of("loaded", "inactive", "disabled"),
		"rke2-agent.service": of("not-found", "inactive", ""),
	})
	if diff := cmp.Diff([]string{"crio.service", "k3s.service"}, got); diff != "" {
		t.Error(diff)
	}
}

// Text that is not a name of a file or device is skipped, and every list is bounded.
func TestWhatAHostSaysItHadBeforeIsBounded(t *testing.T) {
	t.Parallel()
	l := lines{"cni": {"../x.conf", "a b.conf", "\x1b.json", "10-x.conflist.txt"}, "swap": {"", "dev", "/dev/\u202ex"}}
	for range 100 {
		l["swap"] = append(l["swap"], "/dev/zram0")
		l["cni"] = append(l["cni"], "x.conf")
	}
	l["cgroups"] = []string{"3"}
	var h observed.Host
	parseBefore(&h, l)
	if diff := cmp.Diff([]string{"x.conf"}, h.CNIFiles); diff != "" || len(h.Swaps) != maxSwaps || h.Cgroups != 0 {
		t.Errorf("%s, %d swaps, control groups %d", diff, len(h.Swaps), h.Cgroups)
	}
}
