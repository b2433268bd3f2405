package script

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/plan/step"
)

// lost is a control-plane host of a cluster without quorum: its data and configuration, etcd and an API server that
// run, and an etcd image with programs that do as theirs do.
func lost(t *testing.T, from step.RestoreParams) *box {
	t.Helper()
	in := input("cp-1")
	in.Steps, in.Epoch = []step.Intent{step.With(from)}, 1
	b := newBox(t, in)
	for _, tool := range []string{"ps", "id"} {
		_ = os.Remove(b.path("bin/" + tool))
	}
	// etcd reads through a quorum once the cluster starts with the restored data.
	b.command("curl", `case "$*" in *:2381/*) grep -qs '^fenced=' '`+b.path("etc/kubeone/marker")+`' ;; esac`)
	b.command("systemctl", `case "$1" in is-active) exit 3 ;; esac`)
	b.mkdir("opt/kubeone")
	if err := os.Symlink(b.path("bin"), b.path("opt/kubeone/bin")); err != nil {
		t.Fatal(err)
	}
	b.command("kubeadm", `cd '`+b.root+`'
	case "$*" in
	"init --config"*)
		mkdir -p etc/kubernetes/manifests && : >etc/kubernetes/kubelet.conf &&
		: >etc/kubernetes/super-admin.conf &&
		: >etc/kubernetes/manifests/kube-apiserver.yaml ;;
	*"init phase etcd local"*) printf '    image: example.com/etcd:of-kubeadm\n' >etc/kubernetes/manifests/etcd.yaml ;;
	esac`)
	b.command("ctr", `case "$*" in
	*"images mount"*) mkdir -p '`+b.path("run/kubeone/etcd/usr/local")+`' && ln -s '`+b.path("bin")+`' '`+
		b.path("run/kubeone/etcd/usr/local/bin")+`' ;;
	*"images unmount"*) rm -rf '`+b.path("run/kubeone/etcd")+`' ;;
	*"images ls"*) printf '%s\n' example.com/etcd:3.6.8-0 example.com/etcd:3.7.0-0 ;;
	esac`)
	b.command("etcd", "")
	b.command("etcdctl", `case "$*" in
	*"snapshot save"*) for to in "$@"; do :; done; printf 'from the member\n' >"$to" ;;
	*"alarm list"*) cat '`+b.path("alarms")+`' 2>/dev/null || : ;;
	*"endpoint health"*) exit 1 ;;
	*"status -w json"*)
		printf '%s\n' '[{"Endpoint":"x","Status":{"header":{"cluster_id":1,"revision":77,"raft_term":2},' \
			'"version":"3.6.0"}}]' ;;
	esac`)
	b.revision("4711")
	b.authorities()
	b.write("etc/kubeone/marker", "cluster=alpha\nrole=control-plane\nrun=run-0\ncomplete=yes\n")
	b.write("etc/kubernetes/manifests/etcd.yaml", "    image: example.com/etcd:3.6.8-0\n")
	b.write("etc/kubernetes/manifests/kube-apiserver.yaml", "")
	b.write("etc/kubernetes/kubelet.conf", "")
	b.write("etc/kubeone/digests", "components abc\n")
	b.write("var/lib/etcd/member/db", "old\n")
	return b
}

// authorities gives the host what the cluster is signed with.
func (b *box) authorities() {
	b.t.Helper()
	for _, name := range []string{"ca.crt", "ca.key", "etcd/ca.crt", "etcd/ca.key", "front-proxy-ca.crt",
		"front-proxy-ca.key", "sa.pub", "sa.key"} {
		b.write("etc/kubernetes/pki/"+name, name[strings.LastIndex(name, ".")+1:]+"\n")
	}
}

// revision makes the host's etcdutl restore snapshots, and say that they are of that revision.
func (b *box) revision(revision string) {
	b.t.Helper()
	b.command("etcdutl", `case "$*" in *"snapshot status"*) printf '{"hash":1,"revision":`+revision+
		`,"totalKey":42,"totalSize":4096}\n' && exit ;; esac
	from=$3
	while [ $# -gt 0 ]; do [ "$1" = --data-dir ] && to=$2; shift; done
	mkdir -p "$to/member" && cp "$from" "$to/member/db"`)
}

// alive stands in for the processes of the control plane: they end when they are told to.
const alive = `alive=yes
serving() { [ "$alive" = no ] || printf '%s\n' 4711; }
kill() { printf 'kill %s\n' "$1" >>@ROOT@/calls; alive=no; }
KUBEONE_RUN=run-1
`

// aside are the names of what was moved aside.
func (b *box) aside() []string {
	b.t.Helper()
	paths, err := filepath.Glob(b.path("var/lib/kubeone-old/*/*"))
	if err != nil {
		b.t.Fatal(err)
	}
	out := make([]string, 0, len(paths))
	for _, p := range paths {
		name := filepath.Base(p)
		if _, short, long := strings.Cut(name, "-001-"); long { // the box's root is part of every path
			name = short
		}
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func TestFenceKeepsWhatItTakesAway(t *testing.T) {
	t.Parallel()
	b := lost(t, step.RestoreParams{})
	b.must(alive + "stage_fence")
	if diff := cmp.Diff([]string{"etc-kubernetes", "etc-kubernetes-manifests", "var-lib-etcd"}, b.aside()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("cluster=alpha\nrole=control-plane\nrun=run-1\ncomplete=no\nfenced=run-1\nid=192.0.2.1\n"+
		"id-derived=yes\nnode=cp-1\n", b.read("etc/kubeone/marker")); diff != "" {
		t.Error(diff)
	}
	calls := strings.Join(b.calls(), "\n")
	if !strings.Contains(calls, "systemctl disable --now kubelet.service") || !strings.Contains(calls, "kill -TERM") {
		t.Errorf("called\n%s", calls)
	}
	for _, left := range []string{"etc/kubernetes", "var/lib/etcd"} {
		if _, err := os.Stat(b.path(left)); err == nil {
			t.Errorf("%s is still there", left)
		}
	}
	before := b.tree("var", "etc")
	b.must(alive + "stage_fence")
	if diff := cmp.Diff(before, b.tree("var", "etc")); diff != "" {
		t.Errorf("the same again wrote something:\n%s", diff)
	}
}

// Nothing is moved while something may still write to it.
// The quorum may come back between the plan and its first step.
func TestNobodyIsStoppedWhoServesAgain(t *testing.T) {
	t.Parallel()
	for _, stage := range []string{"stage_fence", "stage_restore"} {
		b := lost(t, step.RestoreParams{From: "surviving-member"})
		b.fails(alive+"etcd_votes() { :; }\n"+stage, "etcd has its quorum again")
		if marker := b.read("etc/kubeone/marker"); !strings.Contains(marker, "complete=yes") || len(b.aside()) > 0 ||
			strings.Contains(strings.Join(b.calls(), "\n"), "kill") {
			t.Errorf("%s: the marker is %q, aside %v", stage, marker, b.aside())
		}
		b.write("etc/kubeone/marker", "cluster=alpha\nrole=control-plane\nrun=run-0\ncomplete=no\nfenced=run-0\n")
		b.must(alive + "etcd_votes() { :; }\n" + stage)
	}
}

func TestFenceStopsWhenTheControlPlaneDoesNot(t *testing.T) {
	t.Parallel()
	b := lost(t, step.RestoreParams{})
	b.fails(`serving() { printf '1\n'; }
kill() { :; }
wait_for() {
	what=$2
	shift 2
	"$@" || die "gave up waiting for $what"
}
stage_fence`, "gave up waiting for etcd and the API server to end")
	if got := b.read("var/lib/etcd/member/db"); got != "old\n" {
		t.Errorf("etcd's data was touched: %q", got)
	}
}

func TestAFencedHostStaysFencedUntilItHasJoined(t *testing.T) {
	t.Parallel()
	b := lost(t, step.RestoreParams{})
	b.must(alive + "stage_fence\nmark no")
	if got := b.read("etc/kubeone/marker"); !strings.Contains(got, "fenced=run-1\n") {
		t.Errorf("the marker is\n%s", got)
	}
	b.must("KUBEONE_RUN=run-2; mark yes")
	if diff := cmp.Diff("cluster=alpha\nrole=control-plane\nrun=run-2\ncomplete=yes\nepoch=1\nid=192.0.2.1\n"+
		"id-derived=yes\nnode=cp-1\n", b.read("etc/kubeone/marker")); diff != "" {
		t.Error(diff)
	}
}

func TestServingFindsTheControlPlaneOnly(t *testing.T) {
	t.Parallel()
	b := newBox(t, input("cp-1"))
	for pid, p := range map[string][2]string{
		"11": {"etcd", "/kubepods/burstable/pod1/c1"}, "12": {"kube-apiserver", "/system.slice/x:cri-containerd:c2"},
		"13": {"kube-controller", "/kubepods.slice/x"},
		"14": {"etcd", "/system.slice/somebody-elses-etcd.service"}, "15": {"nginx", "/kubepods/x"},
	} {
		b.write("proc/"+pid+"/comm", p[0]+"\n")
		b.write("proc/"+pid+"/cgroup", "0::"+p[1]+"\n")
	}
	if got := strings.Fields(b.must("serving")); !slices.Equal(got, []string{"11", "12", "13"}) {
		t.Errorf("found %v", got)
	}
	if got := b.must("serving etcd"); got != "11" {
		t.Errorf("found %q as etcd", got)
	}
}

func TestRestoreFromTheSurvivorKeepsItsData(t *testing.T) {
	t.Parallel()
	b := lost(t, step.RestoreParams{From: "surviving-member"})
	b.must(alive + "stage_restore")
	if got := b.read("var/lib/etcd/member/db"); got != "from the member\n" {
		t.Errorf("etcd's data is %q", got)
	}
	if diff := cmp.Diff([]string{"var-lib-etcd-member"}, b.aside()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("cluster=alpha\nrole=control-plane\nrun=run-1\ncomplete=yes\nepoch=1\nid=192.0.2.1\n"+
		"id-derived=yes\nnode=cp-1\n", b.read("etc/kubeone/marker")); diff != "" {
		t.Error(diff)
	}
	if _, err := os.Stat(b.path("var/lib/kubeone/recovery")); err == nil {
		t.Error("the working directory is still there, with the cluster's secrets")
	}
	if files := b.read("etc/kubeone/files"); !strings.Contains(files, "/etc/kubernetes/manifests/etcd.yaml\n") {
		t.Errorf("what etcd's manifest is now was not noted:\n%s", files)
	}
	// Of a release that could not be looked up only this program's names are known.
	if manifest := b.read("etc/kubernetes/manifests/etcd.yaml"); manifest != "    image: example.com/etcd:3.6.8-0\n" {
		t.Errorf("etcd is to run from another image than it did, which is not on this host: %s", manifest)
	}
	calls := b.calls()
	for _, want := range []string{
		"--force-new-cluster", "--bump-revision 1000000000 --mark-compacted", "--initial-cluster-token kubeone-run-1",
		"--initial-cluster cp-1=https://10.0.0.1:2380", "kubeadm certs renew all", "kubeadm init phase etcd local",
	} {
		if !slices.ContainsFunc(calls, func(c string) bool { return strings.Contains(c, want) }) {
			t.Errorf("nothing was called with %q:\n%s", want, strings.Join(calls, "\n"))
		}
	}
	stop := slices.Index(calls, "kill -TERM")
	read := slices.IndexFunc(calls, func(c string) bool { return strings.HasPrefix(c, "etcd --name") })
	if stop < 0 || read < stop {
		t.Errorf("the data was read at %d, and etcd stopped at %d", read, stop)
	}
}

func TestRestoreKeepsEtcdsManifestThatSomebodyHasChanged(t *testing.T) {
	t.Parallel()
	const manifests = "etc/kubernetes/manifests/"
	edited := func(b *box, name string) {
		b.write(manifests+name, b.read(manifests+name)+"    image: example.com/etcd:3.6.8-0\n    somebody: else\n")
	}
	for name, c := range map[string]struct {
		change func(*box)
		kept   []string
	}{
		"nothing":               {func(*box) {}, nil},
		"etcd's":                {func(b *box) { edited(b, "etcd.yaml") }, []string{"etcd.yaml"}},
		"etcd's, which is away": {func(b *box) { b.must("rm @ROOT@/" + manifests + "etcd.yaml") }, nil},
		"those that stay":       {func(b *box) { edited(b, "kube-apiserver.yaml") }, nil},
		"all, and kubeadm makes them": {func(b *box) {
			edited(b, "etcd.yaml")
			edited(b, "kube-apiserver.yaml")
			b.must("rm @ROOT@/etc/kubernetes/kubelet.conf")
		}, []string{"etcd.yaml", "kube-apiserver.yaml"}},
	} {
		b := lost(t, step.RestoreParams{From: "surviving-member"})
		b.must("note_files @ROOT@/" + manifests + "etcd.yaml @ROOT@/" + manifests + "kube-apiserver.yaml")
		c.change(b)
		b.must(alive + "stage_restore")
		if diff := cmp.Diff(append(c.kept, "var-lib-etcd-member"), b.aside()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// An unfinished upgrade resumes after a restore that kept what the upgrade had changed. It is over if the restore
// recreated the control plane.
func TestARestoreEndsAnUpgradeOnlyWhereAllIsMadeAnew(t *testing.T) {
	t.Parallel()
	for change, over := range map[string]string{
		"": "", "rm @ROOT@/etc/kubernetes/kubelet.conf; ": "!",
		`rm "$DIGESTS"; `: "!", // its join had not ended: its files may be of another manifest
	} {
		b := lost(t, step.RestoreParams{From: "surviving-member"})
		b.must(alive + `UPGRADING=@ROOT@/upgrading; printf '1.36.3' >"$UPGRADING"; ` + change + `stage_restore
[ ` + over + ` -e "$UPGRADING" ]`)
		// The upgrade may have written settings that the kubelet refuses.
		if again := slices.Contains(b.phases(), "init phase kubelet-start"); again != (over == "") {
			t.Errorf("%q: the kubelet's settings are written again: %t", change, again)
		}
	}
}

func TestRestoreOnAnEmptyHostMakesTheControlPlaneAroundTheData(t *testing.T) {
	t.Parallel()
	const sum = "55b6f1d89cd93b2ad8ba0ee4a8e9e0b1a4e5b9a3e9ff3b2f8b8b8a7c0f7d8b6a"
	b := lost(t, step.RestoreParams{From: "backup", Snapshot: sum})
	for _, gone := range []string{"etc/kubernetes", "var/lib/etcd", "etc/kubeone"} {
		if err := os.RemoveAll(b.path(gone)); err != nil {
			t.Fatal(err)
		}
	}
	b.write("var/lib/kubeone/recovery/snapshot.db", "from the backup\n")
	b.authorities()
	b.fails(alive+"stage_restore", "is not the snapshot of the plan")
	b.calls()
	b.must(alive + `RECOVER_SNAPSHOT=$(sha256sum <"$RECOVERY/snapshot.db" | sed 's/ .*//')
stage_restore`)
	if got := b.read("var/lib/etcd/member/db"); got != "from the backup\n" {
		t.Errorf("etcd's data is %q", got)
	}
	if b.read("etc/kubernetes/super-admin.conf") != "" || !slices.ContainsFunc(b.calls(), func(c string) bool {
		return strings.HasPrefix(c, "kubeadm init --config") &&
			strings.Contains(c, "--skip-phases bootstrap-token,addon,show-join-command") &&
			strings.Contains(c, "DirAvailable--var-lib-etcd")
	}) {
		t.Error("kubeadm did not make the control plane around the data")
	}
}

// Wherever a restore is killed, the next one ends with the same data, and the old is never lost.
func TestARestoreGoesOnFromWhereItWasKilled(t *testing.T) {
	t.Parallel()
	for _, at := range []string{
		"save_survivor", "quiet", "replace_member", "mv away", "mv", "keep_replaced", "unmount_etcd", "start_restored",
		"readyz",
	} {
		b := lost(t, step.RestoreParams{From: "surviving-member"})
		die := at + "() { exit 9; }\nreadyz() { exit 9; }\n"
		switch at {
		case "mv away": // the one that takes the old data out of its place
			die = "mv() { case $2 in */kubeone-old-*/member) exit 9 ;; esac; command mv \"$@\"; }\n"
		case "mv": // the one that puts the new data in the place of the old
			die = "mv() { case $2 in */lib/etcd/member) exit 9 ;; esac; command mv \"$@\"; }\n"
		}
		if r := b.run(alive + die + "stage_restore"); r.code == 0 {
			t.Errorf("%s: the restore was not killed", at)
		}
		if marker := b.read("etc/kubeone/marker"); !strings.Contains(marker, "complete=no") ||
			!strings.Contains(marker, "restoring=yes") {
			t.Errorf("killed at %s, the marker is\n%s", at, marker)
		}
		b.must(alive + "stage_restore")
		if got := b.read("var/lib/etcd/member/db"); got != "from the member\n" {
			t.Errorf("killed at %s, etcd's data is %q afterwards", at, got)
		}
		kept, _ := filepath.Glob(b.path("var/lib/kubeone-old/*/*var-lib-etcd-member/db"))
		if len(kept) == 0 || b.read(strings.TrimPrefix(kept[0], b.root)) != "old\n" {
			t.Errorf("killed at %s, the old data is not kept: %v", at, kept)
		}
	}
}

// kubeadm would silently create new authorities that no part of the cluster trusts.
func TestNoRestoreMakesAnAuthority(t *testing.T) {
	t.Parallel()
	for _, gone := range []string{"ca.key", "etcd/ca.crt", "front-proxy-ca.key", "sa.key", "sa.pub"} {
		b := lost(t, step.RestoreParams{From: "surviving-member"})
		b.must("rm @ROOT@/etc/kubernetes/kubelet.conf @ROOT@/etc/kubernetes/pki/" + gone)
		b.fails(alive+"stage_restore", "lacks what the cluster is signed with: "+gone+". Look for it")
		made := func(call string) bool { return strings.HasPrefix(call, "kubeadm init --config") }
		if slices.ContainsFunc(b.calls(), made) {
			t.Errorf("without %s kubeadm makes it", gone)
		}
		b.write("etc/kubernetes/pki/"+gone, "found again\n")
		b.must(alive + "stage_restore")
	}
}

// A copy that an earlier recovery has put in the place of a member's own data is not what that member had.
func TestACopyIsNoSurvivor(t *testing.T) {
	t.Parallel()
	b := lost(t, step.RestoreParams{From: "backup"})
	b.write("var/lib/kubeone/recovery/snapshot.db", "of the backup\n")
	if r := b.run(alive + `RECOVER_SNAPSHOT=$(sha256sum <"$RECOVERY/snapshot.db" | sed 's/ .*//')
start_restored() { exit 9; }
stage_restore`); r.code != 9 {
		t.Fatalf("exit status %d: %s", r.code, r.err)
	}
	b.fails(alive+"RECOVER_FROM=surviving-member RECOVER_SNAPSHOT=; stage_restore",
		"in the place of this member's own data")
	if got := b.read("var/lib/etcd/member/db"); got != "of the backup\n" {
		t.Errorf("etcd's data is %q", got)
	}
}

// On another file system what is kept is copied, and goes from its place only once the copy is whole.
func TestWhatIsKeptElsewhereIsCopiedFirst(t *testing.T) {
	t.Parallel()
	b := lost(t, step.RestoreParams{})
	const elsewhere = `stat() { [ "$1" = -c ] && [ "$2" = %d ] && printf '%s\n' "$3"; }
`
	pki := "@ROOT@/etc/kubernetes/pki"
	if r := b.run(elsewhere + "cp() { command cp \"$@\"; exit 9; }\nmove_aside old " + pki); r.code != 9 ||
		b.read("etc/kubernetes/pki/ca.key") == "" || len(b.aside()) != 1 ||
		!strings.HasSuffix(b.aside()[0], ".part") {
		t.Errorf("cut off while it was copied: %d %s, kept %q", r.code, r.err, b.aside())
	}
	if r := b.run(elsewhere + `rm() { case "$*" in *-gone) [ ! -e "$2" ] || exit 9 ;; esac; command rm "$@"; }
move_aside old ` + pki); r.code != 9 {
		t.Errorf("cut off while it was removed: %d %s", r.code, r.err)
	}
	b.must("move_aside old " + pki)
	for _, name := range []string{"etc/kubernetes/pki", "etc/kubernetes/pki.kubeone-gone"} {
		if _, err := os.Stat(b.path(name)); err == nil {
			t.Errorf("%s is left", name)
		}
	}
	whole, err := filepath.Glob(b.path("var/lib/kubeone-old/*/*pki/etcd/ca.key"))
	if err != nil || len(whole) != 1 {
		t.Errorf("kept: %q, %v", whole, err)
	}
}

// Once the restored data is in place it is not restored again: the cluster may have lived since.
func TestRestoredDataIsNotRestoredAgain(t *testing.T) {
	t.Parallel()
	b := lost(t, step.RestoreParams{From: "surviving-member"})
	b.run(alive + "start_restored() { exit 9; }\nstage_restore")
	b.write("var/lib/etcd/member/db", "lived since\n")
	b.must(alive + "stage_restore")
	if got := b.read("var/lib/etcd/member/db"); got != "lived since\n" {
		t.Errorf("etcd's data is %q", got)
	}
}

// What an earlier restore noted is of a life that has ended: after a fence the next restore does all of its work.
func TestALaterRestoreDoesNotBelieveAnEarlierOne(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]string{
		"a fence":              "stage_fence",
		"the end of the run":   "mark yes",
		"an end, and a fence":  "mark yes\nstage_fence",
		"a loss of its data":   "rm -rf @ROOT@/var/lib/etcd",
		"data set aside since": "mark yes\nmv @ROOT@/var/lib/etcd/member @ROOT@/elsewhere",
		"the note of a life ago": "mark yes\nmkdir -p @ROOT@/var/lib/kubeone/recovery\n" +
			": >@ROOT@/var/lib/kubeone/recovery/made\nmkdir -p @ROOT@/var/lib/etcd/kubeone-restored/member",
	} {
		b := lost(t, step.RestoreParams{From: "backup"})
		const upload = `mkdir -p "$RECOVERY"
printf '%s\n' "$content" >"$RECOVERY/snapshot.db"
RECOVER_SNAPSHOT=$(printf 'of the backup\n' | sha256sum | sed 's/ .*//')
`
		if r := b.run(alive + "content='of the backup'\n" + upload +
			"start_restored() { exit 9; }\nstage_restore"); r.code != 9 {
			t.Fatalf("%s: exit status %d: %s", name, r.code, r.err)
		}
		b.must(alive + between)
		if strings.Contains(between, "stage_fence") {
			if _, err := os.Stat(b.path("var/lib/kubeone/recovery")); err == nil {
				t.Errorf("%s: the fence leaves what a restore noted", name)
			}
		}
		b.write("var/lib/etcd/member/db", "a stranger's\n")
		if strings.Contains(between, "rm -rf") || strings.Contains(between, "elsewhere") {
			_ = os.RemoveAll(b.path("var/lib/etcd/member"))
		}
		b.authorities() // from the backup
		b.must(alive + "content='of the backup'\n" + upload + "stage_restore")
		if got := b.read("var/lib/etcd/member/db"); got != "of the backup\n" {
			t.Errorf("after %s etcd's data is %q", name, got)
		}
	}
}

// Revisions rise to the thousand million of the cluster's new life, however old the copy is.
func TestRevisionsAreRaisedToTheNewLife(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ epoch, revision, bump string }{
		{"1", "100", "1000000000"}, {"3", "100", "3000000000"}, {"3", "2000000100", "1000000000"},
		{"1", "2000000100", "1000000000"},
	} {
		b := lost(t, step.RestoreParams{From: "surviving-member"})
		b.revision(c.revision)
		b.must(alive + "EPOCH=" + c.epoch + "\nstage_restore")
		if calls := strings.Join(b.calls(), "\n"); !strings.Contains(calls,
			"--bump-revision "+c.bump+" --mark-compacted") {
			t.Errorf("from revision %s into life %s, it called\n%s", c.revision, c.epoch, calls)
		}
	}
}

// An alarm of the old cluster does not prevent a recovery, and is disarmed before the first write. Leases of its
// leaders are deleted. The port is open while the control plane starts.
func TestAlarmsAndLeadersDoNotSurviveARestore(t *testing.T) {
	t.Parallel()
	for _, from := range []step.Source{step.SurvivingMember, step.FullBackup} {
		b := lost(t, step.RestoreParams{From: from})
		b.write("alarms", "memberID:1 alarm:NOSPACE\n")
		b.command("nft", "")
		b.must(alive + `mkdir -p "$RECOVERY"
printf 'x\n' >"$RECOVERY/snapshot.db"
[ "$RECOVER_FROM" != backup ] || RECOVER_SNAPSHOT=$(sha256sum <"$RECOVERY/snapshot.db" | sed 's/ .*//')
stage_restore`)
		calls := b.calls()
		at := -1
		for _, want := range []string{
			"compact --physical 77", "defrag", "alarm disarm",
			" del /registry/leases/kube-system/kube-controller-manager",
			" del /registry/leases/kube-system/kube-scheduler",
			"systemctl stop kubeone-guard.service", "nft delete table inet kubeone-guard",
			"kubeadm init phase etcd local", "systemctl start kubelet.service",
			"systemctl restart kubeone-guard.service",
		} {
			found := slices.IndexFunc(calls, func(c string) bool { return strings.Contains(c, want) })
			if found <= at {
				t.Errorf("from %s: %q is call %d, after call %d:\n%s", from, want, found, at, strings.Join(calls, "\n"))
			}
			at = found
		}
	}
}

// A copy that the API server of this host could not read is put nowhere.
func TestNothingIsRecoveredThatNobodyCouldRead(t *testing.T) {
	t.Parallel()
	for _, from := range []step.Source{step.SurvivingMember, step.BareSnapshot, step.FullBackup} {
		b := lost(t, step.RestoreParams{From: from})
		b.fails(alive+`stored_by() { echo kubeone-1; }
mkdir -p "$RECOVERY"
printf 'x\n' >"$RECOVERY/snapshot.db"
RECOVER_SNAPSHOT=$(sha256sum <"$RECOVERY/snapshot.db" | sed 's/ .*//')
stage_restore`, "Recover from a backup that has the keys")
		if got := b.read("var/lib/etcd/member/db"); got != "old\n" {
			t.Errorf("from %s: etcd's data is %q", from, got)
		}
	}
}

// Leases that cannot be deleted expire. If etcd has stopped, the error says so, and not what could not be requested
// from it.
func TestLeadersThatCannotBeForgotten(t *testing.T) {
	t.Parallel()
	for deletion, want := range map[string]string{
		"exit 1":                    "",
		": >'@ROOT@/ended'; exit 1": "cannot use this host's data: connection refused",
	} {
		b := lost(t, step.RestoreParams{From: step.SurvivingMember})
		b.command("etcdctl", strings.ReplaceAll(`case "$*" in
		*" del "*) `+deletion+` ;;
		*"endpoint status"*) [ ! -e '@ROOT@/ended' ] || { echo "connection refused" >&2; exit 1; } ;;
		*"snapshot save"*) for to in "$@"; do :; done; printf 'from the member\n' >"$to" ;;
		esac`, "@ROOT@", b.root))
		if want == "" {
			b.must(alive + "stage_restore")
		} else {
			b.fails(alive+"stage_restore", want)
		}
	}
}

func TestDataThatCannotBeUsedSaysWhatElse(t *testing.T) {
	t.Parallel()
	b := lost(t, step.RestoreParams{From: "surviving-member"})
	b.command("etcd", "echo 'wal: crc mismatch'; exit 1")
	b.command("etcdctl", "echo 'connection refused' >&2; exit 1")
	const quick = "wait_for() { shift 2; \"$@\"; }\n"
	b.fails(alive+quick+"none_serving() { :; }\nstage_restore",
		"cannot use this host's data: connection refused; etcd: wal: crc mismatch. Recover with --on another host")
	if got := b.read("var/lib/etcd/member/db"); got != "old\n" {
		t.Errorf("etcd's data is %q", got)
	}
	if _, err := os.Stat(b.path("var/lib/kubeone/recovery/copy")); err == nil {
		t.Error("the copy of the data is still there")
	}
}

// A fenced host is chosen because the other's data was of no use: it takes its own back.
func TestAFencedHostCanBeTheSurvivor(t *testing.T) {
	t.Parallel()
	b := lost(t, step.RestoreParams{From: "surviving-member"})
	b.must(alive + "stage_fence")
	b.calls()
	b.must(alive + "stage_restore")
	if got := b.read("var/lib/etcd/member/db"); got != "from the member\n" {
		t.Errorf("etcd's data is %q", got)
	}
	if b.read("etc/kubernetes/pki/ca.key") != "key\n" {
		t.Error("the host has not its keys")
	}
	if calls := strings.Join(b.calls(), "\n"); !strings.Contains(calls, "kubeadm init phase etcd local") ||
		strings.Contains(calls, "kubeadm init --config") {
		t.Errorf("the control plane is not the one that was here:\n%s", calls)
	}
	kept, _ := filepath.Glob(b.path("var/lib/kubeone-old/*/var-lib-etcd-member/db"))
	if len(kept) != 1 || b.read(strings.TrimPrefix(kept[0], b.root)) != "old\n" {
		t.Errorf("the old data is not kept: %v", kept)
	}
}

// What was set aside as useless is not taken for what a fence moved.
func TestDataSetAsideIsNotTakenBack(t *testing.T) {
	t.Parallel()
	b := lost(t, step.RestoreParams{From: "surviving-member"})
	b.must(alive + "stage_fence")
	b.write("var/lib/kubeone-old/29990101T000000Z/var-lib-etcd-member/db", "of a former life\n")
	b.fails(alive+"stage_restore", "there is no etcd data on this host")
}

// A disk of etcd's own stays where it is, and what it holds stays on it.
func TestADiskOfEtcdsOwnKeepsItsData(t *testing.T) {
	t.Parallel()
	b := lost(t, step.RestoreParams{From: "surviving-member"})
	b.mkdir("var/lib/etcd/lost+found")
	b.write("proc/self/mountinfo", "36 35 8:16 / "+b.path("var/lib/etcd")+" rw - ext4 /dev/sdb rw\n")
	b.must(alive + "stage_fence")
	inside := func() []string {
		t.Helper()
		kept, err := filepath.Glob(b.path("var/lib/etcd/kubeone-old-*/member/db"))
		if err != nil {
			t.Fatal(err)
		}
		return kept
	}
	if kept := inside(); len(kept) != 1 || b.read(strings.TrimPrefix(kept[0], b.root)) != "old\n" {
		t.Errorf("the old data is not kept on its disk: %v", kept)
	}
	b.must(alive + "stage_fence") // nothing is left to move
	if out := b.must(alive + "list=$(ignored)\n" +
		"case $list in *DirAvailable--var-lib-etcd*) echo ignored ;; esac"); out != "ignored" {
		t.Error("kubeadm would refuse to join with what was moved aside")
	}
	b.must(alive + "stage_restore")
	if kept := inside(); len(kept) != 1 || b.read(strings.TrimPrefix(kept[0], b.root)) != "old\n" ||
		b.read("var/lib/etcd/member/db") != "from the member\n" {
		t.Errorf("after the restore the old data is not kept on its disk: %v", kept)
	}
}

// A guard that was written and not started, because the run was killed in between, is started by the next one.
func TestTheGuardThatRunsIsTheOneThatIsWritten(t *testing.T) {
	t.Parallel()
	b := lost(t, step.RestoreParams{})
	b.command("nft", "")
	b.command("systemctl", `case "$*" in "is-active"*) exit 0 ;; esac`)
	b.run("systemctl() { exit 9; }\nguard_on")
	b.must("guard_on")
	const restart = "systemctl restart kubeone-guard.service"
	if !slices.Contains(b.calls(), restart) {
		t.Error("the guard was not started")
	}
	b.must("guard_on")
	if calls := b.calls(); slices.Contains(calls, restart) ||
		!slices.Contains(calls, "systemctl -q enable kubeone-guard.service") {
		t.Errorf("the guard that runs was not left alone: %q", calls)
	}
}
