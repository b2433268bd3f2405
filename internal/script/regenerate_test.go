package script

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// joined is a finished host with a container runtime that has the control plane's containers.
func joined(t *testing.T, name string) *box {
	t.Helper()
	b := controlPlane(t, name)
	b.command("kubeadm", `cd '`+b.root+`'
	case "$*" in
	version*) echo v1.36.3 ;;
	*"init phase kubeconfig kubelet"*)
		printf 'clusters:\n- cluster:\n    server: https://of-kubeadm\n' >etc/kubernetes/kubelet.conf
		echo new >var/lib/kubelet/pki/kubelet-client-current.pem ;;
	*"init phase etcd local"*)
		printf 'spec:\n  containers:\n  - name: etcd\n' >etc/kubernetes/manifests/etcd.yaml
		printf '    image: registry.k8s.io/etcd:3.6.1-0\n' >>etc/kubernetes/manifests/etcd.yaml ;;
	*"init phase control-plane "*)
		pod=kube-$(printf '%s\n' "$*" | sed 's/.*control-plane \([^ ]*\).*/\1/')
		printf '    image: registry.k8s.io/%s:v1.36.3\n' "$pod" >"etc/kubernetes/manifests/$pod.yaml" ;;
	esac`)
	b.command("ctr", `case "$*" in
	*"images ls"*) echo registry.k8s.io/etcd:3.6.9-0 registry.k8s.io/kube-apiserver:v1.36.3 | tr ' ' '\n' ;;
	*"containers ls"*)
		name=${6%%,*}
		echo "id-${name##*==}" ;;
	esac`)
	b.write("etc/kubernetes/kubelet.conf", "clusters:\n- cluster:\n    server: https://10.0.0.2:6443\n")
	b.write("etc/kubernetes/manifests/etcd.yaml", "spec:\n")
	b.write("var/lib/kubelet/config.yaml", "kind: KubeletConfiguration\n")
	b.write("var/lib/kubelet/pki/kubelet-client-current.pem", "certificate")
	b.write("var/lib/etcd/member/snap/db", "data")
	b.must("mark yes")
	return b
}

func TestCertificatesAreRenewedAndTheirComponentsStartAgain(t *testing.T) {
	t.Parallel()
	b := joined(t, "cp-2")
	b.write("etc/kubernetes/admin.conf", "kind: Config\n")
	b.script += "\netcd_votes() { asked=${asked}y; [ \"$asked\" != y ]; }\n" // not at first
	b.must("asked=; PARTS=certificates; stage_regenerate")
	calls := b.calls()
	for _, want := range []string{"ctr -n k8s.io tasks kill --signal SIGTERM id-etcd", "ctr -n k8s.io tasks kill " +
		"--signal SIGTERM id-kube-apiserver", "systemctl restart kubelet"} {
		if !slices.Contains(calls, want) {
			t.Errorf("no %q in\n%s", want, strings.Join(calls, "\n"))
		}
	}
	var renewed []string
	ready := 0 // how many were renewed when the API server was ready
	for _, c := range calls {
		if name, ok := strings.CutPrefix(c, "kubeadm certs renew "); ok {
			name, _, _ = strings.Cut(name, " --config ")
			renewed = append(renewed, name)
		}
		if strings.HasSuffix(c, ":6443/readyz") {
			ready = len(renewed)
		}
	}
	want := []string{"apiserver", "apiserver-kubelet-client", "apiserver-etcd-client", "front-proxy-client",
		"etcd-server", "etcd-peer", "etcd-healthcheck-client", "controller-manager.conf", "scheduler.conf",
		"admin.conf"} // by the last one a plan knows that all has come to its end
	if diff := cmp.Diff(want, renewed); diff != "" || ready != len(want)-1 {
		t.Errorf("%d are renewed when the API server is ready; %s", ready, diff)
	}
}

// A member that votes reads its new certificates by itself, and the others may need it.
func TestAnEtcdThatVotesGoesOnWithItsNewCertificates(t *testing.T) {
	t.Parallel()
	b := joined(t, "cp-2")
	b.script += "\netcd_votes() { :; }\n"
	b.must("PARTS=certificates; stage_regenerate")
	calls := b.calls()
	if slices.Contains(calls, "ctr -n k8s.io tasks kill --signal SIGTERM id-etcd") ||
		!slices.Contains(calls, "ctr -n k8s.io tasks kill --signal SIGTERM id-kube-apiserver") {
		t.Errorf("etcd alone goes on:\n%s", strings.Join(calls, "\n"))
	}
}

func TestAManifestIsWrittenAgain(t *testing.T) {
	t.Parallel()
	b := joined(t, "cp-2")
	if err := os.Remove(b.path("etc/kubernetes/manifests/etcd.yaml")); err != nil {
		t.Fatal(err)
	}
	b.must("PARTS='etcd kube-apiserver kube-controller-manager'; stage_regenerate")
	want := []string{"version -o short", "init phase etcd local", "version -o short",
		"init phase control-plane apiserver", "version -o short", "init phase control-plane controller-manager"}
	if diff := cmp.Diff(want, b.phases()); diff != "" {
		t.Error(diff)
	}
	if got := b.read("etc/kubernetes/manifests/etcd.yaml"); !strings.Contains(got,
		"image: registry.k8s.io/etcd:3.6.9-0\n") {
		t.Errorf("etcd has an image that the host does not have:\n%s", got)
	}
}

// A kubelet that has missed the manifest has told the API server to end, which takes that one a minute.
func TestAnAPIServerThatIsEndingIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	const killed = "ctr -n k8s.io tasks kill --signal SIGTERM id-kube-apiserver"
	b := joined(t, "cp-2")
	b.must("PARTS=kube-apiserver; stage_regenerate")
	if slices.Contains(b.calls(), killed) {
		t.Error("an API server that answers is ended")
	}
	b = joined(t, "cp-2")
	b.command("curl", "[ -e '"+b.path("written")+"' ]")
	b.write("etc/kubernetes/manifests/kube-apiserver.yaml", "    image: registry.k8s.io/kube-apiserver:v1.36.2\n")
	b.command("kubeadm", ": >'"+b.path("written")+"'; echo v1.36.3")
	r := b.run("PARTS=kube-apiserver; stage_regenerate")
	if want := "warning: the image registry.k8s.io/kube-apiserver:v1.36.2 is not on this host"; r.code != 0 ||
		!strings.Contains(r.out+r.err, want) {
		t.Errorf("exit status %d, want %q:\n%s\n%s", r.code, want, r.out, r.err)
	}
	calls := b.calls()
	end := slices.Index(calls, killed)
	if write := slices.IndexFunc(calls, func(c string) bool {
		return strings.HasPrefix(c, "kubeadm init phase control-plane apiserver")
	}); end < 0 || write < end {
		t.Errorf("it is not ended before its manifest is written:\n%s", strings.Join(calls, "\n"))
	}
}

func TestTheKubeletsSettingsAreWrittenAgainWithoutAnAPI(t *testing.T) {
	t.Parallel()
	b := joined(t, "cp-2")
	b.script += "\nconfigure_kubelet() { echo configured >>'" + b.path("calls") + "'; }\n"
	b.write("var/lib/kubelet/kubeadm-flags.env",
		`KUBELET_KUBEADM_ARGS="--pod-infra-container-image=p --node-ip=10.0.0.2"`)
	b.must("PARTS=kubelet-settings; stage_regenerate")
	calls := b.calls()
	inOrder(t, calls, "configured", "kubeadm init phase kubelet-start --config", "systemctl restart kubelet")
	if slices.ContainsFunc(calls, func(c string) bool { return strings.HasPrefix(c, "kubectl") }) {
		t.Errorf("it asks the API:\n%s", strings.Join(calls, "\n"))
	}
	if got := b.read("var/lib/kubelet/kubeadm-flags.env"); strings.Contains(got, "pod-infra") {
		t.Errorf("the kubelet would get %s", got)
	}
}

func TestAnEtcdWithoutItsDataIsNotStarted(t *testing.T) {
	t.Parallel()
	b := joined(t, "cp-2")
	b.must("rm -rf @ROOT@/var/lib/etcd/member")
	b.fails("PARTS=etcd; stage_regenerate",
		"/var/lib/etcd/member is gone: an etcd without its data must not start as the member that it was")
}

func TestAControlPlaneHostSignsForItsKubelet(t *testing.T) {
	t.Parallel()
	b := joined(t, "cp-2")
	b.must("PARTS=kubelet-credentials; stage_regenerate")
	b.mustAsk("https://10.0.0.2:6443")
	want := []string{"version -o short", "init phase kubeconfig kubelet", "version -o short",
		"init phase kubelet-finalize enable-client-cert-rotation"}
	if diff := cmp.Diff(want, b.phases()); diff != "" {
		t.Error(diff)
	}
}

func TestAWorkersKubeletAsksWithAJoinToken(t *testing.T) {
	t.Parallel()
	b := joined(t, "w-1")
	b.write("run/kubeone/secrets/discovery.conf", "clusters:\n- cluster:\n    certificate-authority-data: Y2E=\n")
	b.command("base64", "echo the CA")
	b.command("systemctl", `cd '`+b.root+`'
	case "$*" in "restart kubelet")
		cp etc/kubernetes/bootstrap-kubelet.conf seen
		echo new >etc/kubernetes/kubelet.conf
		echo new >var/lib/kubelet/pki/kubelet-client-current.pem ;;
	esac`)
	b.must("PARTS=kubelet-credentials; stage_regenerate")
	if seen := b.read("seen"); !strings.Contains(seen, "token: abcdef.0123456789abcdef") ||
		!strings.Contains(seen, "server: https://lb.example.com:6443") {
		t.Errorf("the kubelet asks with\n%s", seen)
	}
	if b.read("etc/kubernetes/bootstrap-kubelet.conf") != "" {
		t.Error("the token is still on the host")
	}
	if b.read("etc/kubernetes/pki/ca.crt") != "the CA\n" {
		t.Errorf("the CA is %q", b.read("etc/kubernetes/pki/ca.crt"))
	}
	if phases := b.phases(); len(phases) > 0 {
		t.Errorf("kubeadm is called for %q", phases)
	}
}

func TestLostDataIsSetAsideAndTheHostIsUnfinished(t *testing.T) {
	t.Parallel()
	b := joined(t, "cp-2")
	for _, name := range []string{
		"admin.conf", "pki/etcd/peer.crt", "pki/etcd/peer.key", "pki/ca.crt", "pki/ca.key", "pki/etcd/ca.crt",
		"pki/sa.key",
	} {
		b.write("etc/kubernetes/"+name, name)
	}
	for range 2 { // the second time there is nothing left to do
		b.must("stage_quarantine")
		if marker := b.read("etc/kubeone/marker"); !strings.Contains(marker, "complete=no") {
			t.Errorf("the marker is\n%s", marker)
		}
		for _, name := range []string{"etc/kubernetes/manifests/etcd.yaml", "var/lib/etcd/member/snap/db"} {
			if b.read(name) != "" {
				t.Errorf("%s is still there", name)
			}
		}
	}
	for name, stays := range map[string]bool{
		"kubelet.conf":      false,
		"admin.conf":        false,
		"pki/etcd/peer.crt": false,
		"pki/ca.crt":        true,
		"pki/ca.key":        true,
		"pki/etcd/ca.crt":   true,
		"pki/sa.key":        true,
	} {
		if (b.read("etc/kubernetes/"+name) != "") != stays {
			t.Errorf("%s: it stays: %v", name, !stays)
		}
	}
	if slices.Contains(b.calls(), "systemctl start kubelet") {
		t.Error("the kubelet starts before the join; it may be newer than the API servers of the others")
	}
	b.write("etc/kubernetes/pki/etcd/peer.crt", "killed between its key and itself")
	if b.must("stage_quarantine"); b.read("etc/kubernetes/pki/etcd/peer.crt") != "" {
		t.Error("a certificate without its key stays")
	}
	kept := 0
	for path := range b.tree("var/lib/kubeone-old") {
		if strings.HasSuffix(path, "var-lib-etcd-member/snap/db") || strings.HasSuffix(path, "/etcd.yaml") {
			kept++
		}
	}
	if kept != 2 {
		t.Errorf("kept: %v", b.tree("var/lib/kubeone-old"))
	}
}

// What is set aside of a disk of etcd's own stays on it: elsewhere there may be no room.
func TestLostDataStaysOnItsDisk(t *testing.T) {
	t.Parallel()
	b := joined(t, "cp-2")
	b.write("proc/self/mountinfo", "36 35 8:16 / "+b.path("var/lib/etcd")+" rw - ext4 /dev/sdb rw\n")
	data := b.read("var/lib/etcd/member/snap/db")
	for range 2 { // the second time there is nothing left to do
		b.must("stage_quarantine")
		kept, err := filepath.Glob(b.path("var/lib/etcd/kubeone-lost-*/member/snap/db"))
		if err != nil || len(kept) != 1 || b.read(strings.TrimPrefix(kept[0], b.root)) != data || data == "" {
			t.Errorf("kept on the disk: %v (%v)", kept, err)
		}
		for path := range b.tree("var/lib/kubeone-old") {
			if strings.Contains(path, "var-lib-etcd") {
				t.Errorf("%s is not on the disk", path)
			}
		}
	}
}
