package script

import (
	"slices"
	"strings"
	"testing"
)

// upgrading is a control-plane host that has fetched all it needs: every program of the release beside the one in use.
func upgrading(t *testing.T) *box {
	b := controlPlane(t, "cp-1")
	b.write("proc/sys/net/ipv4/ip_forward", "1\n")
	b.script += `
for line in kubeadm kubelet kubectl; do mkdir -p "@ROOT@/opt/kubeone/$line/9.9.9"; echo sum >"@ROOT@/opt/kubeone/$line/9.9.9/.sha256"; done
BINARIES='kubeadm 9.9.9 sum no u
kubelet 9.9.9 sum no u
kubectl 9.9.9 sum no u'
IMAGES='registry.k8s.io/kube-apiserver:v9.9.9 sha256:a s'
KUBERNETES=9.9.9
NODE_DIGESTS='control-plane=c kubelet=k'
install_packages() { :; }
kernel_settings() { :; }
configure_runtime() { :; }
configure_kubelet() { :; }
answers() { printf '"gitVersion": "v9.9.9"'; }
api_server_known() { :; }
kubeadm() { printf 'kubeadm %s\n' "$*" >>"@ROOT@/calls"; }
`
	b.script = strings.ReplaceAll(b.script, "@ROOT@", b.root)
	b.command("df", `printf 'head\nx 1 1 99999999 1 /\n'`)
	b.command("du", `printf '1000 x\n'`)
	b.command("awk", `while read -r a b c d e; do last=$d; done; printf '%s\n' "$last"`)
	b.command("cut", `printf '1000\n'`)
	b.command("head", `cat`)
	b.command("ctr", `case "$*" in
	*"images ls -q"*) printf 'registry.k8s.io/kube-apiserver:v9.9.8\n' ;;
	*"images ls"*) printf 'REF TYPE DIGEST\nregistry.k8s.io/kube-apiserver:v9.9.9 t sha256:a\n' ;;
	esac`)
	b.command("systemctl", ":")
	b.write("etc/kubernetes/kubelet.conf", "    server: https://lb.example.com:6443\n")
	b.write("etc/kubernetes/manifests/etcd.yaml", "x")
	b.write("etc/kubeone/digests", "control-plane c\n")
	return b
}

func TestFetchSwitchesNothing(t *testing.T) {
	t.Parallel()
	b := upgrading(t)
	b.must("mkdir -p \"$BIN\"; ln -s old \"$BIN/kubelet\"; stage_fetch; readlink \"$BIN/kubelet\" >'" + b.path("link") + "'")
	if got := b.read("link"); got != "old\n" {
		t.Errorf("the kubelet in use is now %q", got)
	}
	if calls := b.calls(); !slices.Contains(calls, "ctr -n k8s.io images label registry.k8s.io/kube-apiserver:v9.9.9 io.cri-containerd.pinned=pinned") {
		t.Errorf("the image is not pinned: %q", calls)
	}
	b.command("df", `printf 'head\nx 1 1 1000 1 /\n'`)
	b.fails("stage_fetch", "are needed for the images")
}

func TestWhatAHostsTurnNeedsIsChecked(t *testing.T) {
	t.Parallel()
	b := upgrading(t)
	b.must("stage_check")
	b.fails("rm '"+b.path("opt/kubeone/kubelet/9.9.9/.sha256")+"'; stage_check", "kubelet 9.9.9 is not on this host any more")
	b.fails("IMAGES='registry.k8s.io/etcd:1 sha256:b s'; stage_check", "image registry.k8s.io/etcd:1 is not in the runtime")
	b.command("df", `printf 'head\nx 1 1 1000 1 /\n'`)
	b.fails("stage_check", "less than 256 MiB are free")
}

func TestAComponentThatWasWrittenAnewIsAwaited(t *testing.T) {
	t.Parallel()
	b := upgrading(t)
	ctr := func(tasks string) string {
		return `case "$*" in
		*'containers ls -q labels."io.kubernetes.container.name"==etcd'*) printf 'c1\nc2\nc3\n' ;;
		*"tasks ls"*) printf 'TASK PID STATUS\n` + tasks + `' ;;
		esac`
	}
	b.command("ctr", ctr(`c1    7    RUNNING\nc2    8    STOPPED\n`))
	if got := b.must("running_as etcd"); got != "c1" {
		t.Errorf("running: %q", got)
	}
	b.fails("OLD=c1; started_anew etcd || die 'not yet'", "not yet")
	b.command("ctr", ctr(`c1    7    STOPPED\nc3    9    RUNNING\n`))
	b.must("OLD=c1; started_anew etcd")
}

func TestTheKubeletIsSwitchedLast(t *testing.T) {
	t.Parallel()
	b := upgrading(t)
	b.write("var/lib/kubelet/kubeadm-flags.env", `KUBELET_KUBEADM_ARGS="--a=b --pod-infra-container-image=registry.k8s.io/pause:3 --node-ip=192.0.2.1"`)
	b.must("started_anew() { :; }; mkdir -p \"$BIN\"; stage_upgrade_control_plane; readlink \"$BIN/kubelet\" >'" + b.path("link") + "'")
	if got := b.read("link"); !strings.HasSuffix(got, "/opt/kubeone/kubelet/9.9.9/kubelet\n") {
		t.Errorf("the kubelet is %q", got)
	}
	if got := b.read("etc/kubernetes/kubelet.conf"); strings.Contains(got, "lb.example.com") {
		t.Errorf("the kubelet speaks to %s", got)
	}
	if got := b.read("var/lib/kubelet/kubeadm-flags.env"); !strings.HasPrefix(got, `KUBELET_KUBEADM_ARGS="--a=b --node-ip=192.0.2.1"`) {
		t.Errorf("the new kubelet would get the flags %s", got)
	}
	if got := b.read("etc/kubeone/marker"); !strings.Contains(got, "complete=yes") {
		t.Errorf("marker %q", got)
	}
	var order []string
	for _, call := range b.calls() {
		for _, part := range []string{
			"upload-config all", "certs renew all", "etcd local", "control-plane all", "phase bootstrap-token v9.9.9", "kubelet-config",
			"systemctl restart kubelet", "kube-apiserver:v9.9.8 io.cri-containerd.pinned=",
		} {
			if strings.Contains(call, part) {
				order = append(order, part)
			}
		}
	}
	want := []string{
		"upload-config all", "certs renew all", "etcd local", "control-plane all", "phase bootstrap-token v9.9.9", "kubelet-config",
		"systemctl restart kubelet", "kube-apiserver:v9.9.8 io.cri-containerd.pinned=",
	}
	if !slices.Equal(order, want) {
		t.Errorf("order %q\nwant  %q", order, want)
	}
}

// inOrder checks that the calls contain the parts, in that order.
func inOrder(t *testing.T, calls []string, parts ...string) {
	t.Helper()
	at := 0
	for _, call := range calls {
		if at < len(parts) && strings.Contains(call, parts[at]) {
			at++
		}
	}
	if at < len(parts) {
		t.Errorf("%q does not come, or not after those before it, in\n%s", parts[at], strings.Join(calls, "\n"))
	}
}

func TestATurnThatHasBegunStartsTheKubeletFirst(t *testing.T) {
	t.Parallel()
	b := upgrading(t)
	b.script += strings.ReplaceAll(`
wait_for() { shift 2; "$@" >/dev/null 2>&1 || die "gave up waiting for $*"; }
kubelet_healthy() { [ -f "@ROOT@/kubelet-runs" ]; }
started_anew() { :; }
`, "@ROOT@", b.root)
	b.command("systemctl", `printf 'systemctl %s\n' "$*" >>'`+b.path("calls")+`'; case "$*" in *"restart kubelet"*) : >'`+b.path("kubelet-runs")+`' ;; esac`)
	b.fails("stage_upgrade_control_plane", "gave up waiting for kubelet_healthy")
	b.write("var/lib/kubeone/turn", "9.9.8\n")
	b.fails("stage_upgrade_control_plane", "gave up waiting for kubelet_healthy")
	b.write("var/lib/kubeone/turn", "9.9.9\n")
	b.must("mkdir -p \"$BIN\"; stage_upgrade_control_plane; [ ! -e \"$TURN\" ]")
	inOrder(t, b.calls(), "upload-config", "kubelet-config", "restart kubelet", "etcd local", "control-plane all", "kubelet-config", "restart kubelet")
}

func TestTheApiServersCertificateFollowsItsNames(t *testing.T) {
	t.Parallel()
	b := upgrading(t)
	b.script += strings.ReplaceAll(`
NODE_DIGESTS='control-plane=new kubelet=k'
kubeadm() {
	printf 'kubeadm %s\n' "$*" >>"@ROOT@/calls"
	case "$*" in *"certs apiserver"*)
		grep -x "certificatesDir: @ROOT@/etc/kubernetes/pki/.new" "$6" >/dev/null || die "not in a directory of its own"
		for f in crt key; do printf 'new\n' >"@ROOT@/etc/kubernetes/pki/.new/apiserver.$f"; done ;;
	esac
}
`, "@ROOT@", b.root)
	for _, name := range []string{"ca.crt", "ca.key", "apiserver.crt", "apiserver.key"} {
		b.write("etc/kubernetes/pki/"+name, "old\n")
	}
	b.write("etc/kubeone/digests", "control-plane new\n")
	b.must(`renew_all "$(plain_config file_cluster)"`)
	if got := b.read("etc/kubernetes/pki/apiserver.crt"); got != "old\n" {
		t.Errorf("made anew without need: %q", got)
	}
	b.write("etc/kubeone/digests", "control-plane old\n")
	b.must(`renew_all "$(plain_config file_cluster)"; [ ! -e "$pki/.new" ]`)
	if got := b.read("etc/kubernetes/pki/apiserver.crt") + b.read("etc/kubernetes/pki/apiserver.key"); got != "new\nnew\n" {
		t.Errorf("the certificate and its key are %q", got)
	}
	inOrder(t, b.calls(), "certs renew all", "certs apiserver", "certs renew all")
}

func TestComponentsThatWereNotWrittenAnewStartAnewForTheirCredentials(t *testing.T) {
	t.Parallel()
	b := upgrading(t)
	b.script += strings.ReplaceAll(`
started_anew() { printf 'await %s\n' "$1" >>"@ROOT@/calls"; }
end_pod() { printf 'end %s\n' "$1" >>"@ROOT@/calls"; }
kubeadm() { case "$*" in *"control-plane all"*) printf 'new\n' >"@ROOT@/etc/kubernetes/manifests/kube-scheduler.yaml" ;; esac; }
`, "@ROOT@", b.root)
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		b.write("etc/kubernetes/manifests/"+name+".yaml", "old\n")
	}
	b.must("mkdir -p \"$BIN\"; stage_upgrade_control_plane")
	var got []string
	for _, call := range b.calls() {
		if strings.HasPrefix(call, "await ") || strings.HasPrefix(call, "end ") {
			got = append(got, call)
		}
	}
	if want := []string{"end kube-controller-manager", "await kube-controller-manager", "await kube-scheduler"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWhatAHostHasIsRecordedBeforeItsKubeletIsSwitched(t *testing.T) {
	t.Parallel()
	b := upgrading(t)
	b.script += strings.ReplaceAll(`
NODE_DIGESTS='kubelet=new'
configure_kubelet() { printf 'configure_kubelet\n' >>"@ROOT@/calls"; }
`, "@ROOT@", b.root)
	b.command("systemctl", `case "$*" in "restart kubelet.service") exit 1 ;; esac`)
	b.command("journalctl", "printf 'bad flag\n'")
	b.fails("mkdir -p \"$BIN\"; stage_upgrade_worker", "kubelet does not start: bad flag")
	if got := b.read("etc/kubeone/digests"); !strings.Contains(got, "kubelet new") {
		t.Errorf("recorded: %q", got)
	}
	inOrder(t, b.calls(), "configure_kubelet", "kubelet-config --patches")
}
