package script

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// upgrading is a control-plane host that has fetched all it needs: every program of the release beside the one in use.
func upgrading(t *testing.T) *box {
	b := controlPlane(t, "cp-1")
	b.write("proc/sys/net/ipv4/ip_forward", "1\n")
	b.script += `
for line in kubeadm kubelet kubectl; do
	mkdir -p "@ROOT@/opt/kubeone/$line/9.9.9"; echo sum >"@ROOT@/opt/kubeone/$line/9.9.9/.sha256"; done
BINARIES='kubeadm 9.9.9 sum no u
kubelet 9.9.9 sum no u
kubectl 9.9.9 sum no u'
IMAGES='registry.k8s.io/kube-apiserver:v9.9.9 sha256:a s'
KUBERNETES=9.9.9
KUBELET=9.9.9
NODE_DIGESTS='components=c kubelet=k'
install_packages() { :; }
kernel_settings() { :; }
configure_runtime() { :; }
configure_kubelet() { :; }
answers() { printf '"gitVersion": "v9.9.9"'; }
asked() { printf '"gitVersion": "v9.9.9"'; }
listens() { :; }
api_server_known() { :; }
kubeadm() { printf 'kubeadm %s\n' "$*" >>"@ROOT@/calls"; }
administer() { printf 'kubectl %s\n' "$*" >>"@ROOT@/calls"; }
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
	b.write("etc/kubeone/digests", "components c\n")
	return b
}

func TestFetchSwitchesNothing(t *testing.T) {
	t.Parallel()
	b := upgrading(t)
	b.must("mkdir -p \"$BIN\"; ln -s old \"$BIN/kubelet\"; stage_fetch; readlink \"$BIN/kubelet\" >'" + b.path("link") +
		"'")
	if got := b.read("link"); got != "old\n" {
		t.Errorf("the kubelet in use is now %q", got)
	}
	if calls := b.calls(); !slices.Contains(calls,
		"ctr -n k8s.io images label registry.k8s.io/kube-apiserver:v9.9.9 io.cri-containerd.pinned=pinned") {
		t.Errorf("the image is not pinned: %q", calls)
	}
	b.command("df", `printf 'head\nx 1 1 1000 1 /\n'`)
	b.fails("stage_fetch", "are needed for the images")
}

func TestWhatAHostsUpgradeNeedsIsChecked(t *testing.T) {
	t.Parallel()
	b := upgrading(t)
	b.must("stage_check")
	b.fails("rm '"+b.path("opt/kubeone/kubelet/9.9.9/.sha256")+"'; stage_check",
		"kubelet 9.9.9 is not on this host any more")
	b.fails("IMAGES='registry.k8s.io/etcd:1 sha256:b s'; stage_check",
		"image registry.k8s.io/etcd:1 is not in the runtime")
	b.command("df", `printf 'head\nx 1 1 1000 1 /\n'`)
	b.fails("stage_check", "less than 256 MiB are free")
}

func TestAnAPIServerThatEncryptsIsNotMadeAnewWithoutThat(t *testing.T) {
	t.Parallel()
	b := upgrading(t)
	const api = "etc/kubernetes/manifests/kube-apiserver.yaml"
	b.write(api, "    - --encryption-provider-config=/etc/kubernetes/pki/encryption.yaml\n")
	before := b.read(api)
	b.fails("stage_upgrade_control_plane", "the API server encrypts what it stores")
	b.fails("UPGRADING='"+b.path("upgrading")+`'; printf '%s' "$KUBELET" >"$UPGRADING"; stage_check`,
		"the API server encrypts what it stores")
	if got := b.read(api); got != before {
		t.Errorf("the API server's manifest became %q", got)
	}
	b.must("file_cluster() { echo 'name: encryption-provider-config'; }; stage_check")
	b.write(api, "    - --profiling=false\n")
	b.must("stage_check")
}

func TestOnlyTasksThatRunCountAsRunning(t *testing.T) {
	t.Parallel()
	b := upgrading(t)
	ctr := func(tasks string) string {
		return `case "$*" in
*'containers ls -q labels."io.kubernetes.container.name"==etcd,labels."io.kubernetes.pod.namespace"==kube-system'*)
			printf 'c1\nc2\nc3\n' ;;
		*"tasks ls"*) printf 'TASK PID STATUS\n` + tasks + `' ;;
		esac`
	}
	b.command("ctr", ctr(`c1    7    RUNNING\nc2    8    STOPPED\n`))
	if got := b.must("running_as etcd"); got != "c1" {
		t.Errorf("running: %q", got)
	}
}

func TestTheKubeletIsSwitchedLast(t *testing.T) {
	t.Parallel()
	b := upgrading(t)
	b.write("var/lib/kubelet/kubeadm-flags.env",
		`KUBELET_KUBEADM_ARGS="--a=b --pod-infra-container-image=registry.k8s.io/pause:3 --node-ip=192.0.2.1"`)
	b.must("mkdir -p \"$BIN\"; stage_upgrade_control_plane; readlink \"$BIN/kubelet\" >'" + b.path("link") + "'")
	if got := b.read("link"); !strings.HasSuffix(got, "/opt/kubeone/kubelet/9.9.9/kubelet\n") {
		t.Errorf("the kubelet is %q", got)
	}
	if got := b.read("etc/kubernetes/kubelet.conf"); strings.Contains(got, "lb.example.com") {
		t.Errorf("the kubelet speaks to %s", got)
	}
	if got := b.read("var/lib/kubelet/kubeadm-flags.env"); !strings.HasPrefix(got,
		`KUBELET_KUBEADM_ARGS="--a=b --node-ip=192.0.2.1"`) {
		t.Errorf("the new kubelet would get the flags %s", got)
	}
	if got := b.read("etc/kubeone/marker"); !strings.Contains(got, "complete=yes") {
		t.Errorf("marker %q", got)
	}
	var order []string
	for _, call := range b.calls() {
		for _, part := range []string{
			"upload-config all", "certs renew all", "kubelet-config", "etcd local", "control-plane all",
			"systemctl stop kubelet",
			"systemctl restart kubelet", "phase bootstrap-token", "kube-apiserver:v9.9.8 io.cri-containerd.pinned=",
		} {
			if strings.Contains(call, part) {
				order = append(order, part)
			}
		}
	}
	want := []string{
		"upload-config all", "certs renew all", "kubelet-config", "etcd local", "control-plane all",
		"systemctl stop kubelet",
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
`, "@ROOT@", b.root)
	b.command("systemctl", `printf 'systemctl %s\n' "$*" >>'`+b.path("calls")+
		`'; case "$*" in *"restart kubelet"*) : >'`+b.path("kubelet-runs")+`' ;; esac`)
	b.fails("stage_upgrade_control_plane", "gave up waiting for kubelet_healthy")
	b.write("var/lib/kubeone/upgrading", "9.9.8\n")
	b.fails("stage_upgrade_control_plane", "gave up waiting for kubelet_healthy")
	b.write("var/lib/kubeone/upgrading", "9.9.9\n")
	b.must("mkdir -p \"$BIN\"; stage_upgrade_control_plane; [ ! -e \"$UPGRADING\" ]")
	// What it was given may be why it does not run. Without it perhaps no API server answers.
	inOrder(t, b.calls(), "init phase kubelet-start", "restart kubelet", "get clusterrolebindings", "upload-config",
		"kubelet-config", "etcd local", "control-plane all", "stop kubelet", "restart kubelet")
}

func TestOldComponentsEndBeforeTheNewKubeletStarts(t *testing.T) {
	t.Parallel()
	b := upgrading(t)
	b.script += strings.ReplaceAll(`
wait_for() { case $2 in *"kube-apiserver to end") exit 1 ;; esac; }
end_pod() { printf 'end %s %s\n' "$1" "${2:-SIGTERM}" >>"@ROOT@/calls"; }
`, "@ROOT@", b.root)
	b.must("mkdir -p \"$BIN\"; stage_upgrade_control_plane")
	inOrder(t, b.calls(), "control-plane all", "stop kubelet", "end kube-apiserver SIGTERM",
		"end kube-scheduler SIGTERM", "end kube-apiserver SIGKILL", "end etcd SIGTERM", "restart kubelet")
}

func TestLeasesOfControllersThatHaveEndedAreGivenUp(t *testing.T) {
	t.Parallel()
	b := upgrading(t)
	b.write("proc/sys/kernel/hostname", "cp-1\n")
	b.script += strings.ReplaceAll(`
administer() {
	printf '%s\n' "$*" | tr '\n' ' ' >>"@ROOT@/calls"; printf '\n' >>"@ROOT@/calls"
	case "$*" in
	*"get lease kube-controller-manager"*) printf 'cp-1_abc' ;;
	*"get lease kube-scheduler"*) printf 'cp-10_def' ;;
	esac
}
`, "@ROOT@", b.root)
	b.must("give_up_leases kube-controller-manager kube-scheduler")
	var patched []string
	for _, call := range b.calls() {
		if strings.Contains(call, " patch ") {
			patched = append(patched, call)
		}
	}
	if len(patched) != 1 || !strings.Contains(patched[0], "lease kube-controller-manager") ||
		!strings.Contains(patched[0], `"op":"test","path":"/spec/holderIdentity","value":"cp-1_abc"`) {
		t.Errorf("given up: %q", patched)
	}
	b.must("administer() { return 1; }; give_up_leases kube-scheduler") // the API does not answer
}

func TestTheOthersMustBeAQuorumBeforeEtcdIsStopped(t *testing.T) {
	t.Parallel()
	health := func(well ...bool) string {
		var out []string
		for _, is := range well {
			out = append(out, fmt.Sprintf(`{"endpoint":"https://192.0.2.1:2379","health":%v,"took":"1ms"}`, is))
		}
		return "[" + strings.Join(out, ",") + "]"
	}
	for name, c := range map[string]struct {
		health   string
		learners string
		want     bool
	}{
		"three, all well":                    {health(true, true, true), "", true},
		"three, one of the others unhealthy": {health(true, true, false), "", false},
		"three and a learner":                {health(true, true, true, false), `"isLearner":true`, true},
		"five, one of the others unhealthy":  {health(true, true, true, true, false), "", true},
		"five, two of the others unhealthy":  {health(true, true, true, false, false), "", false},
		"one":                                {health(true), "", true},
		"two, the other one unhealthy":       {health(true, false), "", false},
		"no answer":                          {"", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := upgrading(t)
			b.script += "\netcd_container() { printf 'c1\\n'; }\nin_etcd() { case \"$*\" in *'member " +
				"list') printf '%s' '" + c.learners + "' ;; *) printf '%s' '" + c.health + "' ;; esac; }\n"
			if got := b.must("if others_vote; then printf yes; fi"); (got == "yes") != c.want {
				t.Errorf("got %q", got)
			}
		})
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

// aWorkerThatGoesDown is a host that runs kubelet 9.9.9 and whose wanted one is 9.9.8.
func aWorkerThatGoesDown(t *testing.T) *box {
	b := upgrading(t)
	b.script += strings.ReplaceAll(`
mkdir -p "@ROOT@/opt/kubeone/kubelet/9.9.8" "$BIN"
echo sum >"@ROOT@/opt/kubeone/kubelet/9.9.8/.sha256"
[ -e "$BIN/kubelet" ] || ln -s /opt/kubeone/kubelet/9.9.9/kubelet "$BIN/kubelet"
BINARIES='kubeadm 9.9.9 sum no u
kubelet 9.9.8 sum no u'
ROLE=worker
KUBELET=9.9.8
DOWN=yes
`, "@ROOT@", b.root)
	for _, name := range stateOfKubelet {
		b.write("var/lib/kubelet/"+name, "{}")
	}
	return b
}

var stateOfKubelet = []string{"cpu_manager_state", "memory_manager_state", "allocated_pods_state",
	"actuated_pods_state"}

func TestAKubeletThatGoesDownForgetsItsStateWhileItIsStopped(t *testing.T) {
	t.Parallel()
	b := aWorkerThatGoesDown(t)
	b.command("systemctl", `n=0
for f in '`+b.path("var/lib/kubelet")+`'/*_state; do [ ! -e "$f" ] || n=$((n + 1)); done
printf 'systemctl %s %s %s\n' "$*" "$n" "$(readlink '`+b.path("opt/kubeone/bin/kubelet")+`')" >>'`+b.path("calls")+`'`)
	b.must("stage_upgrade_worker; [ ! -e \"$UPGRADING\" ]")
	inOrder(t, b.calls(), "stop kubelet.service 4 /opt/kubeone/kubelet/9.9.9/kubelet",
		"restart kubelet.service 0 /opt/kubeone/kubelet/9.9.8/kubelet")
}

func TestAKubeletThatGoesUpKeepsItsState(t *testing.T) {
	t.Parallel()
	b := aWorkerThatGoesDown(t)
	b.must("DOWN=; stage_upgrade_worker")
	for _, name := range stateOfKubelet {
		if b.read("var/lib/kubelet/"+name) != "{}" {
			t.Errorf("%s is gone", name)
		}
	}
}
