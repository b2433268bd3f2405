package script

import (
	"encoding/base64"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// rotating returns a running control-plane host to which these files of authorities were uploaded.
func rotating(t *testing.T, brought ...string) *box {
	t.Helper()
	b := newBox(t, input("cp-1"))
	b.script += strings.ReplaceAll(`
readyz() { :; }
etcd_votes() { :; }
kubelet_healthy() { :; }
others_vote() { :; }
ended() { :; }
await_api_server() { :; }
await_pod() { printf 'waits for %s\n' "$1" >>"@ROOT@/calls"; }
containers_of() { :; }
end_pod() { printf 'ends %s, with the note %s\n' "$1" "$(tr '\n' ',' <"$ROTATION")" >>"@ROOT@/calls"; }
give_up_leases() { :; }
restart_kubelet() { printf 'kubelet\n' >>"@ROOT@/calls"; }
plain_config() { printf 'config\n'; }
kubeadm() { printf 'kubeadm %s\n' "$*" >>"@ROOT@/calls"; }
`, "@ROOT@", b.root)
	b.command("df", `printf 'head\nx 1 1 99999999 1 /\n'`)
	b.command("awk", `while read -r a b c d e; do last=$d; done; printf '%s\n' "$last"`)
	b.command("systemctl", ":")
	for _, name := range []string{"etcd/ca", "front-proxy-ca", "sa"} {
		b.write("etc/kubernetes/pki/"+name+".key", "old key")
	}
	for _, name := range []string{"etcd/ca.crt", "front-proxy-ca.crt", "sa.pub"} {
		b.write("etc/kubernetes/pki/"+name, "old")
	}
	b.pack(brought...)
	return b
}

// pack brings files of these names.
func (b *box) pack(names ...string) {
	b.t.Helper()
	for _, name := range names {
		b.write("bring/"+name, "new "+name)
	}
	b.tar(names...)
}

// tar brings files that are there already.
func (b *box) tar(names ...string) {
	b.t.Helper()
	b.mkdir("run/kubeone/secrets")
	if len(names) == 0 {
		return
	}
	cmd := exec.CommandContext(b.t.Context(), "tar",
		append([]string{"-C", b.path("bring"), "-cf", b.path("run/kubeone/secrets/authorities.tar")}, names...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		b.t.Fatalf("%v: %s", err, out)
	}
}

// deeds are the calls since the last time, without those that only look at the disk.
func (b *box) deeds() []string {
	b.t.Helper()
	return slices.DeleteFunc(b.calls(), func(c string) bool {
		return strings.HasPrefix(c, "df ") || strings.HasPrefix(c, "awk ")
	})
}

func (b *box) pki(names ...string) []string {
	out := make([]string, 0, len(names))
	for _, name := range names {
		out = append(out, b.read("etc/kubernetes/pki/"+name))
	}
	return out
}

func TestThePhasesOfARotation(t *testing.T) {
	t.Parallel()
	b := rotating(t, "etcd/ca.crt", "next/etcd-ca.crt", "next/etcd-ca.key", "sa.pub", "next/sa.pub", "next/sa.key")
	b.must("ROTATE_LEARN='etcd service-account'; stage_rotate_learn")
	if diff := cmp.Diff([]string{
		"systemctl stop kubelet",
		"ends etcd, with the note etcd learn,service-account learn,",
		"ends kube-apiserver, with the note etcd learn,service-account learn,",
		"ends kube-controller-manager, with the note etcd learn,service-account learn,",
		"kubelet", "waits for etcd", "waits for kube-apiserver", "waits for kube-controller-manager",
	}, b.deeds()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{
		"new etcd/ca.crt", "old key", "new next/etcd-ca.key", "new sa.pub", "old key", "new next/sa.pub", "old", "",
	}, b.pki("etcd/ca.crt", "etcd/ca.key", "next/etcd-ca.key", "sa.pub", "sa.key", "next/sa.pub", "front-proxy-ca.crt",
		"../../kubeone/rotation")); diff != "" {
		t.Error(diff)
	}
	for path, want := range map[string]os.FileMode{"next/sa.key": 0o600, "next/sa.pub": 0o644, "etcd/ca.crt": 0o644} {
		if info, err := os.Stat(b.path("etc/kubernetes/pki/" + path)); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}

	b.pack("etcd/ca.crt", "etcd/ca.key", "sa.pub", "sa.key")
	b.write("etc/kubeone/rotation", "front-proxy forget\netcd use\n") // of another, and of this one, cut off
	b.must("ROTATE_USE='etcd service-account'; stage_rotate_use")
	if diff := cmp.Diff([]string{
		"kubeadm certs renew etcd-server --config config", "kubeadm certs renew etcd-peer --config config",
		"kubeadm certs renew etcd-healthcheck-client --config config",
		"kubeadm certs renew apiserver-etcd-client --config config",
	}, b.deeds()[:4]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"new etcd/ca.key", "new sa.key", "", "",
		"front-proxy forget\netcd used\nservice-account used\n"}, b.pki("etcd/ca.key",
		"sa.key", "next/etcd-ca.key", "next/sa.key", "../../kubeone/rotation")); diff != "" {
		t.Error(diff)
	}

	b.pack("front-proxy-ca.crt")
	b.write("etc/kubeone/rotation", "front-proxy used\n")
	b.must("ROTATE_FORGET=front-proxy; stage_rotate_forget")
	if diff := cmp.Diff([]string{
		"systemctl stop kubelet",
		"ends kube-apiserver, with the note front-proxy forget,", "kubelet", "waits for kube-apiserver",
	}, b.deeds()); diff != "" {
		t.Error(diff)
	}
	if got := b.must("[ -e \"$ROTATION\" ] || [ -e \"$NEXT\" ] || echo ended"); got != "ended" {
		t.Errorf("a note or a directory is left: %q", got)
	}
}

// A phase that fails on its way stays noted, and what would sign with what is half there does not.
func TestARotationThatWasCutOffIsNoted(t *testing.T) {
	t.Parallel()
	b := rotating(t, "etcd/ca.crt", "etcd/ca.key")
	b.fails("kubeadm() { die odd; }; ROTATE_USE=etcd; stage_rotate_use", "odd")
	if got := b.read("etc/kubeone/rotation"); got != "etcd use\n" {
		t.Errorf("noted: %q", got)
	}
	// One that was cut off between the halves: whatever is signed next is in the name of the key that signs.
	b.write("etc/kubernetes/pki/next/etcd-ca.key", "new etcd/ca.key")
	b.write("etc/kubernetes/pki/next/etcd-ca.crt", "new\n")
	b.write("etc/kubernetes/pki/etcd/ca.crt", "old\nnew\n")
	for range 2 {
		b.must("halves_agree")
		if got := b.read("etc/kubernetes/pki/etcd/ca.crt"); got != "new\nold\nnew\n" {
			t.Errorf("the certificates are %q", got)
		}
	}
	b.write("etc/kubernetes/pki/etcd/ca.key", "old key")
	b.write("etc/kubernetes/pki/etcd/ca.crt", "old\nnew\n")
	b.must("halves_agree")
	if got := b.read("etc/kubernetes/pki/etcd/ca.crt"); got != "old\nnew\n" {
		t.Errorf("the certificates are %q", got)
	}
}

func TestOnlyWhatThePhaseHasIsBrought(t *testing.T) {
	t.Parallel()
	for name, files := range map[string][]string{
		"one more": {"etcd/ca.crt", "etcd/ca.key", "ca.key"},
		"one less": {"etcd/ca.crt"},
		"another":  {"etcd/ca.crt", "sa.key"},
	} {
		b := rotating(t, files...)
		b.fails("ROTATE_USE=etcd; stage_rotate_use", "authorities.tar is not what the plan says")
		if got := b.pki("etcd/ca.crt", "etcd/ca.key", "../../kubeone/rotation"); !cmp.Equal(got,
			[]string{"old", "old key", ""}) {
			t.Errorf("%s: %q", name, got)
		}
	}
	b := rotating(t, "etcd/ca.crt")
	b.fails("ROTATE_LEARN=odd; stage_rotate_learn", "no such authority: odd")
}

func TestTokensOfPodsAreMadeAnew(t *testing.T) {
	t.Parallel()
	token := func(key string) string {
		return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"RS256","kid":"`+key+`"}`)) + ".body.signature"
	}
	b := rotating(t, "etcd/ca.crt")
	b.script += "\nready_beat() { :; }\nready_since() { :; }\npassed() { [ \"$1\" -gt 75 ]; }\n"
	b.write("run/kubeone/secrets/token-keys", "old-KEY_1\nolder\n")
	const volume = "var/lib/kubelet/pods/1/volumes/kubernetes.io~projected/kube-api-access/"
	b.write(volume+"token", token("new"))
	b.write(volume+"ca.crt", "eyJ no token")
	b.write("var/lib/kubelet/pods/2/volumes/kubernetes.io~projected/other/deep", token("somebody's"))
	b.must("stage_renew_tokens")
	if diff := cmp.Diff([]string{
		"systemctl stop kubelet",
		"ends kube-controller-manager, with the note ", "kubelet", "waits for kube-controller-manager",
	}, b.deeds()); diff != "" {
		t.Error(diff)
	}
	b.must("ROLE=worker; stage_renew_tokens")
	if diff := cmp.Diff([]string{"kubelet"}, b.deeds()); diff != "" {
		t.Error(diff)
	}
	b.write(volume+"token", token("old-KEY_1"))
	b.fails("ROLE=worker; wait_for() { shift; what=$1; shift; \"$@\" || die \"no $what\"; }; stage_renew_tokens",
		"no pods to have new tokens")
	b.write("run/kubeone/secrets/token-keys", "a; reboot\n")
	b.fails("ROLE=worker; stage_renew_tokens", "token-keys is not what it should be")
}

const (
	oldCA = "-----BEGIN CERTIFICATE-----\nold\n-----END CERTIFICATE-----\n"
	newCA = "-----BEGIN CERTIFICATE-----\nnew\n-----END CERTIFICATE-----\n"
)

// In the phases of the cluster's own CA all kubeconfigs of the host trust what ca.crt has, and the controller manager
// is given one certificate to sign with as long as that has two.
func TestThePhasesOfTheClustersCA(t *testing.T) {
	t.Parallel()
	b := rotating(t)
	b.script += strings.ReplaceAll(`
write_manifest() {
	signs=$(sed -n 's/.*=//p' "$SIGNING_PATCH" 2>/dev/null) || :
	printf 'writes %s, patched %s\n' "$1" "$signs" >>"@ROOT@/calls"
}
`, "@ROOT@", b.root)
	b.write("etc/kubernetes/pki/ca.crt", oldCA)
	b.write("etc/kubernetes/pki/ca.key", "old key")
	configs := []string{"admin", "controller-manager", "scheduler", "kubelet"}
	for _, name := range configs {
		b.write("etc/kubernetes/"+name+".conf", "    certificate-authority-data: b2xk\n    server: https://a\n")
	}
	signing := b.path("etc/kubernetes/pki/ca-signing.crt")
	for _, phase := range []struct {
		run   string
		files map[string]string
		ca    string // what ca.crt has then
		signs string // with what the controller manager signs; "" for ca.crt
		renew int    // number of renewed certificates
	}{
		{"ROTATE_LEARN=cluster; stage_rotate_learn", map[string]string{
			"ca.crt": oldCA + newCA, "ca-succession.crt": "word", "next/ca.crt": newCA, "next/ca.key": "new key",
		}, oldCA + newCA, oldCA, 0},
		{"ROTATE_USE=cluster; stage_rotate_use", map[string]string{"ca.crt": newCA + oldCA, "ca.key": "new key"},
			newCA + oldCA, newCA, 5},
		{"ROTATE_FORGET=cluster; stage_rotate_forget", map[string]string{"ca.crt": newCA}, newCA, "", 0},
	} {
		var names []string
		for name, text := range phase.files {
			names = append(names, name)
			b.write("bring/"+name, text)
		}
		slices.Sort(names)
		b.tar(names...)
		b.must(phase.run)
		done := b.deeds()
		renewed := slices.DeleteFunc(slices.Clone(done), func(c string) bool {
			return !strings.HasPrefix(c, "kubeadm certs")
		})
		patched := ""
		if phase.signs != "" {
			patched = signing
		}
		for _, want := range []string{
			"writes kube-controller-manager, patched " + strings.TrimPrefix(patched, b.root),
			"waits for kube-apiserver", "waits for kube-controller-manager", "waits for kube-scheduler", "kubelet",
		} {
			if !slices.Contains(done, want) {
				t.Errorf("%s: no %q in %q", phase.run, want, done)
			}
		}
		if len(renewed) != phase.renew {
			t.Errorf("%s: signed anew: %q", phase.run, renewed)
		}
		if diff := cmp.Diff([]string{phase.ca, phase.signs, "word"},
			b.pki("ca.crt", "ca-signing.crt", "ca-succession.crt")); diff != "" {
			t.Errorf("%s: %s", phase.run, diff)
		}
		for _, name := range configs {
			want := "    certificate-authority-data: " + base64.StdEncoding.EncodeToString([]byte(phase.ca)) +
				"\n    server: https://a\n"
			if got := b.read("etc/kubernetes/" + name + ".conf"); got != want {
				t.Errorf("%s: %s.conf is %q", phase.run, name, got)
			}
		}
	}
}

// A worker trusts the uploaded CAs, and no other uploaded file is used.
func TestAWorkerTrustsTheCAsThatAreBrought(t *testing.T) {
	t.Parallel()
	b := rotating(t)
	b.script += "\nready_beat() { date +%N; }\n"
	b.write("etc/kubernetes/pki/ca.crt", oldCA)
	b.write("etc/kubernetes/kubelet.conf", "    certificate-authority-data: b2xk\n")
	b.write("bring/ca.crt", oldCA+newCA)
	b.write("bring/ca.key", "odd")
	b.tar("ca.crt", "ca.key")
	b.fails("stage_learn_ca", "authorities.tar is not what the plan says")
	b.tar("ca.crt")
	b.must("stage_learn_ca")
	if got := b.read("etc/kubernetes/pki/ca.crt"); got != oldCA+newCA {
		t.Errorf("it trusts %q", got)
	}
	want := "    certificate-authority-data: " + base64.StdEncoding.EncodeToString([]byte(oldCA+newCA)) + "\n"
	if got := b.read("etc/kubernetes/kubelet.conf"); got != want {
		t.Errorf("kubelet.conf has %q", got)
	}
}

// A host that joins, or is repaired, while the cluster's CA is rotated: kubeadm sees kubeconfigs that trust the first
// CA alone, as it would write them, and others see all.
func TestKubeadmWhileTheClustersCAIsRotated(t *testing.T) {
	t.Parallel()
	b := controlPlane(t, "cp-2")
	in64 := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	config := func(ca string) string {
		return "    certificate-authority-data: " + in64(ca) + "\n    server: https://a\n"
	}
	b.write("etc/kubernetes/pki/ca.crt", oldCA)
	for name, text := range map[string]string{
		"ca.crt": oldCA + newCA, "ca.key": "k", "sa.key": "k", "etcd/ca.crt": "c", "etcd/ca.key": "k",
		"ca-succession.crt": "word",
	} {
		b.write("pki/"+name, text)
	}
	b.must("tar -cf @ROOT@/run/kubeone/secrets/pki.tar -C @ROOT@/pki ca.crt ca.key sa.key ca-succession.crt etcd")
	b.must("stage_pki")
	const patch = "etc/kubeone/patches/kube-controller-managersigning+json.yaml"
	diff := cmp.Diff([]string{oldCA + newCA, oldCA, "word"}, b.pki("ca.crt", "ca-signing.crt", "ca-succession.crt"))
	if diff != "" || !strings.Contains(b.read(patch), "ca-signing.crt") {
		t.Errorf("a host that joins: %s, %q", diff, b.read(patch))
	}
	b.write("etc/kubernetes/admin.conf", config(oldCA+newCA))
	b.command("kubeadm", "cp '"+b.path("etc/kubernetes/admin.conf")+"' '"+b.path("seen")+"'")
	for command, seen := range map[string]string{
		"kubeadm init --config a":                                           oldCA,
		"kubeadm init phase kubeconfig kubelet --config a":                  oldCA,
		"kubeadm join phase control-plane-prepare kubeconfig --config a":    oldCA,
		"kubeadm certs renew admin.conf --config a":                         oldCA + newCA,
		"kubeadm upgrade node phase kubelet-config --patches a":             oldCA + newCA, // it asks any API server
		"kubeadm join phase kubelet-start --config a":                       oldCA + newCA,
		"kubeadm init phase kubelet-finalize enable-client-cert-rotation a": oldCA + newCA,
	} {
		b.must(command)
		if b.read("seen") != config(seen) || b.read("etc/kubernetes/admin.conf") != config(oldCA+newCA) {
			t.Errorf("%s has seen %q, and left is %q", command, b.read("seen"), b.read("etc/kubernetes/admin.conf"))
		}
	}
	b.command("kubeadm", "exit 3")
	b.fails("kubeadm init phase kubeconfig admin", "")
	if b.read("etc/kubernetes/admin.conf") != config(oldCA+newCA) {
		t.Errorf("a failure has left %q", b.read("etc/kubernetes/admin.conf"))
	}

	b.write("etc/kubernetes/pki/ca.crt", newCA)
	b.write("etc/kubernetes/admin.conf", config("one"))
	b.command("kubeadm", "")
	b.must("kubeadm certs renew admin.conf")
	if b.read("etc/kubernetes/admin.conf") != config("one") {
		t.Error("a kubeconfig is touched although no CA is rotated")
	}
	b.write("pki/ca.crt", newCA)
	b.must("tar -cf @ROOT@/run/kubeone/secrets/pki.tar -C @ROOT@/pki ca.crt ca.key sa.key etcd")
	b.must("stage_pki")
	if b.read(patch) != "" {
		t.Error("the controller manager is told of two CAs where there is one")
	}
	b.write("etc/kubernetes/pki/ca.crt", oldCA)
	b.fails("stage_pki", "another cluster's CA")
}
