package script

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// controlPlane is a box with a kubeadm, a systemd and components that are well.
func controlPlane(t *testing.T, name string) *box {
	t.Helper()
	b := newBox(t, input(name))
	b.command("curl", "")
	b.command("systemctl", "")
	b.command("journalctl", "echo the last line of the journal")
	b.command("kubectl", "")
	b.mkdir("opt/kubeone")
	if err := os.Symlink(b.path("bin"), b.path("opt/kubeone/bin")); err != nil {
		t.Fatal(err)
	}
	b.command("kubeadm", `cd '`+b.root+`'
	case "$*" in
	*"init phase kubeconfig kubelet"*)
		printf 'clusters:\n- cluster:\n    server: https://of-kubeadm\n' >etc/kubernetes/kubelet.conf ;;
	*"phase kubelet-start"*)
		mkdir -p etc/kubernetes var/lib/kubelet/pki && echo new >var/lib/kubelet/config.yaml &&
			echo new >var/lib/kubelet/pki/kubelet-client-current.pem
		echo new >etc/kubernetes/bootstrap-kubelet.conf &&
			[ -f etc/kubernetes/kubelet.conf ] ||
				echo 'server: https://lb.example.com:6443' >etc/kubernetes/kubelet.conf ;;
	esac`)
	b.write("run/kubeone/secrets/token", "abcdef.0123456789abcdef")
	b.write("run/kubeone/secrets/discovery.conf",
		"clusters:\n- cluster:\n    certificate-authority-data: Y2E=\n    server: https://lb.example.com:6443\n")
	b.must("mark no")
	return b
}

// phases are the calls of kubeadm, without their configuration, since the last time.
func (b *box) phases() []string {
	var out []string
	for _, call := range b.calls() {
		if phase, ok := strings.CutPrefix(call, "kubeadm "); ok {
			phase, _, _ = strings.Cut(phase, " --config")
			out = append(out, phase)
		}
	}
	return out
}

func TestInitEndsWithAFinishedHost(t *testing.T) {
	t.Parallel()
	b := controlPlane(t, "cp-1")
	b.write("etc/kubernetes/super-admin.conf", "too much power")
	b.must("stage_init")
	if diff := cmp.Diff([]string{"init phase certs all", "init"}, b.phases()); diff != "" {
		t.Error(diff)
	}
	if b.read("etc/kubernetes/super-admin.conf") != "" {
		t.Error("super-admin.conf is still there")
	}
	if marker := b.read("etc/kubeone/marker"); !strings.Contains(marker, "complete=yes") {
		t.Errorf("the marker is\n%s", marker)
	}
	if diff := cmp.Diff("components kubelet network", recordedNames(b)); diff != "" {
		t.Error(diff)
	}
}

// etcdNeeds is the directory without which etcd does not start.
func (b *box) etcdNeeds() string {
	b.t.Helper()
	if patch := b.read("etc/kubeone/patches/etcd+strategic.yaml"); !strings.Contains(patch, "type: Directory") {
		b.t.Errorf("the patch of etcd's manifest is %q", patch)
	}
	target, err := os.Readlink(b.path("etc/kubeone/etcd-log"))
	if err != nil {
		b.t.Error(err)
	}
	return strings.TrimPrefix(target, b.root)
}

// Only where it starts for the first time may etcd start without data.
func TestEtcdStartsWithoutDataOnlyForTheFirstTime(t *testing.T) {
	t.Parallel()
	const log = "/var/lib/etcd/member/wal"
	for stage, name := range map[string]string{"stage_init": "cp-1", "stage_join_etcd": "cp-2"} {
		b := controlPlane(t, name)
		b.command("kubeadm", "[ -d '"+b.path("etc/kubeone/etcd-log")+"/.' ]")
		b.command("curl", "exit 7")
		for range 2 { // the second time as if the run had been killed
			b.must(stage)
			if got := b.etcdNeeds(); got != log {
				t.Errorf("%s: etcd needs %s afterwards", stage, got)
			}
		}
		if _, err := os.Stat(b.path(log)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: etcd has got a directory of its own: %v", stage, err)
		}
	}
}

// A run that ended between etcd's first start and the guard leaves the link as it was for that.
func TestNoHostIsFinishedWithoutTheGuardOfItsEtcd(t *testing.T) {
	t.Parallel()
	b := controlPlane(t, "cp-2")
	b.must("begin_etcd")
	b.must("mark yes")
	if got := b.etcdNeeds(); got != "/var/lib/etcd/member/wal" {
		t.Errorf("etcd needs %s", got)
	}
	// as containerd makes it where it is missing
	b.must("rm @ROOT@/etc/kubeone/etcd-log; mkdir @ROOT@/etc/kubeone/etcd-log; guard_etcd")
	if got := b.etcdNeeds(); got != "/var/lib/etcd/member/wal" {
		t.Errorf("etcd needs %s", got)
	}
}

// A guard that cannot be started stops a host from becoming complete: no stage would start it before the next upgrade.
func TestNoHostIsFinishedWithoutItsGuard(t *testing.T) {
	t.Parallel()
	b := controlPlane(t, "cp-2")
	b.command("nft", "")
	b.command("curl", "")
	b.must("mark no")
	b.command("systemctl", `case "$1" in restart) exit 1 ;; esac`)
	if r := b.run("mark yes"); r.code == 0 || !strings.Contains(b.read("etc/kubeone/marker"), "complete=no") {
		t.Errorf("%+v, and the marker is\n%s", r, b.read("etc/kubeone/marker"))
	}
	b.command("systemctl", "")
	b.must("mark yes")
	if marker := b.read("etc/kubeone/marker"); !strings.Contains(marker, "complete=yes") {
		t.Errorf("the marker is\n%s", marker)
	}
}

func TestAFailedStageLeavesTheHostUnfinished(t *testing.T) {
	t.Parallel()
	for stage, name := range map[string]string{
		"stage_init":        "cp-1",
		"stage_join_finish": "cp-2",
		"stage_join_worker": "w-1",
	} {
		b := controlPlane(t, name)
		b.command("kubeadm", "echo it went wrong >&2; exit 1")
		if r := b.run(stage); r.code == 0 {
			t.Errorf("%s succeeds", stage)
		}
		if marker := b.read("etc/kubeone/marker"); !strings.Contains(marker, "complete=no") {
			t.Errorf("%s: the marker is\n%s", stage, marker)
		}
	}
}

func TestJoinOfAControlPlaneHost(t *testing.T) {
	t.Parallel()
	b := controlPlane(t, "cp-2")
	b.must("stage_join_prepare")
	want := []string{
		"join phase preflight", "join phase control-plane-prepare certs", "join phase control-plane-prepare kubeconfig",
		"version -o short", "init phase kubeconfig kubelet",
		"join phase kubelet-start",
	}
	if diff := cmp.Diff(want, b.phases()); diff != "" {
		t.Error(diff)
	}
	b.mustAsk("https://lb.example.com:6443") // its own API server is not up yet
	b.must("stage_join_etcd")
	if diff := cmp.Diff([]string{"join phase etcd-join"}, b.phases()); diff != "" {
		t.Error(diff)
	}
	// What is left is of the member that it was before.
	b.must(`UPGRADING=@ROOT@/upgrading; : >"$UPGRADING"; stage_join_finish; [ ! -e "$UPGRADING" ]`)
	want = []string{
		"join phase control-plane-prepare control-plane", "init phase kubelet-finalize enable-client-cert-rotation",
		"join phase control-plane-join mark-control-plane",
	}
	if diff := cmp.Diff(want, b.phases()); diff != "" {
		t.Error(diff)
	}
	b.mustAsk("https://10.0.0.2:6443")
	if marker := b.read("etc/kubeone/marker"); !strings.Contains(marker, "complete=yes") {
		t.Errorf("the marker is\n%s", marker)
	}
}

// mustAsk checks which API server the kubelet asks.
func (b *box) mustAsk(server string) {
	b.t.Helper()
	if got := b.read("etc/kubernetes/kubelet.conf"); !strings.Contains(got, "    server: "+server+"\n") {
		b.t.Errorf("the kubelet does not ask %s:\n%s", server, got)
	}
}

func TestAJoinGoesOnWhereItEnded(t *testing.T) {
	t.Parallel()
	b := controlPlane(t, "cp-2")
	b.write("etc/kubernetes/kubelet.conf", "server: https://lb.example.com:6443\n")
	b.write("var/lib/kubelet/config.yaml", "kind: KubeletConfiguration\n")
	b.write("etc/kubernetes/manifests/etcd.yaml", "")
	b.write("etc/kubernetes/bootstrap-kubelet.conf", "a token")
	b.must("stage_join_prepare")
	if b.read("etc/kubernetes/bootstrap-kubelet.conf") != "" {
		t.Error("the token is still on the host")
	}
	// The settings of before may be refused, or of another manifest; and a Node that kubeadm could read is not needed.
	if phases := b.phases(); !slices.Contains(phases, "init phase kubelet-start") ||
		slices.ContainsFunc(phases, func(p string) bool { return strings.Contains(p, "upgrade node") }) {
		t.Errorf("the kubelet's settings are not written anew: %q", phases)
	}
	if got := b.must("stage_join_etcd"); got != "this host's etcd member votes already" {
		t.Errorf("printed %q", got)
	}
	if phases := b.phases(); len(phases) > 0 {
		t.Errorf("kubeadm is called for %q", phases)
	}
}

func TestAKubeletThatRefusesItsSettingsEndsAJoinBeforeEtcdHasAMemberMore(t *testing.T) {
	t.Parallel()
	b := controlPlane(t, "cp-2")
	b.command("curl", "exit 7")
	b.command("systemctl", `case "$*" in *NRestarts*) echo 3 ;; esac`)
	b.command("journalctl", `echo 'err="failed to validate kubelet configuration"'`)
	b.fails("stage_join_prepare", "the kubelet does not start: err=\"failed to validate kubelet configuration\"")
}

// A member that votes has joined, whatever kubeadm still waits for.
func TestAJoinOfEtcdEndsWhenTheMemberVotes(t *testing.T) {
	t.Parallel()
	b := controlPlane(t, "cp-2")
	b.command("kubeadm", "mkdir -p '"+b.path("etc/kubernetes/manifests")+"'; : >'"+
		b.path("etc/kubernetes/manifests/etcd.yaml")+"'; exec sleep 1000")
	b.must("stage_join_etcd; ! kill -0 \"$joining\" 2>/dev/null")
	if got := b.etcdNeeds(); got != "/var/lib/etcd/member/wal" {
		t.Errorf("etcd needs %s", got)
	}
}

func TestAJoinOfEtcdFailsWithKubeadm(t *testing.T) {
	t.Parallel()
	b := controlPlane(t, "cp-2")
	b.command("curl", "exit 7")
	b.command("kubeadm", "echo no quorum >&2; exit 1")
	if r := b.run("stage_join_etcd"); r.code == 0 || !strings.Contains(r.err, "no quorum") ||
		!strings.Contains(r.err, "has not joined") {
		t.Errorf("%+v", r)
	}
}

// kubeletCalls returns the calls of systemctl for the kubelet, and of kubeadm, since the last time.
func (b *box) kubeletCalls() []string {
	var out []string
	for _, call := range b.calls() {
		call, _, _ = strings.Cut(call, " --config")
		if strings.HasPrefix(call, "kubeadm ") ||
			strings.HasPrefix(call, "systemctl ") && strings.HasSuffix(call, " kubelet") {
			out = append(out, call)
		}
	}
	return out
}

func TestAWorkerJoinsOnce(t *testing.T) {
	t.Parallel()
	const token, certificate = "etc/kubernetes/bootstrap-kubelet.conf", "var/lib/kubelet/pki/kubelet-client-current.pem"
	b := controlPlane(t, "w-1")
	joins := []string{"kubeadm join phase preflight", "kubeadm join phase kubelet-start", "systemctl restart kubelet"}
	step := func(what string, want ...string) {
		t.Helper()
		b.must("stage_join_worker")
		if diff := cmp.Diff(want, b.kubeletCalls()); diff != "" {
			t.Errorf("%s:\n%s", what, diff)
		}
		if _, err := os.Stat(b.path(token)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the token is still on the host: %v", what, err)
		}
	}
	const again = "kubeadm upgrade node phase kubelet-config --patches /etc/kubeone/patches"
	step("a bare host", joins...)
	step("once more", again, "systemctl restart kubelet")
	b.write("etc/kubernetes/kubelet.conf", "    server: https://old.example.com:6443\n")
	step("begun by another endpoint", "systemctl stop kubelet", again, "systemctl restart kubelet")
	b.mustAsk("https://lb.example.com:6443")
	b.write(token, "")
	step("killed before the kubelet was started anew", again, "systemctl restart kubelet", "systemctl restart kubelet")
	b.command("kubectl", `case "$*" in *"get --raw /api/v1/nodes/w-1") exit 1 ;; esac`)
	step("its Node is gone", "kubeadm join phase kubelet-start", "systemctl restart kubelet",
		"systemctl restart kubelet")
	b.command("kubectl", "")
	if err := os.Remove(b.path(certificate)); err != nil {
		t.Fatal(err)
	}
	const key = "var/lib/kubelet/pki/kubelet-client.key.tmp"
	b.write(token, "a token of another run")
	b.write(key, "with which that run's kubelet has asked")
	step("killed before the kubelet had a certificate", joins...)
	if _, err := os.Stat(b.path(key)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the kubelet would wait for the request of another run: %v", err)
	}
	if err := os.Remove(b.path("etc/kubernetes/kubelet.conf")); err != nil {
		t.Fatal(err)
	}
	b.write(certificate, "of another life")
	step("a certificate is left of another life", joins...)
	if b.read(certificate) != "new\n" {
		t.Error("the kubelet got the certificate of another life")
	}
	for _, name := range []string{certificate, "etc/kubernetes/kubelet.conf", "etc/kubernetes/pki/ca.crt"} {
		b.write(name, "")
	}
	step("a power cut left empty files", joins...)
	if _, err := os.Stat(b.path("etc/kubernetes/pki/ca.crt")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("kubeadm would take an empty CA for the cluster's: %v", err)
	}
}

// keys writes whole key pairs, authorities and what they signed, as kubeadm makes them.
func (b *box) keys() []string {
	var files []string
	for _, name := range []string{"ca", "etcd/ca", "front-proxy-ca", "apiserver", "etcd/peer", "sa"} {
		public := name + ".crt"
		if name == "sa" {
			public = "sa.pub"
		}
		files = append(files, public, name+".key")
	}
	for _, file := range files {
		b.write("etc/kubernetes/pki/"+file, file)
	}
	return files
}

// kubeadm takes a file that is there for its own: what it had half written would stop it for ever.
func TestWhatAPowerCutLeftHalfWrittenIsWrittenAgain(t *testing.T) {
	t.Parallel()
	joining := func(t *testing.T) *box {
		t.Helper()
		b := controlPlane(t, "cp-2")
		b.keys()
		b.write("etc/kubernetes/admin.conf", "kind: Config\n")
		return b
	}
	there := func(b *box, name string) bool {
		_, err := os.Stat(b.path("etc/kubernetes/" + name))
		return err == nil
	}
	for name, gone := range map[string][]string{
		"pki/apiserver.crt": {"pki/apiserver.key"}, "pki/etcd/peer.key": {"pki/etcd/peer.crt"}, "admin.conf": nil,
	} {
		for _, half := range []string{"empty", "missing"} {
			b := joining(t)
			if b.write("etc/kubernetes/"+name, ""); half == "missing" {
				b.must("rm @ROOT@/etc/kubernetes/" + name)
			}
			b.must("drop_halves")
			for _, file := range append(gone, name) {
				if there(b, file) {
					t.Errorf("%s %s: %s is still there", half, name, file)
				}
			}
			if !there(b, "pki/ca.crt") || !there(b, "pki/etcd/ca.key") || !there(b, "pki/sa.pub") ||
				name != "admin.conf" && !there(b, "admin.conf") {
				t.Errorf("%s %s: more than the pair is gone: %v", half, name, b.tree("etc/kubernetes"))
			}
		}
	}
	b := joining(t)
	before := b.tree("etc/kubernetes")
	b.must("drop_halves; drop_half_authorities")
	if diff := cmp.Diff(before, b.tree("etc/kubernetes")); diff != "" {
		t.Errorf("what is whole has changed:\n%s", diff)
	}
	b.write("etc/kubernetes/pki/etcd/ca.crt", "")
	b.write("var/lib/etcd/member/snap/db", "data")
	if b.must("drop_half_authorities"); !there(b, "pki/ca.key") {
		t.Error("the keys of a cluster that has begun are gone")
	}
}

// What an authority has signed is worth nothing when kubeadm makes another one; what is not kubeadm's stays.
func TestAnInstallationThatWasKilledInTheMiddleOfItsKeysBeginsAnew(t *testing.T) {
	t.Parallel()
	const own, certificate = "etc/kubernetes/pki/encryption.yaml", "var/lib/kubelet/pki/kubelet-client-current.pem"
	b := controlPlane(t, "cp-1")
	gone := []string{"etc/kubernetes/admin.conf", certificate}
	for _, name := range b.keys() {
		gone = append(gone, "etc/kubernetes/pki/"+name)
	}
	for _, name := range append([]string{own, "etc/kubernetes/manifests/etcd.yaml"}, gone...) {
		b.write(name, name)
	}
	b.write("etc/kubernetes/pki/etcd/ca.crt", "")
	b.must("stage_init")
	for _, name := range gone {
		if _, err := os.Stat(b.path(name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there: %v", name, err)
		}
	}
	if b.read(own) != own || len(b.tree("var/lib/kubeone-old")) != len(gone) {
		t.Errorf("what is kept: %q, and aside %v", b.read(own), b.tree("var/lib/kubeone-old"))
	}
	if init := b.phases(); len(init) != 2 || init[0] != "init phase certs all" {
		t.Errorf("kubeadm is called for %q", init)
	}
	// Nothing of the installation is there, and the operator has brought a key: that is no half.
	bare := controlPlane(t, "cp-1")
	bare.write(own, own)
	bare.must("stage_init")
	if _, err := os.Stat(bare.path("var/lib/kubeone-old")); bare.read(own) != own || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a bare host: %q, and something is aside: %v", bare.read(own), err)
	}
}

func TestCAsOfAnotherClusterAreRefused(t *testing.T) {
	t.Parallel()
	b := controlPlane(t, "cp-2")
	for _, name := range []string{"ca.crt", "ca.key", "sa.key", "etcd/ca.crt", "etcd/ca.key"} {
		b.write("pki/"+name, name+" of this cluster")
	}
	b.must("tar -cf @ROOT@/run/kubeone/secrets/pki.tar -C @ROOT@/pki ca.crt ca.key sa.key etcd")
	b.must("stage_pki")
	b.must("stage_pki") // the same again is right
	b.write("etc/kubernetes/pki/ca.crt", "")
	b.must("stage_pki") // a power cut left it empty
	if b.read("etc/kubernetes/pki/ca.crt") != "ca.crt of this cluster" ||
		b.read("etc/kubernetes/pki.kubeone/ca.crt") != "" {
		t.Errorf("the CA is %q", b.read("etc/kubernetes/pki/ca.crt"))
	}
	for name, mode := range map[string]os.FileMode{"ca.crt": 0o644, "ca.key": 0o600, "etcd/ca.key": 0o600} {
		if info, err := os.Stat(b.path("etc/kubernetes/pki/" + name)); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	// This host has what the peer still has to drop, but not the keys that it was to sign with before.
	b.write("etc/kubernetes/pki/next/etcd-ca.key", "former")
	b.write("etc/kubeone/rotation", "etcd learn\n")
	b.must("stage_pki")
	if got := b.must(`[ -e "$NEXT" ] || [ -e "$ROTATION" ] || echo gone`); got != "gone" {
		t.Errorf("the host has notes of before: %q", got)
	}
	b.write("pki/rotation", "etcd used\n")
	b.must("tar -cf @ROOT@/run/kubeone/secrets/pki.tar -C @ROOT@/pki ca.crt ca.key sa.key etcd rotation; stage_pki")
	if got := b.read("etc/kubeone/rotation"); got != "etcd used\n" {
		t.Errorf("the host notes %q", got)
	}
	b.write("etc/kubernetes/pki/ca.crt", "another")
	b.fails("stage_pki", "/etc/kubernetes/pki/ca.crt is another cluster's CA")
	if b.read("etc/kubernetes/pki/ca.crt") != "another" {
		t.Error("the other CA was overwritten")
	}
}

func TestUnitsAreStartedAgain(t *testing.T) {
	t.Parallel()
	b := controlPlane(t, "w-1")
	b.must("UNITS='containerd kubelet'; stage_restart_units")
	calls := b.calls()
	for _, want := range []string{
		"systemctl restart containerd", "systemctl -q enable kubelet", "systemctl restart kubelet",
	} {
		if !slices.Contains(calls, want) {
			t.Errorf("no %q in %q", want, calls)
		}
	}
	b.command("systemctl", `[ "$1" != restart ]`)
	b.fails("UNITS=kubelet; stage_restart_units", "kubelet does not start: the last line of the journal")
}

func TestImagesAreCheckedAgainstTheirDigests(t *testing.T) {
	t.Parallel()
	b := controlPlane(t, "w-1")
	b.command("ctr", `case "$*" in *"images ls"*) printf 'REF TYPE DIGEST\n%s t sha256:pause:3.10.1\n%s t `+
		`sha256:coredns/coredns:v1.14.2\n' registry.k8s.io/pause:3.10.1 registry.k8s.io/coredns/coredns:v1.14.2 `+
		`;; esac`)
	b.must("stage_images")
	if calls := strings.Join(b.calls(), "\n"); strings.Contains(calls, "pull") {
		t.Errorf("what is there is pulled again:\n%s", calls)
	}
	b.must("stage_images() { pull_images; }; images_now() { :; }; stage_images")
	calls := strings.Join(b.calls(), "\n")
	for _, want := range []string{
		"images pull --hosts-dir /etc/containerd/certs.d registry.k8s.io/pause@sha256:pause:3.10.1",
		"images tag --force registry.k8s.io/pause@sha256:pause:3.10.1 registry.k8s.io/pause:3.10.1",
	} {
		if !strings.Contains(calls, want) {
			t.Errorf("no %q in\n%s", want, calls)
		}
	}
	b.command("ctr", `case "$*" in *"images ls"*) printf 'REF TYPE DIGEST\n%s t sha256:other\n' `+
		`registry.k8s.io/pause:3.10.1 ;; esac`)
	b.fails("stage_images", "image registry.k8s.io/pause:3.10.1 is not in the runtime with digest sha256:pause:3.10.1")
	b.command("ctr", `case "$*" in *pull*) exit 1 ;; esac`)
	b.fails("stage_images", "cannot pull registry.k8s.io/pause:3.10.1")
}

// The note is of what is there: it comes after the images, stays beside other notes, and goes with the setting.
func TestWhereTheImageOfDNSIsIsNoted(t *testing.T) {
	t.Parallel()
	b := controlPlane(t, "w-1")
	b.script += "\nIMAGES='r.example.com/coredns:v1 sha256:x r.example.com/coredns:v1'\n"
	b.write("etc/kubeone/digests", "kubelet aa\n")
	b.command("ctr", `case "$*" in *"images ls"*) ;; esac`)
	b.fails("DNS_IMAGE=bb; stage_images", "image r.example.com/coredns:v1 is not in the runtime")
	b.command("ctr", `case "$*" in *"images ls"*) printf 'REF TYPE DIGEST\n%s t sha256:x\n' `+
		`r.example.com/coredns:v1 ;; esac`)
	for _, c := range []struct{ image, want string }{
		{"", "kubelet aa\n"}, {"bb", "kubelet aa\ndns-image bb\n"}, {"cc", "kubelet aa\ndns-image cc\n"},
		{"cc", "kubelet aa\ndns-image cc\n"}, {"", "kubelet aa\n"},
	} {
		b.must("DNS_IMAGE=" + c.image + "; stage_images")
		if diff := cmp.Diff(c.want, b.read("etc/kubeone/digests")); diff != "" {
			t.Errorf("%q: %s", c.image, diff)
		}
	}
}

// Images of workloads are pinned, because no registry may have them. A note of images that may be unpinned is removed.
func TestImagesOfWorkloadsArePinnedAndNoted(t *testing.T) {
	t.Parallel()
	b := controlPlane(t, "w-1")
	b.script += "\nIMAGES='example.com/app:1 sha256:x example.com/app:1'\n"
	b.write("etc/kubeone/digests", "kubelet aa\naddon-images bb\n")
	b.command("ctr", `case "$*" in *"images ls"*) printf 'REF TYPE DIGEST\n%s t sha256:x\n' example.com/app:1 ;; esac`)
	const pin = "images label example.com/app:1 io.cri-containerd.pinned=pinned"
	b.must("stage_images")
	if calls := strings.Join(b.calls(), "\n"); strings.Contains(calls, pin) {
		t.Errorf("pinned without images of workloads:\n%s", calls)
	}
	for _, c := range []struct{ workloads, want string }{
		{"cc", "kubelet aa\naddon-images bb\nworkload-images cc\n"},
		{"dd", "kubelet aa\naddon-images bb\nworkload-images dd\n"}, {"", "kubelet aa\naddon-images bb\n"},
	} {
		b.must("WORKLOAD_IMAGES=" + c.workloads + "; stage_images")
		if diff := cmp.Diff(c.want, b.read("etc/kubeone/digests")); diff != "" {
			t.Errorf("%q: %s", c.workloads, diff)
		}
	}
	if calls := strings.Join(b.calls(), "\n"); !strings.Contains(calls, pin) {
		t.Errorf("not pinned:\n%s", calls)
	}
}

// An operator who continues with kubeadm alone finds the images that the cluster runs.
func TestKubeadmIsToldOfTheImagesThatItApplies(t *testing.T) {
	t.Parallel()
	b := controlPlane(t, "cp-1")
	b.must("administer() { :; }; stage_system_addons")
	calls := strings.Join(b.calls(), "\n")
	told := strings.Index(calls, "kubeadm init phase upload-config kubeadm --config")
	if told < 0 || strings.Index(calls, "kubeadm init phase addon all --config") < told {
		t.Error(calls)
	}
}

func TestUploadedImagesAreImportedAndRemoved(t *testing.T) {
	t.Parallel()
	b := controlPlane(t, "w-1")
	blob := b.uploaded("a layer")
	b.script += "\nPUSHED=yes\nIMAGES='example.com/pause:1 sha256:x example.com/pause:1'\nIMAGE_BLOBS=blobs/sha256/" +
		blob + "\n"
	b.command("ctr", `case "$*" in
	*"images import"*) tar -tf - >'`+b.root+`/imported' ;;
	*"images ls"*) [ ! -f '`+b.root+`/imported' ] || printf 'REF TYPE DIGEST\nexample.com/pause:1 t sha256:x\n' ;;
	esac`)
	b.must("stage_images")
	if diff := cmp.Diff("oci-layout\nindex.json\nblobs/sha256/"+blob+"\n", b.read("imported")); diff != "" {
		t.Error(diff)
	}
	if left := b.tree("var/lib/kubeone/artifacts"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	b.uploaded("a layer")
	b.command("ctr", `case "$*" in *"images import"*) cat >/dev/null; exit 1 ;; esac`)
	b.fails("stage_images", "containerd does not take the images")
}

// installed is what a host of ours has, and beside it what is the operator's.
func installed(t *testing.T) (b *box, theirs []string) {
	b = controlPlane(t, "cp-1")
	for _, name := range []string{
		"etc/kubernetes/pki/ca.key", "var/lib/etcd/member/db", "var/lib/kubelet/config.yaml",
		"etc/cni/net.d/10-flannel.conflist",
		"etc/systemd/system/kubelet.service", "etc/containerd/config.toml", "run/kubeone/secrets/token",
		"etc/sysctl.d/99-zz-kubeone.conf",
	} {
		b.write(name, name)
	}
	theirs = []string{
		"etc/containerd/conf.d/own.toml", "etc/default/kubelet", "etc/systemd/system/own.service",
		"etc/systemd/system/kubelet.service.d/own.conf", "usr/local/bin/kubectl",
	}
	for _, name := range theirs {
		b.write(name, name)
	}
	b.write("etc/fstab", "# kubeone: swap\n")
	return b, theirs
}

func TestResetRemovesOursAndLeavesTheirs(t *testing.T) {
	t.Parallel()
	b, theirs := installed(t)
	b.must("remove_files; stage_purge")
	left := b.tree("etc", "var", "run", "usr")
	if b.read("etc/fstab") != "swap\n" {
		t.Errorf("fstab is %q", b.read("etc/fstab"))
	}
	delete(left, "/etc/fstab")
	for _, name := range theirs {
		if left["/"+name] == "" {
			t.Errorf("%s is gone", name)
		}
		delete(left, "/"+name)
	}
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestResetKeepsEtcdAndThePKI(t *testing.T) {
	t.Parallel()
	b, _ := installed(t)
	b.must("remove_files")
	if diff := cmp.Diff([]string{"etc-kubernetes-pki-reset", "var-lib-etcd-reset"}, b.aside()); diff != "" {
		t.Error(diff)
	}
	b.must("remove_files") // and once more, as after a kill: nothing is kept twice
	if diff := cmp.Diff([]string{"etc-kubernetes-pki-reset", "var-lib-etcd-reset"}, b.aside()); diff != "" {
		t.Error(diff)
	}
	// No recovery takes it for what a recovery has moved away.
	b.must("unfence; [ ! -e @ROOT@/etc/kubernetes ] && [ ! -e @ROOT@/var/lib/etcd ]")
	b.must("stage_purge; [ ! -e @ROOT@/var/lib/kubeone-old ]")
}

// A directory that is a disk of its own, or a link, cannot be deleted: it is emptied, and etcd's data is kept on that
// disk.
func TestResetLeavesMountPointsAndLinks(t *testing.T) {
	t.Parallel()
	b, _ := installed(t)
	b.write("var/lib/containerd/io.containerd/db", "images")
	b.write("var/lib/etcd/lost+found/1", "theirs")
	b.write("srv/kubelet/config.yaml", "kubelet")
	b.must("rm -rf @ROOT@/var/lib/kubelet; ln -s @ROOT@/srv/kubelet @ROOT@/var/lib/kubelet")
	mounts := ""
	for _, dir := range []string{"var/lib/etcd", "var/lib/containerd"} {
		mounts += "36 35 8:16 / " + b.path(dir) + " rw - ext4 /dev/sdb rw\n"
	}
	b.write("proc/self/mountinfo", mounts)
	busy := "rm() { for last; do :; done; case $last in @ROOT@/var/lib/etcd | @ROOT@/var/lib/containerd | " +
		"@ROOT@/var/lib/kubelet) exit 16 ;; esac; command rm \"$@\"; }\n"
	b.must(busy + "remove_files")
	b.must(busy + "remove_files")
	kept, err := filepath.Glob(b.path("var/lib/etcd/kubeone-reset-*/member/db"))
	if err != nil || len(kept) != 1 {
		t.Errorf("%v, %v: %v", kept, err, b.tree("var/lib/etcd"))
	}
	if b.read("var/lib/etcd/lost+found/1") != "theirs" {
		t.Error("what the file system keeps is gone")
	}
	b.must("[ ! -e @ROOT@/var/lib/etcd/member ]")
	if left := b.tree("var/lib/containerd", "srv/kubelet"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if target, err := os.Readlink(b.path("var/lib/kubelet")); err != nil || target == "" {
		t.Errorf("the link is gone: %v", err)
	}
	b.must(busy + "stage_purge")
	if kept, _ := filepath.Glob(b.path("var/lib/etcd/kubeone-*")); len(kept) > 0 {
		t.Errorf("left behind: %v", kept)
	}
}

func TestAMemberIsNotPurged(t *testing.T) {
	t.Parallel()
	b, _ := installed(t)
	b.write("etc/kubeone/marker", "cluster=alpha\n")
	b.fails("stage_purge", "reset it first")
}

func TestUnknownStageIsRefused(t *testing.T) {
	t.Parallel()
	b := newBox(t, input("w-1"))
	main, err := stages.ReadFile("sh/main.sh")
	if err != nil {
		t.Fatal(err)
	}
	b.script += "\nstage_pki() { say right; }\n"
	if got := b.must("set -- pki\n" + string(main)); got != "right" {
		t.Errorf("printed %q", got)
	}
	b.fails("set -- everything\n"+string(main), "no such stage: everything")
	for _, odd := range []string{"", "''", "'pki; reboot'", "../pki"} {
		b.fails("set -- "+odd+"\n"+string(main), "usage: node.sh")
	}
}

// A member that has just started takes itself for a voter, until it has heard from the others.
func TestALearnerDoesNotVoteYet(t *testing.T) {
	t.Parallel()
	b := controlPlane(t, "cp-2")
	b.write("etc/kubernetes/manifests/etcd.yaml", "")
	b.command("curl", `cd '`+b.root+`'; case "$*" in *:2381/readyz*) [ ! -f heard ] || exit 22; : >heard ;; esac`)
	if r := b.run("etcd_votes"); r.code == 0 {
		t.Error("a learner votes")
	}
}

func TestAJoinGoesOnForAnotherEndpointThanItBeganFor(t *testing.T) {
	t.Parallel()
	b := controlPlane(t, "cp-2")
	b.write("etc/kubernetes/kubelet.conf", "    server: https://gone.example.com:6443\n")
	b.write("var/lib/kubelet/config.yaml", "kind: KubeletConfiguration\n")
	b.write("etc/kubernetes/manifests/kube-apiserver.yaml", "")
	made := []string{
		"etc/kubernetes/admin.conf", "etc/kubernetes/pki/apiserver.crt", "etc/kubernetes/pki/apiserver.key",
	}
	for _, file := range made {
		b.write(file, "for gone.example.com")
	}
	b.must("stage_join_prepare")
	b.mustAsk("https://lb.example.com:6443")
	for _, file := range made {
		if strings.Contains(b.read(file), "gone") {
			t.Errorf("%s is still for the other endpoint", file)
		}
	}
}

// What the rest of a join reads in the cluster is what the manifest says, and that alone.
func TestAJoinPublishesTheManifestsConfiguration(t *testing.T) {
	t.Parallel()
	b := controlPlane(t, "cp-2")
	b.command("kubeadm", "echo v1.36.2")
	text := b.must("publish_configuration; cat \"$SECRETS/kubeadm-plain.yaml\"")
	if !strings.HasPrefix(text, "apiServer:\n") || !strings.Contains(text, "\nkind: ClusterConfiguration\n") ||
		!strings.Contains(text, "\nkubernetesVersion: v1.36.2\n") || strings.Contains(text, "---") ||
		strings.Count(text, "\nkind: ") != 1 {
		t.Errorf("it would say\n%s", text)
	}
	calls := strings.Join(b.calls(), "\n")
	if !strings.Contains(calls, "create configmap kubeadm-config --from-file ClusterConfiguration=") ||
		!strings.Contains(calls, "-n kube-system patch configmap kubeadm-config --type merge ") {
		t.Error(calls)
	}
}
