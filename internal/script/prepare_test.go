package script

import (
	"crypto/sha256"
	"encoding/hex"
	"kubeone/internal/testutil/configtest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/plan/step"
)

// uploaded puts content where uploads are and returns its sha256.
func (b *box) uploaded(content string) string {
	b.t.Helper()
	sum := sha256.Sum256([]byte(content))
	name := hex.EncodeToString(sum[:])
	b.write("var/lib/kubeone/artifacts/sha256/"+name, content)
	return name
}

// archived uploads a gzip-compressed tar with one program.
func (b *box) archived(program, content string) string {
	b.t.Helper()
	b.write("pack/"+program, content)
	if err := os.Chmod(b.path("pack/"+program), 0o700); err != nil {
		b.t.Fatal(err)
	}
	out, err := exec.CommandContext(b.t.Context(), "tar", "-czf", "-", "-C", b.path("pack"), ".").Output()
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.RemoveAll(b.path("pack")); err != nil {
		b.t.Fatal(err)
	}
	return b.uploaded(string(out))
}

func TestUploadsAreVerified(t *testing.T) {
	t.Parallel()
	b := newBox(t, variants()["follower-pushed"])
	sum := b.uploaded("good")
	if got := b.must("verified " + sum + " https://example.com/x"); got != "/var/lib/kubeone/artifacts/sha256/"+sum {
		t.Errorf("printed %q", got)
	}
	b.write("var/lib/kubeone/artifacts/sha256/"+sum, "evil")
	b.fails("verified "+sum+" https://example.com/x", "https://example.com/x is not what the plan says")
	if left := b.read("var/lib/kubeone/artifacts/sha256/" + sum); left != "" {
		t.Errorf("the wrong content is still there: %q", left)
	}
	b.fails("verified "+sum+" https://example.com/x", "was not uploaded")
}

func TestDownloadsAreVerified(t *testing.T) {
	t.Parallel()
	b := newBox(t, input("w-1"))
	sum := b.uploaded("good")
	_ = os.Remove(b.path("var/lib/kubeone/artifacts/sha256/" + sum))
	b.fails("verified "+sum+" https://example.com/x", "neither curl nor wget")
	b.command("curl", `while [ "$1" != -o ]; do shift; done; printf good >"$2"`)
	b.must("verified " + sum + " https://example.com/x")
	_ = os.Remove(b.path("var/lib/kubeone/artifacts/sha256/" + sum))
	b.command("curl", `while [ "$1" != -o ]; do shift; done; printf evil >"$2"`)
	b.fails("verified "+sum+" https://example.com/x", "is not what the plan says")
	b.command("curl", "exit 22")
	b.fails("verified "+sum+" https://example.com/x", "cannot download https://example.com/x")
	if len(b.tree("var/lib/kubeone/artifacts")) > 0 {
		t.Errorf("left behind: %v", b.tree("var/lib/kubeone/artifacts"))
	}
}

func TestBinariesSwitchVersionsAtOnce(t *testing.T) {
	t.Parallel()
	b := newBox(t, variants()["follower-pushed"])
	b.mkdir("opt/kubeone/bin")
	first, second := b.uploaded("kubelet one"), b.uploaded("kubelet two")
	if got := b.must("install_binary kubelet 1.0.0 " + first + " no url"); got != "installing kubelet 1.0.0" {
		t.Errorf("printed %q", got)
	}
	if got := b.must("install_binary kubelet 1.0.0 " + first + ` no url; printf %s "$CHANGED"`); got != "no" {
		t.Errorf("the same again printed %q", got)
	}
	b.fails("install_binary kubelet 3.0.0 "+strings.Repeat("0", 64)+" no url", "was not uploaded")
	if got := b.read("opt/kubeone/bin/kubelet"); got != "kubelet one" {
		t.Errorf("after a failure the link leads to %q", got)
	}
	b.must("install_binary kubelet 2.0.0 " + second + " no url")
	if got := b.read("opt/kubeone/bin/kubelet"); got != "kubelet two" {
		t.Errorf("the link leads to %q", got)
	}
	if left := b.tree("var/lib/kubeone/artifacts"); len(left) > 0 {
		t.Errorf("what was installed was not removed: %v", left)
	}
}

// What a full disk has cut short never counts as that version.
func TestABinaryThatDidNotComeWholeIsNotThere(t *testing.T) {
	t.Parallel()
	for _, broken := range []string{
		`mv() { case "$*" in *.part/kubelet) printf cut >"$2"; return 1 ;; esac; command mv "$@"; }`,
		`chmod() { return 1; }`,
	} {
		b := newBox(t, variants()["follower-pushed"])
		b.mkdir("opt/kubeone/bin")
		sum := b.uploaded("kubelet")
		if r := b.run(broken + "\n(install_binary kubelet 1.0.0 " + sum + " no url) || exit 9"); r.code != 9 {
			t.Errorf("%s: exit status %d: %s", broken, r.code, r.err)
		}
		if got := b.read("opt/kubeone/kubelet/1.0.0/.sha256"); got != "" {
			t.Errorf("%s: it counts as whole", broken)
		}
	}
}

func TestArchivesAreUnpackedAndLinked(t *testing.T) {
	t.Parallel()
	b := newBox(t, variants()["follower-pushed"])
	b.mkdir("opt/kubeone/bin")
	b.mkdir("opt/cni/bin")
	b.must("install_binary containerd 2.0.0 " + b.archived("bin/containerd", "runtime") + " yes url")
	b.must("install_binary cni-plugins 1.0.0 " + b.archived("bridge", "plugin") + " yes url")
	b.must("install_binary cni-plugin-flannel 1.0.0 " + b.archived("flannel-amd64", "flannel") + " yes url")
	b.must("install_binary crictl 1.0.0 " + b.archived("crictl", "tool") + " yes url")
	for path, want := range map[string]string{
		"opt/kubeone/bin/containerd": "runtime", "opt/cni/bin/bridge": "plugin", "opt/cni/bin/flannel": "flannel",
		"opt/kubeone/bin/crictl": "tool",
	} {
		if got := b.read(path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
}

func TestSwapIsSwitchedOffForGood(t *testing.T) {
	t.Parallel()
	b := newBox(t, input("w-1"))
	b.command("swapoff", "")
	b.command("systemctl", "")
	b.write("proc/swaps", "Filename Type\n")
	b.write("etc/fstab", "/dev/sda1 / ext4 defaults 0 1\n/dev/sda2 none swap sw 0 0\n# /dev/sda3 none swap sw 0 0\n")
	whole := b.read("etc/fstab")
	b.must("swap_off")
	if calls := b.calls(); calls[0] != "systemctl daemon-reload" || slices.Contains(calls, "swapoff -a") {
		t.Errorf("without swap: %q", calls)
	}
	b.write("proc/swaps", "Filename Type\n/dev/sda2 partition\n")
	b.must("swap_off")
	if calls := b.calls(); calls[len(calls)-1] != "swapoff -a" || slices.Contains(calls, "systemctl daemon-reload") {
		t.Errorf("with swap: %q", calls)
	}
	want := "/dev/sda1 / ext4 defaults 0 1\n# kubeone: /dev/sda2 none swap sw 0 0\n# /dev/sda3 none swap sw 0 0\n"
	if diff := cmp.Diff(want, b.read("etc/fstab")); diff != "" {
		t.Error(diff)
	}
	const later = "/dev/sdb1 /data xfs defaults 0 2\n"
	b.write("etc/fstab", want+later)
	b.must("put @ROOT@/etc/fstab 0644 fstab_with_swap")
	if diff := cmp.Diff(whole+later, b.read("etc/fstab")); diff != "" {
		t.Errorf("what a reset puts back:\n%s", diff)
	}
}

func TestPackagesOfEachSystem(t *testing.T) {
	t.Parallel()
	apt := []string{
		"apt-get -o DPkg::Lock::Timeout=120 update -q",
		"apt-get -o DPkg::Lock::Timeout=120 install -y -q --no-install-recommends mount mount iptables",
	}
	for _, tt := range []struct {
		os, command, missing string
		want                 []string
	}{
		{"debian", "apt-get", "mount mount iptables", apt},
		{"ubuntu", "apt-get", "mount mount iptables", apt},
		{"fedora", "dnf", "util-linux util-linux iptables", []string{"dnf install -y util-linux util-linux iptables"}},
		{"amzn", "yum", "util-linux util-linux iptables", []string{"yum install -y util-linux util-linux iptables"}},
		{
			"sles", "zypper", "util-linux util-linux iptables",
			[]string{"zypper --non-interactive install --no-recommends util-linux util-linux iptables"},
		},
	} {
		t.Run(tt.os, func(t *testing.T) {
			t.Parallel()
			in := input("w-1")
			in.OS = tt.os
			b := newBox(t, in)
			b.fails("install_packages", "no package manager that is known, and missing: "+tt.missing)
			b.command(tt.command, "exit 100")
			b.fails("install_packages", "cannot install "+tt.missing+": give this host a package source that has them")
			b.calls()
			b.command(tt.command, "")
			b.must("install_packages")
			if diff := cmp.Diff(tt.want, b.calls()); diff != "" {
				t.Error(diff)
			}
			for _, have := range []string{"losetup", "mount", "iptables"} {
				b.command(have, "")
			}
			b.must("install_packages")
			if calls := b.calls(); calls[0] != "" {
				t.Errorf("with nothing missing: %q", calls)
			}
		})
	}
}

// A system with no package manager, or with an unknown one, must have the tools.
func TestSystemsWithoutPackages(t *testing.T) {
	t.Parallel()
	for _, os := range []string{"flatcar", "plan9", ""} {
		in := input("w-1")
		in.OS = os
		b := newBox(t, in)
		for _, manager := range []string{"apt-get", "dnf", "yum", "zypper"} {
			b.command(manager, "")
		}
		b.fails("install_packages", "no package manager that is known, and missing: losetup mount iptables")
		if calls := b.calls(); calls[0] != "" {
			t.Errorf("%q: %q", os, calls)
		}
	}
}

// bareHost is a box in which all of prepare can run.
func bareHost(t *testing.T, in Input) *box {
	t.Helper()
	b := newBox(t, in)
	for _, name := range []string{"losetup", "mount", "iptables", "modprobe", "sysctl", "unattended-upgrade"} {
		b.command(name, "")
	}
	b.command("systemctl", `case "$1" in is-active) exit 3 ;; show) echo 42 ;; esac`)
	b.write("proc/swaps", "Filename\n")
	b.write("proc/sys/net/ipv4/ip_forward", "1\n")
	b.write("proc/sys/net/ipv6/conf/all/forwarding", "1\n")
	b.write("proc/net/ipv6_route", staticRoute)
	b.mkdir("proc/42")
	b.mkdir("usr/local/bin")
	return b
}

func TestPreparingTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	in := everything()
	a := configtest.Artifacts("mirror.example.com:5000/k8s")
	a.Pushed = true
	b := bareHost(t, in)
	a.Binaries[0].SHA256, a.Binaries[1].SHA256 = b.uploaded("the kubelet"), b.archived("bin/containerd", "the runtime")
	b.script += "\nBINARIES=" + Quote(value(t, step.Lines("BINARIES", binaryLines(a, in.Host.Role)))) + "\nPUSHED=yes\n"
	if err := os.Symlink(b.path("opt/kubeone/containerd/2.2.1/bin/containerd"), b.path("proc/42/exe")); err != nil {
		t.Fatal(err)
	}
	b.must("stage_prepare")
	first := strings.Join(b.calls(), "\n")
	for _, want := range []string{"systemctl daemon-reload", "systemctl restart containerd.service", "systemctl -q " +
		"enable kubelet.service", "modprobe overlay"} {
		if !strings.Contains(first, want) {
			t.Errorf("the first time does not call %q:\n%s", want, first)
		}
	}
	before := b.tree("etc", "opt", "usr", "var")
	b.must("stage_prepare")
	if diff := cmp.Diff(before, b.tree("etc", "opt", "usr", "var")); diff != "" {
		t.Errorf("the second time wrote something:\n%s", diff)
	}
	second := strings.Join(b.calls(), "\n")
	for _, no := range []string{"daemon-reload", "restart"} {
		if strings.Contains(second, no) {
			t.Errorf("the second time calls %s:\n%s", no, second)
		}
	}
	if diff := cmp.Diff("containerd etcd-defrag firewall kernel unattended-upgrades", recordedNames(b)); diff != "" {
		t.Error(diff)
	}
}

// recordedNames are the names of the digests that the host has noted.
func recordedNames(b *box) string {
	var names []string
	for _, line := range strings.Split(strings.TrimSpace(b.read("etc/kubeone/digests")), "\n") {
		name, _, _ := strings.Cut(line, " ")
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

func TestARuntimeOfAnotherVersionIsRestarted(t *testing.T) {
	t.Parallel()
	b := bareHost(t, input("w-1"))
	b.script += "\nBINARIES=\n"
	b.must("stage_prepare")
	b.calls()
	b.write("old/containerd", "")
	if err := os.Symlink(b.path("old/containerd"), b.path("proc/42/exe")); err != nil {
		t.Fatal(err)
	}
	b.must("stage_prepare")
	if calls := strings.Join(b.calls(), "\n"); !strings.Contains(calls, "systemctl restart containerd.service") {
		t.Errorf("it goes on running:\n%s", calls)
	}
}

func TestARegistryThatNobodyWantsAnyMoreIsRemoved(t *testing.T) {
	t.Parallel()
	b := bareHost(t, everything())
	b.write("etc/containerd/certs.d/old.example.com/hosts.toml", "old")
	b.must("registry_files")
	if b.read("etc/containerd/certs.d/old.example.com/hosts.toml") != "" {
		t.Error("it is still there")
	}
	if got := b.read("etc/containerd/certs.d/docker.io/hosts.toml"); !strings.Contains(got,
		`[host."https://docker.example.com"]`) {
		t.Errorf("docker.io is %q", got)
	}
}

func TestAHostThatDoesNotForwardIsNotPrepared(t *testing.T) {
	t.Parallel()
	b := bareHost(t, input("w-1"))
	b.write("proc/sys/net/ipv4/ip_forward", "0\n")
	b.command("sysctl", "exit 1")
	b.command("modprobe", "exit 1")
	b.fails("kernel_settings", "net.ipv4.ip_forward cannot be set to 1")
}

// Default routes for IPv6 as /proc/net/ipv6_route shows them. Every host has the first one.
const (
	noRoute = "00000000000000000000000000000000 00 00000000000000000000000000000000 00 " +
		"00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo\n"
	staticRoute = "00000000000000000000000000000000 00 00000000000000000000000000000000 00 " +
		"fd000172003100020000000000000001 00000400 00000003 00000000 00000003     eth0\n" + noRoute
	learnedRoute = "00000000000000000000000000000000 00 00000000000000000000000000000000 00 " +
		"fe800000000000000000000000000001 00000400 00000003 00000000 00450003     eth0\n" + noRoute
)

func TestDualStackNeedsALastingRoute(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ routes, accepts, fails string }{
		"a static route":              {staticRoute, "1", ""},
		"of router advertisements":    {learnedRoute, "1", "set net.ipv6.conf.eth0.accept_ra to 2"},
		"that forwarding leaves":      {learnedRoute, "2", ""},
		"of a program":                {learnedRoute, "0", ""},
		"none, with a network plugin": {noRoute, "1", "no default route for IPv6"},
	} {
		b := bareHost(t, everything())
		b.write("proc/net/ipv6_route", c.routes)
		b.write("proc/sys/net/ipv6/conf/eth0/accept_ra", c.accepts+"\n")
		if c.fails != "" {
			b.fails("kernel_settings", c.fails)
		} else if r := b.run("kernel_settings"); r.code != 0 {
			t.Errorf("%s: %s", name, r.err)
		}
	}
}

func TestOnlyDualStackNeedsIPv6Forwarding(t *testing.T) {
	t.Parallel()
	const off = "proc/sys/net/ipv6/conf/all/forwarding"
	b := bareHost(t, input("w-1"))
	b.write(off, "0\n")
	b.must("kernel_settings")
	b = bareHost(t, everything())
	b.write(off, "0\n")
	b.fails("kernel_settings", "net.ipv6.conf.all.forwarding cannot be set to 1")
}

func TestADropInOfAPackageIsRefused(t *testing.T) {
	t.Parallel()
	const dropIn = "/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf"
	for program, refused := range map[string]bool{"/usr/bin/kubelet": true, "/opt/kubeone/bin/kubelet": false} {
		b := bareHost(t, input("w-1"))
		b.script += "\nBINARIES=\n"
		if !refused {
			program = b.path(program)
		}
		b.command("systemctl", `case "$*" in
			*ExecStart*kubelet*) echo '{ path=`+program+` ; argv[]=`+program+` $KUBELET_KUBECONFIG_ARGS ; }' ;;
			*DropInPaths*) echo `+dropIn+` ;; *MainPID*) echo 42 ;; esac`)
		if !refused {
			b.must("stage_prepare")
			continue
		}
		b.fails("stage_prepare", "because of a drop-in among "+dropIn+": remove")
	}
}

func TestARestartThatWasDueIsMadeUpFor(t *testing.T) {
	t.Parallel()
	b := newBox(t, input("w-1"))
	b.command("systemctl",
		`case "$*" in *MainPID*) printf '0\n' ;; *) printf 'systemctl %s\n' "$*" >>'`+b.path("calls")+`' ;; esac`)
	b.command("journalctl", ":")
	b.mkdir("var/lib/kubeone")
	b.fails("put() { changed; die 'killed'; }; configure_runtime", "killed")
	b.must("put() { :; }; registry_files() { :; }; readlink() { printf 'same\\n'; }; configure_runtime; [ ! -e '" +
		b.path("var/lib/kubeone/containerd.changed") + "' ]")
	if calls := strings.Join(b.calls(), "\n"); !strings.Contains(calls, "restart containerd.service") {
		t.Errorf("containerd was not restarted: %s", calls)
	}
	before := len(b.calls())
	b.must("put() { :; }; registry_files() { :; }; readlink() { printf 'same\\n'; }; configure_runtime")
	if after := b.calls(); len(after) != before {
		t.Errorf("and again: %q", after[before:])
	}
}
