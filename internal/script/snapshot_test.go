package script

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// member is a control-plane host whose etcd gives snapshots.
func member(t *testing.T) *box {
	t.Helper()
	in := input("cp-1")
	in.Want.Backup.Schedule, in.Want.Backup.Keep = 6*time.Hour, 3
	b := newBox(t, in)
	for _, tool := range []string{"flock", "od", "head", "tail"} {
		at, err := exec.LookPath(tool)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(at, b.path("bin/"+tool)); err != nil {
			t.Fatal(err)
		}
	}
	b.command("systemctl", "")
	b.command("df", `printf 'Filesystem 1024-blocks Used Available Capacity Mounted\n/dev/x 1 1 9999999 1%% /\n'`)
	b.command("du", `printf '2048\tx\n'`)
	b.mkdir("opt/kubeone")
	if err := os.Symlink(b.path("bin"), b.path("opt/kubeone/bin")); err != nil {
		t.Fatal(err)
	}
	b.write("var/lib/etcd/member/snap/db", "data")
	b.write("etc/kubernetes/manifests/etcd.yaml", "x")
	b.gives("")
	return b
}

// gives makes the host's etcd give a snapshot, to which something is done before it is seen.
func (b *box) gives(then string) {
	b.t.Helper()
	b.command("ctr", `case "$*" in
	*"tasks ls"*) printf 'TASK PID STATUS\nold 1 STOPPED\netcd-1 2 RUNNING\nother 3 RUNNING\n' ;;
	*"containers ls"*) printf 'old\netcd-1\n' ;;
	*"etcdctl"*) for last; do :; done
		head -c 4096 /dev/zero >"$last"
		sum=$(sha256sum <"$last"); sum=${sum%% *}
		printf "$(printf '%s' "$sum" | sed 's/../\\x&/g')" >>"$last"
		`+then+`
		;;
	*"snapshot status"*) printf '{"hash":1,"revision":4711,"totalKey":42,"totalSize":4096,"version":"3.6.0"}\n' ;;
	*) exit 9 ;;
	esac`)
	// The shell of the stand-in must know \x.
	text := strings.Replace(b.read("bin/ctr"), b.path("bin/sh"), "/bin/bash", 1)
	b.write("bin/ctr", text)
	if err := os.Chmod(b.path("bin/ctr"), 0o700); err != nil {
		b.t.Fatal(err)
	}
}

// kept are the files in the snapshots' directory, whatever they are.
func (b *box) kept() []string {
	b.t.Helper()
	entries, err := os.ReadDir(b.path("var/lib/kubeone/snapshots"))
	if err != nil {
		b.t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if e.Name() != ".lock" {
			names = append(names, e.Name())
		}
	}
	return names
}

func TestASnapshotIsVerifiedAndKeptForRootOnly(t *testing.T) {
	t.Parallel()
	b := member(t)
	out := b.must("stage_snapshot")
	if !strings.Contains(out, "revision 4711, 42 keys, sha256 ") {
		t.Errorf("it says %q", out)
	}
	names := b.kept()
	if len(names) != 1 || !strings.HasPrefix(names[0], "cp-1-2") || !strings.HasSuffix(names[0], "Z-before-change.db") {
		t.Fatalf("kept are %q", names)
	}
	for name, want := range map[string]os.FileMode{
		"var/lib/kubeone/snapshots":             0o700,
		"var/lib/kubeone/snapshots/" + names[0]: 0o600,
	} {
		info, err := os.Stat(b.path(name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %v, want %v", name, got, want)
		}
	}
	if len(b.read("var/lib/kubeone/snapshots/"+names[0])) != 4096+32 {
		t.Error("the snapshot is not what etcd gave")
	}
	if !slices.ContainsFunc(b.calls(), func(c string) bool {
		return strings.Contains(c, "tasks exec --exec-id") && strings.Contains(c, " etcd-1 etcdctl ")
	}) {
		t.Error("etcdctl was not run in the container that runs")
	}
	if left := b.read("var/lib/etcd/kubeone-snapshot.part"); left != "" {
		t.Error("a half file is left in etcd's directory")
	}
}

func TestTheOldestSnapshotsGoAndOthersFilesStay(t *testing.T) {
	t.Parallel()
	b := member(t)
	for _, name := range []string{
		"cp-1-20250101T000000Z-scheduled.db", "cp-1-20250103T000000Z-scheduled.db",
		"cp-1-20250102T000000Z-before-change.db", "mine.db", ".cp-1-20250104T000000Z-x.db",
	} {
		b.write("var/lib/kubeone/snapshots/"+name, "old")
	}
	b.must("stage_snapshot")
	names := b.kept()
	if len(names) != 4 {
		t.Fatalf("kept are %q", names)
	}
	want := []string{"cp-1-20250102T000000Z-before-change.db", "cp-1-20250103T000000Z-scheduled.db", names[2],
		"mine.db"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

func TestABadSnapshotIsNeverKept(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ change, says string }{
		"truncated":    {`head -c 2080 "$last" >"$last.x"; mv "$last.x" "$last"`, "its checksum is wrong"},
		"not a sector": {`printf x >>"$last"`, "its checksum is wrong"},
		"altered":      {`printf x | dd of="$last" bs=1 seek=100 conv=notrunc status=none`, "its checksum is wrong"},
		"etcd says no": {`echo "context deadline exceeded" >&2; exit 1`,
			"etcd gives no snapshot: context deadline exceeded"},
		"disk was full": {`: >"$last"`, "its checksum is wrong"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := member(t)
			at, err := exec.LookPath("dd")
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(at, b.path("bin/dd")); err != nil {
				t.Fatal(err)
			}
			b.write("var/lib/kubeone/snapshots/cp-1-20250101T000000Z-scheduled.db", "the newest good one")
			b.gives(test.change)
			b.fails("KEEP_SNAPSHOTS=1; stage_snapshot", test.says)
			if diff := cmp.Diff([]string{"cp-1-20250101T000000Z-scheduled.db"}, b.kept()); diff != "" {
				t.Error(diff)
			}
			if left := b.read("var/lib/etcd/kubeone-snapshot.part"); left != "" {
				t.Error("a half file is left in etcd's directory")
			}
		})
	}
}

func TestNoSnapshotFillsADisk(t *testing.T) {
	t.Parallel()
	b := member(t)
	b.command("df", `printf 'Filesystem 1024-blocks Used Available Capacity Mounted\n/dev/x 1 1 263000 1%% /\n'`)
	b.fails("stage_snapshot", "no room for a snapshot: 256 MiB are free below /var/lib/etcd, 258 MiB are needed")
	if names := b.kept(); len(names) > 0 {
		t.Errorf("kept are %q", names)
	}
}

func TestADiskThatFillsUpInTheMiddleKeepsNoHalfFile(t *testing.T) {
	t.Parallel()
	b := member(t)
	b.write("var/lib/kubeone/snapshots/cp-1-20250101T000000Z-scheduled.db", "the newest good one")
	if err := os.Remove(b.path("bin/mv")); err != nil {
		t.Fatal(err)
	}
	b.command("mv", `printf half >"$3"; echo "mv: No space left on device" >&2; exit 1`)
	b.fails("take_snapshot by-hand", "No space left on device")
	if diff := cmp.Diff([]string{"cp-1-20250101T000000Z-scheduled.db"}, b.kept()); diff != "" {
		t.Error(diff)
	}
	if left := b.read("var/lib/etcd/kubeone-snapshot.part"); left != "" {
		t.Error("a half file is left in etcd's directory")
	}
}

func TestASnapshotNeedsARunningEtcd(t *testing.T) {
	t.Parallel()
	b := member(t)
	b.command("ctr", "")
	b.fails("stage_snapshot", "etcd does not run on this host")
	b = newBox(t, input("w-1"))
	b.fails("stage_snapshot", "no control-plane host")
}

func TestTheTimerComesAndGoesWithTheSchedule(t *testing.T) {
	t.Parallel()
	b := member(t)
	b.must("configure_snapshots")
	if timer := b.read("etc/systemd/system/kubeone-snapshot.timer"); !strings.Contains(timer,
		"\nOnUnitActiveSec=21600\n") {
		t.Errorf("the timer is\n%s", timer)
	}
	if diff := cmp.Diff([]string{"systemctl daemon-reload", "systemctl -q enable " +
		"kubeone-snapshot.timer", "systemctl restart kubeone-snapshot.timer"}, b.calls()); diff != "" {
		t.Error(diff)
	}
	before := b.tree("etc")
	if out := b.must("configure_snapshots"); out != "" ||
		slices.ContainsFunc(b.calls(), func(c string) bool { return strings.Contains(c, "restart") }) {
		t.Error("what is right already is not left alone")
	}
	if diff := cmp.Diff(before, b.tree("etc")); diff != "" {
		t.Error(diff)
	}
	b.must("SNAPSHOT_EVERY=0; configure_snapshots")
	for _, name := range []string{
		"etc/systemd/system/kubeone-snapshot.timer", "etc/systemd/system/kubeone-snapshot.service",
		"etc/kubeone/snapshot.sh",
	} {
		if b.read(name) != "" {
			t.Errorf("%s is still there", name)
		}
	}
	if !slices.Contains(b.calls(), "systemctl disable --now kubeone-snapshot.timer") {
		t.Error("the timer was not stopped")
	}
}

// A run that is killed after it wrote the timer's file leaves it to the next one to start the timer.
func TestATimerThatWasWrittenAndNotStartedIsStarted(t *testing.T) {
	t.Parallel()
	for name, answers := range map[string]string{
		"not enabled": `case "$*" in *is-enabled*) exit 1 ;; esac`,
		"not active":  `case "$*" in *is-active*) exit 3 ;; esac`,
		"not read":    `case "$*" in show*) echo NeedDaemonReload=yes ;; esac`,
	} {
		b := member(t)
		b.run("systemctl() { exit 9; }\nconfigure_snapshots")
		b.command("systemctl", answers)
		b.must("configure_snapshots")
		for _, want := range []string{"systemctl daemon-reload", "systemctl -q enable " +
			"kubeone-snapshot.timer", "systemctl restart kubeone-snapshot.timer"} {
			if !strings.Contains(b.read("calls"), want) {
				t.Errorf("%s: no %s", name, want)
			}
		}
	}
}

// Where a clock was wrong the one just made is not the newest by its name; and one from before a change is always kept.
func TestRetentionSparesTheOneJustMadeAndTheLatestBeforeAChange(t *testing.T) {
	t.Parallel()
	b := member(t)
	for _, name := range []string{
		"20260101T000000Z-before-change", "20260102T000000Z-before-change", "29980101T000000Z-scheduled",
		"29990101T000000Z-scheduled",
	} {
		b.write("var/lib/kubeone/snapshots/cp-1-"+name+".db", "old")
	}
	b.must("KEEP_SNAPSHOTS=1; take_snapshot scheduled")
	names := b.kept()
	if len(names) != 3 || names[0] != "cp-1-20260102T000000Z-before-change.db" ||
		names[2] != "cp-1-29990101T000000Z-scheduled.db" {
		t.Errorf("kept are %q", names)
	}
}

func TestTheTimersScriptTakesASnapshotByItself(t *testing.T) {
	t.Parallel()
	b := member(t)
	b.must("configure_snapshots; PATH='" + b.path("bin") + "' sh @ROOT@/etc/kubeone/snapshot.sh")
	if names := b.kept(); len(names) != 1 || !strings.HasSuffix(names[0], "Z-scheduled.db") {
		t.Errorf("kept are %q", names)
	}
}
