package script

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// editedHost is a complete worker with some edited files; restored is their list for the stage.
func editedHost(t *testing.T) (b *box, restored string) {
	t.Helper()
	b = joined(t, "w-1")
	b.command("sysctl", "")
	b.write("etc/containerd/config.toml", "of containerd\n")
	b.write("etc/containerd/certs.d/docker.io/hosts.toml", "of a registry\n")
	b.write("etc/systemd/system/kubelet.service", "of the kubelet\n")
	b.must("chmod 0644 @ROOT@/etc/containerd/config.toml; record containerd=1 kernel=2 kubelet=3 components=4")
	_ = b.calls()
	b.write("etc/containerd/config.toml", "somebody's\n")
	if err := os.Remove(b.path("etc/systemd/system/kubelet.service")); err != nil {
		t.Fatal(err)
	}
	return b, b.path("etc/containerd/config.toml") + " " + b.path("etc/systemd/system/kubelet.service")
}

// left are the files that are others than those that were noted.
func (b *box) left() string {
	b.t.Helper()
	return b.must("sha256sum -c \"$FILES\" 2>/dev/null | grep -v ': OK$' || :")
}

func TestFilesAreRestoredAsTheyWereNoted(t *testing.T) {
	t.Parallel()
	b, files := editedHost(t)
	for range 2 { // the second time there is nothing left to change
		b.must("RESTORE='" + files + "'; stage_restore_files")
		if left := b.left(); left != "" {
			t.Errorf("left: %s", left)
		}
	}
	if got := b.read("etc/systemd/system/kubelet.service"); got != "of the kubelet\n" {
		t.Errorf("the deleted file is %q", got)
	}
	info, err := os.Stat(b.path("etc/containerd/config.toml"))
	if err != nil || info.Mode() != 0o644 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	info, err = os.Stat(b.path("etc/kubeone/kept"))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory of the copies has the mode %v, %v", info.Mode(), err)
	}
}

// If the kubelet kept running with edited settings after its file is restored, this would go unnoticed. So it is
// stopped first, and an interrupted run leaves a stopped kubelet. systemd has kubeone's unit of containerd before that
// restarts.
func TestTheKubeletStandsStillWhileFilesAreRestored(t *testing.T) {
	t.Parallel()
	b, files := editedHost(t)
	b.command("systemctl", `case $1 in
	stop) [ "$(cat '`+b.path("etc/containerd/config.toml")+`')" = "somebody's" ] || echo late >>'`+b.path("wrong")+`' ;;
	restart) [ "$(cat '`+b.path("etc/containerd/config.toml")+`')" = "of containerd" ] || echo early >>'`+
		b.path("wrong")+`' ;;
	esac`)
	b.must("RESTORE='" + files + "'; stage_restore_files")
	if wrong := b.read("wrong"); wrong != "" {
		t.Error(wrong)
	}
	want := []string{"stop kubelet", "daemon-reload", "-q enable containerd", "reset-failed containerd",
		"restart containerd", "-q enable kubelet", "reset-failed kubelet", "restart kubelet"}
	var got []string
	for _, call := range b.calls() {
		if c, ok := strings.CutPrefix(call, "systemctl "); ok && !strings.HasPrefix(c, "is-active") {
			got = append(got, c)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// If the run is killed after containerd's files are restored, a note for the next start of containerd remains.
func TestAnInterruptedRestorationOwesContainerdItsRestart(t *testing.T) {
	t.Parallel()
	b, files := editedHost(t)
	b.command("systemctl", `[ "$1" != daemon-reload ] || [ -e '`+b.path("again")+`' ] || kill -9 "$PPID"`)
	if r := b.run("RESTORE='" + files + "'; stage_restore_files"); r.code == 0 {
		t.Fatal("it was not killed")
	}
	if left := b.left(); left != "" {
		t.Errorf("left: %s", left)
	}
	b.write("again", "")
	for _, want := range []bool{true, false} {
		_ = b.calls()
		b.must("UNITS=kubelet; stage_restart_units")
		if got := slices.Contains(b.calls(), "systemctl restart containerd"); got != want {
			t.Errorf("containerd starts anew: %t, want %t", got, want)
		}
	}
}

func TestNoUnitIsRestartedForWhatIsReadWithoutThat(t *testing.T) {
	t.Parallel()
	b, _ := editedHost(t)
	b.write("etc/containerd/certs.d/docker.io/hosts.toml", "somebody's\n")
	b.must("RESTORE='" + b.path("etc/containerd/certs.d/docker.io/hosts.toml") + "'; stage_restore_files")
	if got := b.read("etc/containerd/certs.d/docker.io/hosts.toml"); got != "of a registry\n" {
		t.Errorf("the file is %q", got)
	}
	for _, call := range b.calls() {
		if strings.HasPrefix(call, "systemctl stop") || strings.HasPrefix(call, "systemctl restart") {
			t.Error(call)
		}
	}
}

// What cannot be restored whole is not begun with.
func TestNothingIsRestoredFromADamagedCopy(t *testing.T) {
	t.Parallel()
	b, files := editedHost(t)
	for copied, content := range b.tree("etc/kubeone/kept") {
		if strings.Contains(content, "of the kubelet") {
			b.write(copied, "damaged\n")
		}
	}
	b.fails("RESTORE='"+files+"'; stage_restore_files",
		"this host no longer has a copy of what /etc/systemd/system/kubelet.service was")
	if got := b.read("etc/containerd/config.toml"); got != "somebody's\n" {
		t.Errorf("the other file has become %q", got)
	}
	if slices.Contains(b.calls(), "systemctl stop kubelet") {
		t.Error("the kubelet is stopped")
	}
}

// An addition to a static pod may be needed.
func TestAStaticPodIsNotRestored(t *testing.T) {
	t.Parallel()
	b, _ := editedHost(t)
	b.write("etc/kubernetes/manifests/etcd.yaml", "somebody's\n")
	b.fails("RESTORE='"+b.path("etc/kubernetes/manifests/etcd.yaml")+"'; stage_restore_files", "is not restored")
	if got := b.read("etc/kubernetes/manifests/etcd.yaml"); got != "somebody's\n" {
		t.Errorf("it is %q", got)
	}
}

// Copies of what is not noted any more go; what is noted has its copy before.
func TestWhatIsNotNotedAnyMoreIsNotKept(t *testing.T) {
	t.Parallel()
	b, _ := editedHost(t)
	before := len(b.tree("etc/kubeone/kept"))
	b.must("record containerd=2") // the edit is now recorded as ours
	if after := len(b.tree("etc/kubeone/kept")); after != before {
		t.Errorf("%d copies, then %d", before, after)
	}
	for copied, content := range b.tree("etc/kubeone/kept") {
		if strings.Contains(content, "of containerd") {
			t.Errorf("%s is still there", copied)
		}
	}
}

// What an upgrade has begun to write is no edit of anybody's.
func TestAnUpgradeThatWasInterruptedClaimsNothingOfItsFiles(t *testing.T) {
	t.Parallel()
	b := upgrading(t)
	b.write("var/lib/kubelet/config.yaml", "of before\n")
	b.write("etc/kubernetes/manifests/etcd.yaml", "of before\n")
	b.must("record kubelet=1 components=2")
	b.script += "\nkubeadm() { exit 1; }\n"
	if r := b.run("mkdir -p \"$BIN\"; stage_upgrade_control_plane"); r.code == 0 {
		t.Fatal("the upgrade succeeds")
	}
	b.write("etc/kubernetes/manifests/etcd.yaml", "half of the upgrade\n")
	if left := b.left(); left != "" {
		t.Errorf("taken for edits: %s", left)
	}
}

// A static pod may have been edited between the plan and the upgrade, which would overwrite the edit.
func TestAnUpgradeStopsBeforeItLosesWhatSomebodyHasChanged(t *testing.T) {
	t.Parallel()
	b := upgrading(t)
	b.write("etc/kubernetes/manifests/kube-apiserver.yaml", "ours\n")
	b.write("etc/containerd/config.toml", "ours\n")
	b.must("record containerd=1 components=2")
	b.must("stage_check")
	b.write("etc/containerd/config.toml", "somebody's\n") // the upgrade rewrites it
	b.must("stage_check")
	b.write("etc/kubernetes/manifests/kube-apiserver.yaml", "somebody's\n")
	const says = "/etc/kubernetes/manifests/kube-apiserver.yaml was edited since kubeone wrote it: undo the edit"
	b.fails("stage_check", says)
	b.fails("mkdir -p \"$BIN\"; stage_upgrade_control_plane", says)
	b.must("DISCARD_EDITS=yes; stage_check")
	b.must("begin_upgrade; stage_check") // one that has begun has written them itself
}

// A file with keys is root's alone again, and nothing is restarted for it. What is a link or gone by now stays so.
func TestFilesWithKeysAreClosed(t *testing.T) {
	t.Parallel()
	b := joined(t, "w-1")
	b.write("etc/kubernetes/kubelet.conf", "a key\n")
	b.write("etc/other", "of others\n")
	b.must("chmod 0644 @ROOT@/etc/kubernetes/kubelet.conf @ROOT@/etc/other; " +
		"ln -s @ROOT@/etc/other @ROOT@/etc/kubernetes/link.conf")
	b.command("chown", "")
	_ = b.calls()
	for range 2 {
		b.must("RESTORE='' CLOSE='@ROOT@/etc/kubernetes/kubelet.conf @ROOT@/etc/kubernetes/link.conf " +
			"@ROOT@/etc/kubernetes/gone.conf'; stage_restore_files")
	}
	for file, mode := range map[string]os.FileMode{"etc/kubernetes/kubelet.conf": 0o600, "etc/other": 0o644} {
		if info, err := os.Stat(b.path(file)); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v", file, info.Mode(), err)
		}
	}
	for _, call := range b.calls() {
		if strings.HasPrefix(call, "systemctl ") && !strings.HasPrefix(call, "systemctl is-active") ||
			strings.HasPrefix(call, "chown ") && !strings.HasPrefix(call, "chown 0:0 ") {
			t.Errorf("called %s", call)
		}
	}
}
