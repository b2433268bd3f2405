package script

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPutWritesOnlyWhatDiffers(t *testing.T) {
	t.Parallel()
	b := newBox(t, input("w-1"))
	const put = `content() { printf 'one\ntwo\n'; }; put /etc/x/file 0640 content; printf %s "$CHANGED"`
	body := strings.ReplaceAll(put, "/etc", b.path("etc"))
	if got := b.must(body); got != "yes" {
		t.Errorf("a new file: CHANGED=%s", got)
	}
	before := b.tree("etc")
	if got := b.must(body); got != "no" {
		t.Errorf("the same again: CHANGED=%s", got)
	}
	if diff := cmp.Diff(before, b.tree("etc")); diff != "" {
		t.Errorf("the same again wrote something:\n%s", diff)
	}
	if err := os.Chmod(b.path("etc/x/file"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.must(body)
	if info, err := os.Stat(b.path("etc/x/file")); err != nil || info.Mode() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	b.write("etc/x/file", "three\n")
	if got := b.must(body); got != "yes" || b.read("etc/x/file") != "one\ntwo\n" {
		t.Errorf("another content: CHANGED=%s, %q", got, b.read("etc/x/file"))
	}
	if entries, _ := os.ReadDir(b.path("etc/x")); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

func TestLinkSwitchesInOneStep(t *testing.T) {
	t.Parallel()
	b := newBox(t, input("w-1"))
	for _, c := range []struct{ target, changed string }{{"one", "yes"}, {"one", "no"}, {"two", "yes"}} {
		if got := b.must("link " + c.target + ` @ROOT@/l; printf %s "$CHANGED"`); got != c.changed {
			t.Errorf("%s: CHANGED=%s, want %s", c.target, got, c.changed)
		}
		if to, _ := os.Readlink(b.path("l")); to != c.target {
			t.Errorf("leads to %s, want %s", to, c.target)
		}
	}
}

func TestMarkSaysWhoseTheHostIs(t *testing.T) {
	t.Parallel()
	b := newBox(t, input("w-1"))
	b.must("KUBEONE_RUN=run-1; mark no")
	if diff := cmp.Diff("cluster=alpha\nrole=worker\nrun=run-1\ncomplete=no\nid=192.0.2.11\n"+
		"id-derived=yes\nnode=w-1\n", b.read("etc/kubeone/marker")); diff != "" {
		t.Error(diff)
	}
	b.must("mark yes; mark no")
	if diff := cmp.Diff("cluster=alpha\nrole=worker\nrun=by-hand\ncomplete=yes\nid=192.0.2.11\n"+
		"id-derived=yes\nnode=w-1\n", b.read("etc/kubeone/marker")); diff != "" {
		t.Errorf("a finished host became unfinished:\n%s", diff)
	}
	b.fails("CLUSTER=beta; mark no", "this host belongs to cluster alpha")
	b.fails("ROLE=control-plane; mark no", "this host has joined as worker since the plan was made")
}

// A host is the manifest's or a Machine's. What is begun for the one refuses the other's, whatever was planned.
func TestMarkRefusesTheHostOfAnotherOwner(t *testing.T) {
	t.Parallel()
	b := newBox(t, input("w-1"))
	const machine = "HOST_ID=uid-1; ID_DERIVED=no; MACHINE=kube-system/pool-1; "
	b.must(machine + "KUBEONE_RUN=run-1; mark no; mark yes; mark no")
	if diff := cmp.Diff("cluster=alpha\nrole=worker\nrun=run-1\ncomplete=yes\nid=uid-1\nid-derived=no\nnode=w-1\n"+
		"machine=kube-system/pool-1\n", b.read("etc/kubeone/marker")); diff != "" {
		t.Error(diff)
	}
	b.fails("mark no", "this host belongs to Machine kube-system/pool-1")
	b.fails("HOST_ID=uid-2; MACHINE=kube-system/pool-2; mark no", "this host belongs to Machine kube-system/pool-1")
	other := newBox(t, input("w-1"))
	other.must("mark no")
	other.fails(machine+"mark no", "this host belongs to the manifest")
}

func TestRecordReplacesByName(t *testing.T) {
	t.Parallel()
	b := newBox(t, input("w-1"))
	b.must("record a=1 b=2")
	b.must("record b=3 c=4")
	if diff := cmp.Diff("a 1\nb 3\nc 4\n", b.read("etc/kubeone/digests")); diff != "" {
		t.Error(diff)
	}
	if got := b.must(`record b=3 c=4; printf %s "$CHANGED"`); got != "no" {
		t.Errorf("the same again: CHANGED=%s", got)
	}
}

// What files are is noted with the configuration that they are made of, each with what it was when it was written last.
func TestRecordNotesWhatFilesAre(t *testing.T) {
	t.Parallel()
	b := newBox(t, input("cp-1"))
	b.write("etc/containerd/config.toml", "containerd\n")
	b.write("var/lib/kubelet/config.yaml", "kubelet\n")
	b.write("etc/kubernetes/manifests/etcd.yaml", "etcd\n")
	b.write("etc/kubernetes/manifests/mine.yaml", "somebody's\n")
	b.must("record containerd=1 kernel=2")
	b.must("record kubelet=3 components=4")
	changed := func() []string {
		t.Helper()
		var out []string
		for _, line := range strings.Split(b.must("sha256sum -c \"$FILES\" 2>/dev/null || :"), "\n") {
			if file, ok := strings.CutSuffix(line, ": FAILED"); ok {
				out = append(out, file[strings.LastIndex(file, "/")+1:])
			}
		}
		return out
	}
	if noted := strings.Count(b.read("etc/kubeone/files"), "\n"); noted != 3 || changed() != nil {
		t.Errorf("%d files noted, %v changed:\n%s", noted, changed(), b.read("etc/kubeone/files"))
	}
	b.write("etc/containerd/config.toml", "somebody's\n")
	b.write("etc/kubernetes/manifests/etcd.yaml", "somebody's\n")
	if diff := cmp.Diff([]string{"config.toml", "etcd.yaml"}, slices.Sorted(slices.Values(changed()))); diff != "" {
		t.Error(diff)
	}
	b.must("forget_files " + b.path("etc/kubernetes/manifests/etcd.yaml")) // it is about to be written
	if diff := cmp.Diff([]string{"config.toml"}, changed()); diff != "" {
		t.Error(diff)
	}
	b.must("note_files " + b.path("etc/kubernetes/manifests/etcd.yaml")) // written again; the other one was not
	if diff := cmp.Diff([]string{"config.toml"}, changed()); diff != "" {
		t.Error(diff)
	}
}

// A registry that is no longer desired has no file, and that is not an edit.
func TestFilesOfRegistriesThatAreGoneAreForgotten(t *testing.T) {
	t.Parallel()
	b := newBox(t, input("w-1"))
	b.write("etc/containerd/config.toml", "containerd\n")
	b.write("etc/containerd/certs.d/old.example/hosts.toml", "old\n")
	b.must("record containerd=1 kernel=2")
	if !strings.Contains(b.read("etc/kubeone/files"), "old.example") {
		t.Error("not noted")
	}
	if err := os.RemoveAll(b.path("etc/containerd/certs.d/old.example")); err != nil {
		t.Fatal(err)
	}
	b.must("record kubelet=3")
	if !strings.Contains(b.read("etc/kubeone/files"), "old.example") {
		t.Error("forgotten by what has nothing to do with it")
	}
	b.must("record containerd=2 kernel=2")
	if strings.Contains(b.read("etc/kubeone/files"), "old.example") {
		t.Errorf("still noted:\n%s", b.read("etc/kubeone/files"))
	}
}

func TestWaitFor(t *testing.T) {
	t.Parallel()
	b := newBox(t, input("w-1"))
	b.must(`n=0; third() { n=$((n + 1)); [ "$n" = 3 ]; }; wait_for 60 "the third time" third; [ "$n" = 3 ]`)
	b.fails(`wait_for 0 "what never comes" false`, "gave up after 0 s waiting for what never comes")
	b.write("var/log/pods/kube-system_kube-apiserver-cp-1_1/kube-apiserver/0.log",
		"2026-11-24T03:41:00.1Z stderr F Error: unknown flag: --odd")
	b.fails(`wait_for_pods "etcd kube-apiserver" 0 "the API server" false`,
		"gave up after 0 s waiting for the API server; kube-apiserver says: Error: unknown flag: --odd")
	b.command("systemctl", "[ \"$1\" != show ] || echo 4")
	b.command("journalctl", "printf '%s\\n' 'E1130 rlimit err=\"not permitted\"' "+
		"'E1130 err=\"too much CPU\"' 'I1130 error' "+
		"'kubelet.service: Main process exited' 'Starting kubelet' 'E1130 rlimit err=\"not permitted\"'")
	b.fails(`wait_for_pods etcd 0 "etcd" false`, "waiting for etcd; the kubelet ended 4 times: correct what it says, "+
		`in the manifest or on the host, and apply again: E1130 err="too much CPU"`)
}

func TestSecretsAreFilledInOnTheHost(t *testing.T) {
	t.Parallel()
	b := newBox(t, input("w-1"))
	b.write("run/kubeone/secrets/token", `abcdef.0123456789abcdef`)
	got := b.must(`text() { printf '%s\n' 'a: "@TOKEN@"' 'c: \n $x' ''; }; with_secrets text`)
	if diff := cmp.Diff("a: \"abcdef.0123456789abcdef\"\nc: \\n $x\n", got); diff != "" {
		t.Error(diff)
	}
	if got := b.must("kubeadm_config file_join"); got != "/run/kubeone/secrets/kubeadm.yaml" {
		t.Errorf("printed %q", got)
	}
	if info, err := os.Stat(b.path("run/kubeone/secrets/kubeadm.yaml")); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if text := b.read("run/kubeone/secrets/kubeadm.yaml"); strings.Contains(text, "@") ||
		!strings.Contains(text, "abcdef.0123456789abcdef") {
		t.Errorf("not filled in:\n%s", text)
	}
	_ = os.Remove(b.path("run/kubeone/secrets/token"))
	b.fails("kubeadm_config file_join", "/run/kubeone/secrets/token is missing")
}

func TestIgnoredErrorsOfAResumedHost(t *testing.T) {
	t.Parallel()
	b := newBox(t, everything())
	if got := b.must("ignored"); got != "Swap,NumCPU" {
		t.Errorf("a bare host ignores %q", got)
	}
	b.mkdir("etc/kubernetes/pki")
	got := b.must("ignored")
	for _, want := range []string{
		"Swap,NumCPU,", "DirAvailable--var-lib-etcd", "FileAvailable--etc-kubernetes-manifests-etcd.yaml", "Port-10250",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %s", got, want)
		}
	}
	plain := newBox(t, input("cp-1"))
	if got := plain.must("ignored"); got != "" {
		t.Errorf("a bare host ignores %q", got)
	}
}

// A port without a listener is not asked. If listeners cannot be seen, it is.
func TestOnlyWhoListensIsAsked(t *testing.T) {
	t.Parallel()
	b := newBox(t, input("cp-2"))
	b.command("curl", "")
	b.must("readyz")
	b.write("proc/net/tcp6", "")
	b.write("proc/net/tcp", "  0: 0100007F:192C 00000000:0000 0A 0\n  1: 0100007F:192B 0100007F:9999 01 0\n")
	if b.run("readyz").code == 0 {
		t.Error("port 6443 answers, but only 6444 is listened at, and 6443 connected")
	}
	b.write("proc/net/tcp6", "  0: 00000000000000000000000000000000:192B 00000000000000000000000000000000:0000 0A 0\n")
	b.must("readyz")
	if calls := b.calls(); len(calls) != 2 {
		t.Errorf("curl was called for %q", calls)
	}
}

// An API server that waits for its look over the Services alone is ended, once; any other has all the time there is.
func TestAnAPIServerThatIsStuckIsStartedAnew(t *testing.T) {
	t.Parallel()
	b := newBox(t, input("cp-2"))
	b.command("ctr", `case "$*" in *"containers ls -q"*) echo id ;; *"tasks kill --signal SIGKILL id"*) : >'`+
		b.path("anew")+`' ;; esac`)
	b.mkdir("opt/kubeone")
	if err := os.Symlink(b.path("bin"), b.path("opt/kubeone/bin")); err != nil {
		t.Fatal(err)
	}
	b.command("curl", `[ -e '`+b.path("anew")+`' ] || case "$*" in */readyz) exit 22 ;; esac`)
	if said := b.must("await_api_server 20"); !strings.Contains(said, "and was restarted") {
		t.Errorf("printed %q", said)
	}
	if kills := slices.DeleteFunc(b.calls(), func(call string) bool {
		return !strings.Contains(call, "tasks kill")
	}); len(kills) != 1 {
		t.Errorf("killed by %q", kills)
	}
	// One that answers only now and then is slow, and waits for nothing.
	b.command("curl", `echo poll >>'`+b.path("slow")+`'; n=$(wc -l <'`+b.path("slow")+`')
	[ "$n" -gt 120 ] || case "$*" in */readyz) exit 22 ;; *) [ $((n % 20)) -gt 1 ] || exit 22 ;; esac`)
	if said := b.must("await_api_server 60"); said != "" {
		t.Errorf("a slow one: printed %q", said)
	}
	b.command("curl", `echo poll >>'`+b.path("polls")+`'; [ "$(wc -l <'`+b.path("polls")+`')" -gt 99 ] || exit 22`)
	if said := b.must("await_api_server 60"); said != "" {
		t.Errorf("printed %q", said)
	}
	if kills := slices.DeleteFunc(b.calls(), func(call string) bool {
		return !strings.Contains(call, "tasks kill")
	}); len(kills) != 0 {
		t.Errorf("killed by %q", kills)
	}
}
