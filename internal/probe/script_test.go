package probe

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"mvdan.cc/sh/v3/syntax"

	"kubeone/internal/model/observed"
	"kubeone/internal/testutil/short"
)

func TestScriptIsPOSIX(t *testing.T) {
	t.Parallel()
	if _, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(Script),
		"script.sh"); err != nil {
		t.Error(err)
	}
}

func TestScriptPassesShellcheck(t *testing.T) {
	t.Parallel()
	if out, err := exec.CommandContext(t.Context(), short.Tool(t, "shellcheck"), "--shell=sh",
		"script.sh").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestScriptOnThisMachine(t *testing.T) {
	t.Parallel()
	for _, shell := range [][]string{{"sh"}, {"dash"}, {"bash", "--posix"}, {"busybox", "sh"}} {
		t.Run(shell[0], func(t *testing.T) {
			t.Parallel()
			path := short.Tool(t, shell[0])
			sent := time.Now()
			out := output(t,
				exec.CommandContext(t.Context(), path, append(shell[1:], "-c", Script, "probe", argFacts)...))
			a, err := Parse(out, sent, time.Now())
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			name, err := os.Hostname()
			if err != nil {
				t.Fatal(err)
			}
			h := a.Host
			if h.CPUs != runtime.NumCPU() {
				t.Errorf("%d processors, want %d", h.CPUs, runtime.NumCPU())
			}
			if h.Hostname != strings.ToLower(name) || h.Arch == "" || h.Kernel == "" || h.CPUs == 0 ||
				h.MemoryMiB == 0 || h.DiskMiB == 0 || h.OS.ID == "" {
				t.Errorf("facts are missing: %+v", h)
			}
			if h.ClockSkew.Abs() > 10*time.Second {
				t.Errorf("this machine's clock is %v off its own", h.ClockSkew)
			}
		})
	}
}

// A whole host in a directory: the script's own text, with its paths moved there. The programs answer like those of a
// healthy control-plane host.
func TestScriptOnAControlPlaneHost(t *testing.T) {
	t.Parallel()
	root, text := controlPlaneHost(t)
	for name, test := range map[string]struct{ arg, env string }{
		"facts":       {argFacts, "A=b"},
		"credentials": {argCredentials, "A=b"},
		"an old curl": {argFacts, "OLD_CURL=yes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// A parallel test may have waited longer than a beat counts.
			now := time.Now()
			if err := os.Chtimes(filepath.Join(root, "/var/lib/kubeone/lock/beat"), now, now); err != nil {
				t.Fatal(err)
			}
			arg := test.arg
			cmd := exec.CommandContext(t.Context(), "sh", "-c", text, "probe", arg)
			cmd.Env = append(os.Environ(), "PATH="+root+"/shims:/usr/bin:/bin", test.env)
			out := output(t, cmd)
			// Facts carry their paths on a real host.
			a, err := Parse(bytes.ReplaceAll(out, []byte(root), nil), sent, received)
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			wantControlPlane(t, a.Host)
			wantCredentials(t, a.Credentials, arg == argCredentials)
			wantAccessFirst(t, out, root, arg == argCredentials)
			if bytes.Contains(out, []byte("KUBELETKEY")) || bytes.Contains(out, []byte("NEXTKEY")) {
				t.Errorf("the kubelet's private key was sent, or that of an authority:\n%s", out)
			}
			if arg == argFacts && (bytes.Contains(out, []byte("ETCDKEY")) || bytes.Contains(out, []byte("secret\t"))) {
				t.Errorf("secrets were sent unasked:\n%s", out)
			}
		})
	}
}

// An answer in a component's place from a user other than root counts only if the component runs as that user.
func TestScriptTellsWhoAnswersForAComponent(t *testing.T) {
	t.Parallel()
	root, text := controlPlaneHost(t)
	manifest := filepath.Join(root, "/etc/kubernetes/manifests/etcd.yaml")
	if err := os.WriteFile(manifest, []byte("spec:\n  securityContext:\n    runAsUser: 1000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", text, "probe", argFacts)
	cmd.Env = append(os.Environ(), "PATH="+root+"/shims:/usr/bin:/bin", "IMPOSTOR=yes")
	a, err := Parse(output(t, cmd), sent, received)
	if err != nil {
		t.Fatal(err)
	}
	if h := a.Host; h.Healthz != observed.No || h.EtcdHealth != observed.Yes {
		t.Errorf("kubelet %q, etcd %q", h.Healthz, h.EtcdHealth)
	}
	want := []observed.Port{
		{Number: 7443, Process: "apiserver", User: 1000}, {Number: 10248, Process: "kubelet", User: 1000},
	}
	got := a.Host.Impostors
	slices.SortFunc(got, func(a, b observed.Port) int { return a.Number - b.Number })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A component that accepts the connection but is late is asked again: the API server of a busy host is not dead.
func TestScriptRetriesLateComponents(t *testing.T) {
	t.Parallel()
	root, text := controlPlaneHost(t)
	late := filepath.Join(t.TempDir(), "late")
	for name, curl := range map[string]string{"curl": "", "an old curl": "yes"} {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", text, "probe", argFacts)
		cmd.Env = append(os.Environ(), "PATH="+root+"/shims:/usr/bin:/bin", "LATE="+late, "OLD_CURL="+curl)
		a, err := Parse(output(t, cmd), sent, received)
		if err != nil {
			t.Fatal(err)
		}
		if asked, err := os.ReadFile(late); err != nil || len(asked) != 3 || a.Host.APIServer != observed.Yes {
			t.Errorf("%s: asked %d times (%v): API server %q, want three times, and that it is well",
				name, len(asked), err, a.Host.APIServer)
		}
		if err := os.Remove(late); err != nil {
			t.Fatal(err)
		}
	}
}

// While etcd is unhealthy, no probe waits for an API server that cannot be healthy: a cluster without quorum is
// probed often.
func TestScriptDoesNotRetryWhileEtcdIsUnhealthy(t *testing.T) {
	t.Parallel()
	root, text := controlPlaneHost(t)
	late, sick := filepath.Join(t.TempDir(), "late"), filepath.Join(t.TempDir(), "sick")
	cmd := exec.CommandContext(t.Context(), "sh", "-c", text, "probe", argFacts)
	cmd.Env = append(os.Environ(), "PATH="+root+"/shims:/usr/bin:/bin", "LATE="+late, "SICK="+sick)
	a, err := Parse(output(t, cmd), sent, received)
	if err != nil {
		t.Fatal(err)
	}
	asked, err := os.ReadFile(late)
	if err != nil || len(asked) != 1 || a.Host.APIServer != observed.No {
		t.Errorf("the API server was asked %d times (%v): %q", len(asked), err, a.Host.APIServer)
	}
	if asked, err = os.ReadFile(sick); err != nil || len(asked) != 2 || a.Host.EtcdHealth != observed.No {
		t.Errorf("etcd was asked %d times (%v): %q", len(asked), err, a.Host.EtcdHealth)
	}
}

// The owner of a port is read only if it prevents an installation: on a host that is not a node yet.
func TestScriptNamesPortOwnersOnHostsOutsideCluster(t *testing.T) {
	t.Parallel()
	root, text := controlPlaneHost(t)
	if err := os.Remove(root + "/etc/kubernetes/kubelet.conf"); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", text, "probe", argFacts)
	cmd.Env = append(os.Environ(), "PATH="+root+"/shims:/usr/bin:/bin")
	a, err := Parse(output(t, cmd), sent, received)
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Host.Ports) != 1 || a.Host.Ports[0] != (observed.Port{Number: 2379, Process: "etcd"}) {
		t.Errorf("ports %+v", a.Host.Ports)
	}
}

func wantControlPlane(t *testing.T, h observed.Host) {
	t.Helper()
	for what, ok := range map[string]bool{
		"marker": h.Marker != nil && *h.Marker == observed.Marker{
			Cluster: "demo", Role: "control-plane", RunID: "r1", Complete: true, ID: "cp-a", Derived: true,
			Node: "cp-1",
		},
		"digests":           h.Digests["kubelet"] == "abc",
		"lock":              h.Lock != nil && h.Lock.Holder == "ann@laptop" && h.Lock.Generation == 3 && h.Lock.Live,
		"step":              h.Step != nil && h.Step.Stage == "init",
		"upgrade":           h.Upgrading == "1.36.3",
		"controllers":       strings.HasPrefix(h.ControllerFiles.Image, "kubeone.k8c.io/controllers:v1 sha256:"),
		"versions of ours":  h.Kubelet.Version == "1.36.3" && h.Binaries["kubeadm"] == "1.36.3",
		"broken link":       h.Binaries["gone"] == "",
		"version of others": h.Containerd.Version == "1.7.22",
		"units": h.Kubelet.Active && h.Kubelet.Enabled && h.Kubelet.Since == "42" &&
			h.Containerd.State == "active/running",
		"health":     h.Healthz == observed.Yes && h.APIServer == observed.No && h.EtcdHealth == observed.Yes,
		"not asked":  h.Scheduler == observed.Unknown,
		"manifests":  strings.Join(h.Manifests, " ") == "etcd kube-apiserver",
		"API server": h.APIServerVersion == "1.36.3",
		"presence": h.KubeletConf == observed.Yes && h.KubeletCert == observed.Yes && h.AdminConf == observed.Yes &&
			h.PKI != observed.Yes,
		"endpoint":     h.Endpoint == "https://10.0.0.10:6443",
		"CA":           strings.HasPrefix(h.CAHash, "sha256:"),
		"certificates": len(h.Certificates) == 5,
		"authorities": len(h.Authorities) == 3 && len(h.Authorities[observed.ClusterCA].Trusted) == 1 &&
			len(h.Authorities[observed.EtcdCA].Trusted) == 2 &&
			h.Authorities[observed.EtcdCA].Next == h.Authorities[observed.EtcdCA].Signer() &&
			h.Authorities[observed.EtcdCA].BegunPhase == "use" &&
			len(h.Authorities[observed.ServiceAccounts].Trusted) == 1 &&
			h.Authorities[observed.ServiceAccounts].BegunPhase == "forget",
		"ports":     len(h.Ports) == 1 && h.Ports[0] == observed.Port{Number: 2379},
		"addresses": strings.Join(h.Addresses, " ") == "10.0.0.11",
		"system":    h.OS.ID == "debian",
	} {
		if !ok {
			t.Errorf("%s: not as laid out: %+v", what, h)
		}
	}
}

// wantAccessFirst checks that the access to the cluster is printed before the slow parts.
func wantAccessFirst(t *testing.T, out []byte, root string, asked bool) {
	t.Helper()
	head, rest, found := bytes.Cut(bytes.ReplaceAll(out, []byte(root), nil), []byte("\n"+accessLine))
	if !found {
		t.Fatalf("the answer has no line %q", accessLine)
	}
	a, err := parseAccess(append(head, '\n'))
	if err != nil {
		t.Fatal(err)
	}
	wantCredentials(t, a.Credentials, asked)
	if a.APIPort != 7443 {
		t.Errorf("port %d of the API server, want 7443", a.APIPort)
	}
	for _, later := range []string{"health\t", "block\tunit\n", "block\tfile\n"} {
		if !bytes.Contains(rest, []byte(later)) {
			t.Errorf("%q does not come after it", later)
		}
	}
}

func wantCredentials(t *testing.T, c Credentials, asked bool) {
	t.Helper()
	if got := strings.Contains(string(c.Kubeconfig), "client-key-data") && c.Etcd.Complete(); got != asked {
		t.Errorf("credentials complete: %v, asked for: %v", got, asked)
	}
	if asked && !strings.Contains(string(c.Etcd.Key), "ETCDKEY") {
		t.Error("the etcd client key is not that of the host")
	}
}

// A firewall has our rules if they are exactly the recorded ones.
func TestScriptTellsWhetherFirewallsHaveOurRules(t *testing.T) {
	t.Parallel()
	root, text := controlPlaneHost(t)
	write := func(path, content string, mode os.FileMode) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(root+path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(root+path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"ufw", "firewall-cmd"} {
		write("/shims/"+name, "#!/bin/sh\necho never run; exit 1\n", 0o700)
	}
	facts := func() []string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sh", "-c", text, "probe")
		cmd.Env = append(os.Environ(), "PATH="+root+"/shims:/usr/bin:/bin")
		l, err := readLines(output(t, cmd))
		if err != nil {
			t.Fatal(err)
		}
		return l["firewall"]
	}
	const rule = "### tuple ### allow tcp 10250 0.0.0.0/0 any 0.0.0.0/0 in comment=6b7562656f6e65\n"
	write("/etc/ufw/user.rules", "### tuple ### allow tcp 22 0.0.0.0/0 any 0.0.0.0/0 in\n"+rule, 0o600)
	write("/etc/ufw/ufw.conf", "ENABLED=no\n", 0o600)
	write("/shims/systemctl", "#!/bin/sh\n[ \"$1\" != is-active ] || exit 3\n", 0o700)
	if got := facts(); len(got) > 0 {
		t.Errorf("none is active: %q", got)
	}
	write("/etc/ufw/ufw.conf", "ENABLED=yes\n", 0o600)
	write("/shims/systemctl", "#!/bin/sh\n", 0o700)
	write("/etc/firewalld/policies/kubeone-host.xml", "<policy/>\n", 0o600)
	if got := facts(); !slices.Equal(got, []string{"ufw other", "firewalld other"}) {
		t.Errorf("nothing is recorded: %q", got)
	}
	write("/etc/kubeone/firewall/ufw", rule, 0o600)
	write("/etc/kubeone/firewall/firewalld", "<policy/>\n", 0o600)
	if got := facts(); !slices.Equal(got, []string{"ufw ours", "firewalld ours"}) {
		t.Errorf("with what is recorded: %q", got)
	}
	write("/etc/ufw/user.rules", "", 0o600)
	write("/etc/firewalld/policies/kubeone-host.xml", "<policy target='DROP'/>\n", 0o600)
	if got := facts(); !slices.Equal(got, []string{"ufw other", "firewalld other"}) {
		t.Errorf("with other rules: %q", got)
	}
	write("/etc/ufw/ufw.conf", "ENABLED=no\n", 0o600)
	write("/etc/kubeone/firewall/ufw.off", "", 0o600)
	if got := facts(); !slices.Equal(got, []string{"firewalld other", "ufw off"}) {
		t.Errorf("with one that was switched off: %q", got)
	}
}

func TestFirewallsAreReadStrictly(t *testing.T) {
	t.Parallel()
	l := lines{"firewall": {"ufw yes", "iptables ours", "ufw other", "ufw ours", "firewalld ours; x", "firewalld ours"}}
	want := []observed.Firewall{{Name: "ufw"}, {Name: "firewalld", Ours: true}}
	if diff := cmp.Diff(want, parseFirewalls(l)); diff != "" {
		t.Error(diff)
	}
	l = lines{"firewall": {"firewalld off", "firewalld ours"}}
	if diff := cmp.Diff([]observed.Firewall{{Name: "firewalld", Off: true}}, parseFirewalls(l)); diff != "" {
		t.Error(diff)
	}
}

// A changed file is restorable if the host has kept a complete copy of the original.
func TestScriptSaysWhatIsEditedAndRestorable(t *testing.T) {
	t.Parallel()
	root, text := controlPlaneHost(t)
	write := func(path, content string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(root+path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(root+path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var noted strings.Builder
	for name, is := range map[string]struct{ now, kept string }{
		"whole":   {"somebody's", "whole"},
		"gone":    {"", "gone"},
		"damaged": {"somebody's", "something else"},
		"bare":    {"somebody's", ""},
		"ours":    {"ours", "ours"},
	} {
		sum := fmt.Sprintf("%x", sha256.Sum256([]byte(name)))
		if is.kept != "" {
			write("/etc/kubeone/kept/"+sum, is.kept)
		}
		if is.now != "" {
			write("/etc/"+name, is.now)
		}
		fmt.Fprintf(&noted, "%s  %s/etc/%s\n", sum, root, name)
	}
	write("/etc/kubeone/files", noted.String())
	l, err := readLines(output(t, exec.CommandContext(t.Context(), "sh", "-c", text, "probe")))
	if err != nil {
		t.Fatal(err)
	}
	edited, restorable := map[string]bool{}, map[string]bool{}
	for _, said := range l["edited"] {
		path, _, _ := strings.Cut(said, ": ")
		edited[filepath.Base(path)] = true
	}
	for _, path := range l["restorable"] {
		restorable[filepath.Base(path)] = true
	}
	if diff := cmp.Diff(map[string]bool{"whole": true, "gone": true, "damaged": true, "bare": true},
		edited); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]bool{"whole": true, "gone": true}, restorable); diff != "" {
		t.Error(diff)
	}
}

// Of a changed static pod, the script prints the names of flags and fields, and which mounts.
func TestScriptSaysWhatIsOtherInAStaticPod(t *testing.T) {
	t.Parallel()
	root, text := controlPlaneHost(t)
	const was = "spec:\n  containers:\n  - command:\n    - kube-apiserver\n    - --secure-port=7443\n" +
		"    - --profiling=false\n    image: registry:5000/kube-apiserver:v1.36.3\n" +
		"    resources:\n      requests:\n        cpu: 250m\n"
	now := strings.NewReplacer("    - --profiling=false\n", "    - --oidc-secret=s3cret\n",
		"7443", "8443", "cpu: 250m\n", "cpu: 1\n"+
			"    volumeMounts:\n    - mountPath: /etc/audit\n      name: audit # mine\n").Replace(was)
	file, sum := root+"/etc/kubernetes/manifests/kube-apiserver.yaml", fmt.Sprintf("%x", sha256.Sum256([]byte(was)))
	for path, content := range map[string]string{
		file: now, root + "/etc/kubeone/kept/" + sum: was, root + "/etc/kubeone/files": sum + "  " + file + "\n",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out := output(t, exec.CommandContext(t.Context(), "sh", "-c", text, "probe"))
	if strings.Contains(string(out), "s3cret") {
		t.Error("the value of a flag is said")
	}
	l, err := readLines(out)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, what := range []string{
		"--oidc-secret", "--profiling", "--secure-port", "cpu", "mountPath: /etc/audit", "name", "volumeMounts",
	} {
		want = append(want, file+" "+what)
	}
	if diff := cmp.Diff(want, l["pod-edit"]); diff != "" {
		t.Error(diff)
	}
}

// The guard of a control-plane host needs these tools. Where it cannot start, the script prints nothing.
func TestWhatTheGuardLacks(t *testing.T) {
	t.Parallel()
	root, text := controlPlaneHost(t)
	tools := t.TempDir()
	for _, dir := range []string{"/bin", "/usr/bin", "/usr/sbin"} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.Name() != "nft" && e.Name() != "curl" {
				_ = os.Symlink(filepath.Join(dir, e.Name()), filepath.Join(tools, e.Name())) // it may exist
			}
		}
	}
	text = regexp.MustCompile(`(?m)^PATH=.*$`).ReplaceAllString(text, "PATH="+root+"/shims:"+tools)
	for _, want := range [][]string{{"nft"}, nil} {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", text, "probe", argFacts)
		a, err := Parse(output(t, cmd), sent, received)
		if err != nil || !slices.Equal(a.Host.Unguarded, want) {
			t.Errorf("%v (%v), want %v", a.Host.Unguarded, err, want)
		}
		if err := os.WriteFile(root+"/shims/nft", nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

// controlPlaneHost creates the files of a host. It returns its root and the script's text for it.
func controlPlaneHost(t *testing.T) (root, text string) {
	t.Helper()
	root = t.TempDir()
	write := func(path, content string, mode os.FileMode) {
		t.Helper()
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
	cert := certificateOf(t, "control-plane.txt")
	key := func(word string) string {
		return "-----BEGIN EC PRIVATE KEY-----\n" + word + "\n-----END EC PRIVATE KEY-----\n"
	}
	for path, content := range map[string]string{
		"/etc/os-release": "ID=debian\nPRETTY_NAME=\"Debian\"",
		"/etc/kubeone/marker": "cluster=demo\nrole=control-plane\nrun=r1\ncomplete=yes\n" +
			"id=cp-a\nid-derived=yes\nnode=cp-1\n",
		"/etc/kubeone/digests": "kubelet abc\n",
		"/var/lib/kubeone/lock/owner": "holder=ann@laptop\nrun=r1\ngeneration=3\n" +
			"since=1700000000\n",
		"/var/lib/kubeone/lock/beat": "",
		upgradeFile:                  "1.36.3",
		imageNote: "kubeone.k8c.io/controllers:v1 sha256:" +
			strings.Repeat("a", 64),
		"/var/lib/kubeone/step/current":                   "run=r1\nstage=init\nstep=init/cp-1\n",
		"/etc/kubernetes/pki/ca.crt":                      cert,
		"/etc/kubernetes/pki/apiserver-etcd-client.crt":   cert,
		"/etc/kubernetes/pki/apiserver-etcd-client.key":   key("ETCDKEY"),
		"/etc/kubernetes/pki/apiserver.key":               key("APIKEY"),
		"/etc/kubernetes/pki/etcd/ca.crt":                 cert + cert,
		"/etc/kubernetes/pki/next/etcd-ca.crt":            cert,
		"/etc/kubernetes/pki/next/etcd-ca.key":            key("NEXTKEY"),
		"/etc/kubernetes/pki/sa.pub":                      publicKey,
		"/etc/kubeone/rotation":                           "etcd use\nservice-account forget\n",
		"/etc/kubernetes/pki/etcd/server.crt":             strings.TrimSuffix(cert, "\n"),
		"/var/lib/kubelet/pki/kubelet-client-current.pem": key("KUBELETKEY") + cert + key("KUBELETKEY"),
		"/etc/kubernetes/admin.conf": "clusters:\n- cluster:\n" +
			"    server: https://10.0.0.10:6443\nusers:\n- user:\n    client-key-data: QURNSU4=\n",
		"/etc/kubernetes/kubelet.conf": "clusters:\n- cluster:\n    server: https://10.0.0.10:6443\n" +
			"users:\n- user:\n    client-certificate: /var/lib/kubelet/pki/kubelet-client-current.pem\n",
		"/etc/kubernetes/manifests/kube-apiserver.yaml": "spec:\n  - command:\n    - --secure-port=7443\n" +
			"    image: registry:5000/kube-apiserver:v1.36.3\n",
		"/etc/kubernetes/manifests/etcd.yaml": "spec:\n    image: etcd:3.6.8-0\n",
	} {
		write(path, content, 0o600)
	}
	for path, content := range map[string]string{
		"/opt/kubeone/kubelet/1.36.3/kubelet":  "echo never run; exit 1",
		"/opt/kubeone/kubeadm/v1.36.3/kubeadm": "echo never run; exit 1",
		"/usr/bin/containerd":                  "echo containerd containerd.io v1.7.22 7f7fdf5f",
		"/shims/ip": `echo '2: eth0    inet 10.0.0.11/24 brd 10.0.0.255 scope global eth0'; ` +
			`echo '3: cni0    inet 10.244.0.1/24 scope global cni0'`,
		"/shims/ss": `case $1 in *p*) whose='users:(("etcd",pid=1,fd=8))' ;; esac; ` +
			`echo "LISTEN 0 4096 127.0.0.1:2379 0.0.0.0:* ${whose:-}"; echo 'LISTEN 0 1 0.0.0.0:22 0.0.0.0:*'; ` +
			`case $1:${IMPOSTOR:-} in *e*:?*) for port in 10248 2381 7443 10257; do ` +
			`echo "LISTEN 0 1 127.0.0.1:$port 0.0.0.0:* uid:1000 ino:4 sk:5"; done ;; esac`,
		"/shims/curl": `write= urls=
while [ $# -gt 0 ]; do
	case $1 in
	-w) write=$2 && shift ;;
	-m | -o) shift ;;
	--parallel) [ -z "${OLD_CURL:-}" ] || exit 2 ;;
	http*) urls="$urls $1" ;;
	esac
	shift
done
for url in $urls; do
	case $url in
	*:10248/healthz | *:2381/health) code=200 ;;
	*:7443/readyz)
		code=500
		case ${LATE:-} in ?*) echo >>"$LATE" && code='000 0.000213' ;; esac
		[ -z "${LATE:-}" ] || [ "$(wc -l <"$LATE")" -lt 3 ] || code=200
		;;
	*:2381/readyz)
		code=404
		[ -z "${SICK:-}" ] || { echo >>"$SICK" && code=503; }
		;;
	*) code=000 ;;
	esac
	[ "${code#* }" != "$code" ] || code="$code 0.000000"
	case $write in
	*url_effective*) echo "$url $code" ;;
	*) printf %s "$code" ;;
	esac
done
exit 7`,
		"/shims/sleep": ``,
		"/shims/systemctl": `cat <<END
ExecStart={ path=` + root + `/usr/bin/containerd ; argv[]=containerd ; ignore_errors=no }
Id=containerd.service
LoadState=loaded
ActiveState=active
SubState=running
UnitFileState=enabled
ActiveEnterTimestampMonotonic=41

ExecStart={ path=` + root + `/opt/kubeone/bin/kubelet ; argv[]=kubelet \$ARGS * ; ignore_errors=no }
Id=kubelet.service
LoadState=loaded
ActiveState=active
SubState=running
UnitFileState=enabled
ActiveEnterTimestampMonotonic=42

Id=kubeone-step.service
ActiveState=activating
END`,
	} {
		write(path, "#!/bin/sh\n"+content+"\n", 0o755)
	}
	if err := os.MkdirAll(root+"/opt/kubeone/bin", 0o755); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{
		"kubelet": "/opt/kubeone/kubelet/1.36.3/kubelet", "kubeadm": "/opt/kubeone/kubeadm/v1.36.3/kubeadm",
		"gone": "/opt/kubeone/gone/1.0.0/gone",
	} {
		if err := os.Symlink(root+target, root+"/opt/kubeone/bin/"+name); err != nil {
			t.Fatal(err)
		}
	}
	moved := strings.NewReplacer("/etc/", root+"/etc/", "/var/lib/", root+"/var/lib/", "/opt/kubeone",
		root+"/opt/kubeone")
	return root, moved.Replace(Script)
}

// certificateOf returns the first certificate in a file of testdata.
func certificateOf(t *testing.T, name string) string {
	t.Helper()
	l, err := readLines(read(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(l.fileContents("pem")[clusterCA])
}

func output(t *testing.T, cmd *exec.Cmd) []byte {
	t.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	// Background processes of the shell keep its output open, and are killed.
	cmd.SysProcAttr, cmd.WaitDelay = &syscall.SysProcAttr{Setpgid: true}, 10*time.Second
	out, err := cmd.Output()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	return out
}

// publicKey is the public key of a key pair for service accounts.
const publicKey = `-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEQUKQyAl6eaNNq39wEPB3d4UvSIp7
+zuq5K6jhShbt9yGsLJstjJCOGM+lenAgbS1zfkiHV+74lZtv741c+ll2A==
-----END PUBLIC KEY-----
`

// The script prints files with keys that users other than root may read, and no others.
func TestScriptSaysWhichFilesWithKeysAreExposed(t *testing.T) {
	t.Parallel()
	root, text := controlPlaneHost(t)
	uid := os.Getuid()
	for path, mode := range map[string]os.FileMode{
		"/etc/kubernetes/admin.conf": 0o644, "/etc/kubernetes/kubelet.conf": 0o600, "/etc/kubernetes/other.conf": 0o644,
		"/etc/kubernetes/pki/sa.key": 0o640, "/etc/kubernetes/pki/sa.pub": 0o644,
		"/etc/kubernetes/pki/etcd/ca.key":           0o604,
		"/var/lib/kubelet/pki/kubelet-client-1.pem": 0o660, "/etc/containerd/conf.d/kubeone-registry-a.toml": 0o644,
		"/etc/kubernetes/encryption/1.yaml": 0o644, "/etc/kubernetes/kubeone/audit.yaml": 0o644,
	} {
		if err := os.MkdirAll(filepath.Dir(root+path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(root+path, []byte("a key"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(root+path, mode); err != nil {
			t.Fatal(err)
		}
	}
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Symlink("kubelet-client-1.pem", root+"/var/lib/kubelet/pki/kubelet-client-now.pem"))
	l, err := readLines(output(t, exec.CommandContext(t.Context(), "sh", "-c", text, "probe")))
	must(err)
	said := map[string]string{}
	for _, line := range l["exposed"] {
		mode, rest, _ := strings.Cut(line, " ")
		user, path, _ := strings.Cut(rest, " ")
		if user != strconv.Itoa(uid) {
			t.Errorf("owner of %s: %s", path, user)
		}
		if uid == 0 || mode != "600" {
			said[filepath.Base(path)] = mode
		}
	}
	want := map[string]string{
		"admin.conf": "644", "sa.key": "640", "ca.key": "604", "kubelet-client-1.pem": "660",
		"kubeone-registry-a.toml": "644", "1.yaml": "644", "audit.yaml": "644",
	}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Error(diff)
	}
}
