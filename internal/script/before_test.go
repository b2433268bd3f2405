package script

import (
	"bytes"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"kubeone/internal/model/desired"
)

// unitFiles is a systemctl that lists these units, and no others.
const unitFiles = `case "$*" in
*--type=swap*) printf '%s\n' 'dev-zram0.swap generated -' 'swapfile.swap enabled enabled' 'old.swap disabled enabled' \
	'gone.swap masked enabled' ;;
*dphys-swapfile.service*) echo 'dphys-swapfile.service enabled enabled' ;;
esac`

func TestSwapOfUnitsIsMaskedAndGivenBack(t *testing.T) {
	t.Parallel()
	b := newBox(t, input("w-1"))
	b.command("systemctl", unitFiles)
	b.write("proc/swaps", "Filename Type\n")
	b.write("etc/kubeone/marker", "")
	b.write("etc/systemd/system/swapfile.swap", "[Swap]\nWhat=/swapfile\n")
	for range 2 { // also when it was killed
		b.must("swap_off")
	}
	calls := b.calls()
	masked := []string{"dev-zram0.swap", "swapfile.swap", "dphys-swapfile.service"}
	for _, unit := range masked {
		if to, err := os.Readlink(b.path("etc/systemd/system/" + unit)); err != nil || to != "/dev/null" {
			t.Errorf("%s is %q, %v", unit, to, err)
		}
		if !slices.Contains(calls, "systemctl stop "+unit) {
			t.Errorf("%s was not stopped: %q", unit, calls)
		}
	}
	if _, err := os.Lstat(b.path("etc/systemd/system/old.swap")); err == nil {
		t.Error("a unit that is not started at boot is masked")
	}
	b.must("remove_files")
	if got := b.read("etc/systemd/system/swapfile.swap"); got != "[Swap]\nWhat=/swapfile\n" {
		t.Errorf("after a reset the unit is %q", got)
	}
	for _, unit := range []string{"dev-zram0.swap", "dphys-swapfile.service"} {
		if _, err := os.Lstat(b.path("etc/systemd/system/" + unit)); err == nil {
			t.Errorf("%s is masked after a reset", unit)
		}
	}
}

func TestOtherCNIConfigurationIsKeptUntilAReset(t *testing.T) {
	t.Parallel()
	const dir = "etc/cni/net.d/"
	in := input("w-1")
	b := newBox(t, in)
	own := in.Network.Config.File
	for _, name := range []string{"10-containerd-net.conflist", "99-x.conf", "y.json", own, "notes"} {
		b.write(dir+name, name)
	}
	for range 2 {
		b.must("other_cni_aside")
	}
	left := b.tree("etc/cni")
	if len(left) != 2 || left["/"+dir+in.Network.Config.File] == "" || left["/"+dir+"notes"] == "" {
		t.Errorf("left in /etc/cni: %v", left)
	}
	b.must("remove_files")
	left = b.tree("etc/cni")
	for _, name := range []string{"10-containerd-net.conflist", "99-x.conf", "y.json"} {
		if b.read(dir+name) != name {
			t.Errorf("after a reset %s is not what it was", name)
		}
	}
	if len(left) != 3 {
		t.Errorf("after a reset: %v", left)
	}
}

// A network plugin that the operator installs may need what is there.
func TestWithAnExternalPluginCNIConfigurationStays(t *testing.T) {
	t.Parallel()
	const file = "etc/cni/net.d/10-containerd-net.conflist"
	in := input("w-1")
	in.Want.Network.CNI.Name, in.Network.Config.File = desired.ExternalCNI, ""
	b := newBox(t, in)
	b.write(file, "theirs")
	b.must("other_cni_aside")
	if got := b.read(file); got != "theirs" {
		t.Errorf("it is %q", got)
	}
	b.write("etc/cni/net.d/05-plugin.conflist", "the plugin's")
	b.must("remove_files")
	if left := b.tree("etc/cni"); len(left) != 1 || b.read(file) != "theirs" {
		t.Errorf("after a reset: %v", left)
	}
}

// kubeadm copies into static pods all variables whose names end as those of proxies do.
func TestTheCallersEnvironmentReachesNoStage(t *testing.T) {
	t.Parallel()
	b := newBox(t, input("cp-1"))
	cmd := exec.CommandContext(t.Context(), "sh", "-s")
	cmd.Stdin = strings.NewReader(b.script + "\nenv\n")
	cmd.Env = []string{
		"HOME=/root", "KUBEONE_RUN=r1", "HTTP_PROXY=http://evil:3128", "https_proxy=http://evil:3128",
		"My_Own_Proxy=http://evil:3128", "CLUSTER=evil", "SSL_CERT_FILE=/evil",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if bytes.Contains(out, []byte("evil")) || !bytes.Contains(out, []byte("KUBEONE_RUN=r1\n")) {
		t.Errorf("the environment of a stage:\n%s", out)
	}
}

// The drop-in of kubeadm's package has our unit start that package's kubelet.
func TestDropInsStartNoOtherKubelet(t *testing.T) {
	t.Parallel()
	const dir = "etc/systemd/system/kubelet.service.d/"
	b := newBox(t, input("w-1"))
	b.write(dir+"10-kubeadm.conf", "[Service]\nExecStart=\nExecStart=/usr/bin/kubelet\n")
	b.write(dir+"20-own.conf", "[Service]\nEnvironment=A=b\n")
	b.must("other_programs_aside")
	if b.read(dir+"10-kubeadm.conf") != "" || b.read(dir+"20-own.conf") == "" {
		t.Error("the drop-in of another kubelet is there, or another one is not")
	}
	b.must("remove_files")
	if got := b.read(dir + "10-kubeadm.conf"); !strings.Contains(got, "ExecStart=/usr/bin/kubelet") {
		t.Errorf("after a reset it is %q", got)
	}
}

func TestTheFormerRuntimeIsKeptUntilAReset(t *testing.T) {
	t.Parallel()
	const config, unit = "etc/containerd/config.toml", "etc/systemd/system/containerd.service"
	b := newBox(t, input("w-1"))
	b.write(config, "disabled_plugins = [\"cri\"]\n")
	b.write(unit, "theirs")
	b.must("other_runtime_aside")
	b.write(config, "ours")
	b.write(unit, "ours")
	b.must("other_runtime_aside") // resumes an interrupted preparation
	if got := b.read(config); got != "ours" {
		t.Errorf("our configuration is %q", got)
	}
	b.must("remove_files")
	if got := b.read(config) + b.read(unit); got != "disabled_plugins = [\"cri\"]\ntheirs" {
		t.Errorf("after a reset: %q", got)
	}
}
