package script

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// configured is a worker whose kubelet and container runtime run, and whose files a stage has written.
func configured(t *testing.T, differs string) *box {
	t.Helper()
	in := input("w-1")
	b := newBox(t, in)
	b.write("proc/sys/net/ipv4/ip_forward", "1\n")
	b.script += `
CONFIGURATIONS='` + differs + `'
kubelet_healthy() { [ ! -e "@ROOT@/refuses" ] || ! grep -q new "@ROOT@/var/lib/kubelet/config.yaml"; }
ready_beat() { [ -e "@ROOT@/notready" ] || date +%s%N; }
kubeadm() { printf 'kubeadm %s\n' "$*" >>"@ROOT@/calls"; echo new >"@ROOT@/var/lib/kubelet/config.yaml"; }
`
	b.script = strings.ReplaceAll(b.script, "@ROOT@", b.root)
	b.command("df", `printf 'head\nx 1 1 99999999 1 /\n'`)
	b.command("awk", `while read -r a b c d e; do last=$d; done; printf '%s\n' "$last"`)
	b.command("systemctl", `case "$*" in *NRestarts*) echo 3 ;; *MainPID*) echo 7 ;; esac`)
	b.command("journalctl", `echo 'E1125 run.go:72] "command failed" err="failed to validate: maxPods is wrong"'`)
	b.mkdir("opt/kubeone")
	if err := os.Symlink(b.path("bin"), b.path("opt/kubeone/bin")); err != nil {
		t.Fatal(err)
	}
	b.mkdir("proc/7")
	b.write("bin/containerd", "")
	if err := os.Symlink(b.path("bin/containerd"), b.path("proc/7/exe")); err != nil {
		t.Fatal(err)
	}
	b.command("ctr", ":")
	b.command("sysctl", ":")
	b.command("modprobe", ":")
	b.write("etc/kubernetes/kubelet.conf", "    server: https://lb.example.com:6443\n")
	b.write("var/lib/kubelet/config.yaml", "old\n")
	b.must("mark yes; record containerd=c0 kubelet=k0 kernel=n0; configure_runtime; configure_kubelet; rm -f '" +
		b.path("calls") + "'")
	return b
}

func TestAWorkerGetsOtherSettingsOfItsKubelet(t *testing.T) {
	t.Parallel()
	b := configured(t, "kubelet")
	b.must("NODE_DIGESTS='kubelet=k1'; stage_reconfigure")
	calls := b.calls()
	if !slices.Contains(calls, "systemctl restart kubelet.service") ||
		slices.Contains(calls, "systemctl restart containerd.service") {
		t.Errorf("the kubelet alone starts anew:\n%s", strings.Join(calls, "\n"))
	}
	if got := b.read("etc/kubeone/digests"); !strings.Contains(got, "kubelet k1\n") {
		t.Errorf("digests\n%s", got)
	}
	if got := b.read("etc/kubeone/files"); !strings.Contains(got, "/var/lib/kubelet/config.yaml") {
		t.Errorf("nobody would notice an edit:\n%s", got)
	}
	for _, gone := range []string{"var/lib/kubeone/upgrading", "var/lib/kubeone/before"} {
		if b.must("[ ! -e '"+b.path(gone)+"' ] || echo there") != "" {
			t.Errorf("%s is still there", gone)
		}
	}
}

// A mirror is read at each pull, so nothing restarts.
func TestNothingStartsAnewForAMirror(t *testing.T) {
	t.Parallel()
	b := configured(t, "containerd")
	b.must(`registry_files() { put "@ROOT@/etc/containerd/certs.d/r/hosts.toml" 0600 mirror; }
		mirror() { echo x; }
		stage_reconfigure`)
	if got := b.read("etc/containerd/certs.d/r/hosts.toml"); got != "x\n" {
		t.Errorf("the mirror's file is %q", got)
	}
	for _, call := range b.calls() {
		if strings.HasPrefix(call, "systemctl restart") {
			t.Error(call)
		}
	}
}

// What is refused is taken back, to the byte, and named.
func TestSettingsThatAreRefusedAreTakenBack(t *testing.T) {
	t.Parallel()
	b := configured(t, "kubelet containerd")
	b.write("refuses", "")
	const all = "; cat etc/kubeone/digests etc/kubeone/patches/* etc/containerd/config.toml var/lib/kubelet/config.yaml"
	before := b.must("cd '" + b.root + "'" + all)
	const says = `the kubelet does not start: E1125 run.go:72] "command failed" ` +
		`err="failed to validate: maxPods is wrong"` +
		"; this host has again what it had before"
	r := b.run("file_kubelet_patch() { echo other; }; file_containerd_config() { echo other; }; stage_reconfigure")
	if r.code != 65 || !strings.Contains(r.err, says) { // by that status controllers know it
		t.Errorf("exit status %d, printed %q, want 65 and %q", r.code, r.err, says)
	}
	if after := b.must("cd '" + b.root + "'" + all); before != after {
		t.Errorf("not as it was:\n%s", after)
	}
	if b.read("var/lib/kubeone/upgrading") != "" {
		t.Error("the change counts as begun")
	}
	calls := b.calls()
	for _, unit := range []string{"containerd", "kubelet"} {
		if n := count(calls, "systemctl restart "+unit+".service"); n != 2 {
			t.Errorf("%s was started %d times:\n%s", unit, n, strings.Join(calls, "\n"))
		}
	}
}

// A Node that does not become Ready refuses too.
func TestSettingsWithWhichTheNodeIsNotReadyAreTakenBack(t *testing.T) {
	t.Parallel()
	b := configured(t, "kubelet")
	b.write("notready", "")
	// A kubelet can be healthy for a moment before it ends.
	b.fails("stage_reconfigure", "the kubelet does not start: ")
	b.command("systemctl", `case "$*" in *NRestarts*) echo 0 ;; *MainPID*) echo 7 ;; esac`)
	b.fails("date() { echo \"$(($(wc -c <@ROOT@/clock) * 100))\"; echo . >>@ROOT@/clock; }; : >@ROOT@/clock; "+
		"stage_reconfigure", "gave up after 120 s waiting for Node")
	if got := b.read("var/lib/kubelet/config.yaml"); got != "old\n" {
		t.Errorf("the kubelet has %q", got)
	}
}

// Half a file never takes the place of a whole one, and what is lost is said; the next apply goes on there.
func TestWhatCannotBeTakenBackIsNamed(t *testing.T) {
	t.Parallel()
	b := configured(t, "kubelet")
	b.write("refuses", "")
	b.fails(`cp() { case $3 in *config.yaml.kubeone) printf half >"$3"; return 1 ;; esac; command cp "$@"; }
		stage_reconfigure`, "cannot write again: ")
	if got := b.read("var/lib/kubelet/config.yaml"); got != "new\n" {
		t.Errorf("the kubelet has %q", got)
	}
	if b.read("var/lib/kubeone/upgrading") == "" {
		t.Error("nobody would go on here")
	}
}

func count(list []string, of string) int {
	n := 0
	for _, s := range list {
		if s == of {
			n++
		}
	}
	return n
}

// A member knows its cluster from its data: that it was told another list when it joined starts nothing anew.
func TestAMemberIsNotStartedAnewForHowItJoined(t *testing.T) {
	t.Parallel()
	b := controlPlane(t, "cp-1")
	joined := "    - --data-dir=/var/lib/etcd\n    - --initial-cluster=a=https://1,b=https://2\n" +
		"    - --initial-cluster-state=existing\n"
	founded := "    - --data-dir=/var/lib/etcd\n    - --initial-cluster=a=https://1\n"
	b.write("old", joined)
	b.write("new", founded)
	b.write("other", founded+"    - --quota-backend-bytes=1\n")
	b.must("same_but_founding '" + b.path("old") + "' '" + b.path("new") + "'")
	if r := b.run("same_but_founding '" + b.path("old") + "' '" + b.path("other") + "'"); r.code == 0 {
		t.Error("another quota is no difference")
	}
}
