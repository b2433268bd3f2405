package script

import (
	"strings"
	"testing"
)

// endpointed is a finished control-plane host with a certificate and an administrator's kubeconfig.
func endpointed(t *testing.T) *box {
	t.Helper()
	b := joined(t, "cp-2")
	for _, name := range []string{"ca.crt", "ca.key", "apiserver.crt", "apiserver.key"} {
		b.write("etc/kubernetes/pki/"+name, "old\n")
	}
	b.write("etc/kubernetes/admin.conf", "clusters:\n- cluster:\n    server: https://old.example.com:6443\n")
	b.script += "\nwait_for() { shift 2; \"$@\" >/dev/null 2>&1 || die \"gave up waiting for $*\"; }\n" +
		"kubelet_healthy() { :; }\n"
	return b
}

func TestTheApiServersCertificateGetsItsNames(t *testing.T) {
	t.Parallel()
	b := endpointed(t)
	b.script += strings.ReplaceAll(`
kubeadm() {
	case "$*" in
	version*) echo v9.9.9 ;;
	*"certs apiserver"*)
		cp "$6" "@ROOT@/config"
		for f in crt key; do printf 'new\n' >"@ROOT@/etc/kubernetes/pki/.new/apiserver.$f"; done ;;
	esac
}
`, "@ROOT@", b.root)
	b.command("kubectl", `printf 'kubectl %s\n' "$*" >>'`+b.path("calls")+
		`'; case "$*" in *"name gone.example.com "*) exit 1 ;; esac`)
	b.must("ADD_NAMES=192.0.2.9; KEEP_NAMES='old.example.com 10.0.0.9'; DROP_NAMES=gone.example.com\n" +
		`stage_api_names; [ ! -e "$pki/.new" ]`)
	if got := b.read("etc/kubernetes/pki/apiserver.crt") +
		b.read("etc/kubernetes/pki/apiserver.key"); got != "new\nnew\n" {
		t.Errorf("the certificate and its key are %q", got)
	}
	config := b.read("config")
	for _, want := range []string{
		"certificatesDir: " + b.path("etc/kubernetes/pki/.new") + "\n", "kubernetesVersion: v9.9.9\n",
		"  certSANs:\n  - \"old.example.com\"\n  - \"10.0.0.9\"\n  - \"192.0.2.9\"\n  - lb.example.com\n",
	} {
		if !strings.Contains(config, want) {
			t.Errorf("no %q in\n%s", want, config)
		}
	}
	inOrder(t, b.calls(), "--tls-server-name 192.0.2.9 ", "--tls-server-name localhost ",
		"--tls-server-name gone.example.com ")
	b.command("kubectl", "exit 0") // an API server still answers to the name that is to be dropped
	b.fails("ADD_NAMES=; KEEP_NAMES=; DROP_NAMES=gone.example.com; stage_api_names", "gave up waiting for shows_names")
	b.must("ADD_NAMES=; KEEP_NAMES='*.example.com'; DROP_NAMES=gone.example.com; stage_api_names")
}

func TestKubeconfigsDialWhereTheAPIAnswers(t *testing.T) {
	t.Parallel()
	const url = "https://lb.example.com:6443"
	b := endpointed(t)
	b.command("kubectl", "echo 'no route to host' >&2; exit 1")
	b.fails("stage_dial", "does not find the API at "+url)
	if got := b.read("etc/kubernetes/admin.conf"); !strings.Contains(got, "server: https://old.example.com:6443\n") {
		t.Errorf("nobody answered there, and it dials %s", got)
	}
	b.command("kubectl", "exit 0")
	b.must("stage_dial")
	if got := b.read("etc/kubernetes/admin.conf"); !strings.Contains(got, "server: "+url+"\n") {
		t.Errorf("it dials %s", got)
	}
	if got := b.read("etc/kubernetes/kubelet.conf"); !strings.Contains(got, "server: https://10.0.0.2:6443\n") {
		t.Errorf("the kubelet of a control-plane host dials %s", got)
	}
	for _, call := range b.calls() {
		if strings.Contains(call, "stop kubelet") {
			t.Error("the kubelet was stopped, although it asks the API server beside it")
		}
	}
}

// Between the end of the kubelet and its start its kubeconfig changes, and at no other time.
func TestAKubeletIsStoppedBeforeItDialsElsewhere(t *testing.T) {
	t.Parallel()
	b := endpointed(t)
	b.write("etc/kubernetes/kubelet.conf", "clusters:\n- cluster:\n    server: https://old.example.com:6443\n")
	b.command("kubectl", "exit 0")
	b.command("systemctl", `printf 'systemctl %s dials %s\n' "$*" "$(sed -n 's/.*server: //p' '`+
		b.path("etc/kubernetes/kubelet.conf")+`')" >>'`+b.path("calls")+`'`)
	b.must("ROLE=worker; stage_dial")
	inOrder(t, b.calls(), "stop kubelet dials https://old.example.com:6443",
		"start kubelet dials https://lb.example.com:6443")
	before := len(b.calls())
	b.must("ROLE=worker; stage_dial")
	for _, call := range b.calls()[before:] {
		if strings.Contains(call, "stop kubelet") {
			t.Error("a kubelet that dials the endpoint was stopped")
		}
	}
}

// Workers have no kubectl.
func TestAWorkerAsksWithItsKubeletsCertificate(t *testing.T) {
	t.Parallel()
	b := endpointed(t)
	b.write("etc/kubernetes/kubelet.conf", "clusters:\n- cluster:\n    server: https://old.example.com:6443\n")
	b.command("curl", "echo 'could not resolve host' >&2; exit 6")
	b.fails("ROLE=worker BIN=/nowhere; stage_dial", "could not resolve host")
	b.command("curl", `printf 'curl %s\n' "$*" >>'`+b.path("calls")+`'`)
	b.must("ROLE=worker BIN=/nowhere; stage_dial")
	inOrder(t, b.calls(), "--cert /var/lib/kubelet/pki/kubelet-client-current.pem https://lb.example.com:6443/version",
		"stop kubelet")
	b.mustAsk("https://lb.example.com:6443")
}
