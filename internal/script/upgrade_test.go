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
	b.must("mkdir -p \"$BIN\"; stage_upgrade_control_plane; readlink \"$BIN/kubelet\" >'" + b.path("link") + "'")
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
