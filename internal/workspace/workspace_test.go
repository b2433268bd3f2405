package workspace

import (
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"kubeone/internal/engine"
	"kubeone/internal/host"
	"kubeone/internal/host/sshpool"
	"kubeone/internal/model/desired"
	"kubeone/internal/release"
	"kubeone/internal/testutil/sshtest"
)

// manifestText is one control-plane host and one worker.
const manifestText = `apiVersion: kubeone.k8c.io/v1beta2
kind: KubeOneCluster
name: demo
versions:
  kubernetes: 1.36.3
cloudProvider:
  none: {}
controlPlane:
  hosts:
    - publicAddress: 192.0.2.11
      sshUsername: root
staticWorkers:
  hosts:
    - publicAddress: 192.0.2.21
      hostname: worker
      sshUsername: root
clusterNetwork:
  cni:
    flannel: {}
`

// options returns the options for a manifest in a directory of the test.
func options(t *testing.T, manifest string) Options {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "kubeone.yaml")
	manifest = strings.ReplaceAll(manifest, "sshUsername: root",
		"sshUsername: root\n      sshPrivateKeyFile: "+sshtest.WriteKey(t, "").Path)
	if err := os.WriteFile(path, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	return Options{
		Manifest: path, StateDir: filepath.Join(dir, "state"), Now: time.Now,
		Pool: sshpool.Options{HomeDir: dir, SystemDir: dir, Getenv: func(string) string { return "" }},
	}
}

func TestMistakesAreFoundBeforeAnyHostIsAsked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		text   string
		change func(*Options)
		says   string
	}{
		{"no manifest", manifestText, func(o *Options) { o.Manifest += ".gone" }, "kubeone.yaml.gone"},
		{"no bundle", manifestText, func(o *Options) { o.Bundles = []string{"/nonexistent/bundle.tar"} },
			"/nonexistent/bundle.tar"},
		{"a bundle that is none", manifestText, func(o *Options) { o.Bundles = []string{o.Manifest} }, "kubeone.yaml"},
		{"a digest without its bundle", manifestText,
			func(o *Options) { o.BundleSHA256 = []string{strings.Repeat("a", 64)} }, "no bundle has sha256 aaaa"},
		{"a list of digests that is none", manifestText, func(o *Options) { o.Digests = o.Manifest },
			"kubeone.yaml, line 1: \"apiVersion:"},
		{"a drain without time", manifestText, func(o *Options) { o.Upgrade.DrainTimeout = new(time.Duration) },
			"--drain-timeout"},
		{
			"a host key that is none", strings.Replace(manifestText, "sshUsername: root",
				"sshUsername: root\n      sshHostPublicKey: bm90IGEga2V5", 1),
			func(*Options) {}, "is not a valid SSH public key",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := options(t, c.text)
			c.change(&o)
			w, err := Open(t.Context(), o)
			if err == nil {
				w.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want an error that says %q", err, c.says)
			}
		})
	}
}

// Without any key, one error names all hosts, not just the first.
func TestHostsWithoutAKeyAreNamedTogether(t *testing.T) {
	t.Parallel()
	o := options(t, strings.ReplaceAll(manifestText, "sshUsername: root", "sshPort: 22"))
	_, err := Open(t.Context(), o)
	const says = "192.0.2.11 and worker: find a key to log in with: no private key"
	if err == nil || !strings.HasPrefix(err.Error(), says) {
		t.Errorf("got %v", err)
	}
}

func TestHostsAreNamedInAnyWay(t *testing.T) {
	t.Parallel()
	w, err := Open(t.Context(), options(t, manifestText))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	got, err := w.HostIDs("--host", "WORKER", "192.0.2.11")
	if diff := cmp.Diff([]string{"192.0.2.21", "192.0.2.11"}, got); err != nil || diff != "" {
		t.Errorf("%v, %s", err, diff)
	}
	var wrong *engine.ConfigError
	_, err = w.HostIDs("--host", "nobody")
	for _, says := range []string{`--host names "nobody", which is not a host in`, "its hosts are 192.0.2.11, worker"} {
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %q in it", err, says)
		}
	}
	if diff := cmp.Diff([]string{"192.0.2.21", "gone"}, w.MemberNames("worker", "gone")); diff != "" {
		t.Error(diff)
	}
}

func TestAWorkspaceKnowsItsManifest(t *testing.T) {
	t.Parallel()
	o := options(t, manifestText)
	o.Version = "v1.35.4"
	w, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if filepath.Base(w.Journals()) != "journal" || filepath.Base(filepath.Dir(w.Journals())) != "demo" {
		t.Errorf("journals in %q", w.Journals())
	}
	if who, where, found := strings.Cut(Holder(), "@"); !found || who == "" || where == "" {
		t.Errorf("holder %q", Holder())
	}
	want := w.Engine.Want()
	if w.Name() != "demo" || want.KubernetesVersion != "1.35.4" ||
		!strings.Contains(string(w.Manifest()), "name: demo") {
		t.Errorf("want %+v", want)
	}
	if w.Engine.Host("192.0.2.21") == nil {
		t.Error("the engine has no way to the worker")
	}
	if _, _, err := w.releases.Blob(strings.Repeat("0", 64)); err == nil || !strings.Contains(err.Error(), "--bundle") {
		t.Errorf("without a bundle there is nothing to upload: %v", err)
	}
}

func TestARequestOfNoReleaseIsAnError(t *testing.T) {
	t.Parallel()
	o := options(t, manifestText)
	w, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var unsupported *release.UnsupportedError
	if _, err := w.releases.Resolve(t.Context(), release.Want{
		KubernetesVersion: "1.36.3",
		Arch:              "m68k",
	}); !errors.As(err, &unsupported) {
		t.Errorf("got %v", err)
	}
}

func TestTargets(t *testing.T) {
	t.Parallel()
	key, err := sshtest.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	wire := base64.StdEncoding.EncodeToString(key.PublicKey().Marshal())
	plain := desired.Host{ID: "192.0.2.1", PublicAddress: "192.0.2.1"}
	full := desired.Host{ID: "192.0.2.1", PublicAddress: "192.0.2.1", Hostname: "cp-1", SSH: desired.SSH{
		User: "admin", Port: 2222, KeyFile: "key", CertFile: "cert", AgentSocket: "sock", HostPublicKey: wire,
		Bastion: "192.0.2.9", BastionPort: 22, BastionUser: "jump", BastionKeyFile: "other", BastionHostPublicKey: wire,
	}}
	brief := full
	brief.SSH.BastionUser, brief.SSH.BastionKeyFile, brief.SSH.BastionHostPublicKey, brief.SSH.HostPublicKey = "", "",
		"", ""
	bastion := func(user, file string, keys []ssh.PublicKey) []host.Target {
		return []host.Target{
			{Name: "192.0.2.9", AcceptAs: "192.0.2.9", Address: "192.0.2.9", Port: 22, User: user, KeyFile: file,
				AgentSocket: "sock",
				HostKeys:    keys},
		}
	}
	first := host.Target{
		Name: "cp-1", AcceptAs: "cp-1", Address: "192.0.2.1", Port: 2222, User: "admin", KeyFile: "key",
		CertFile: "cert", AgentSocket: "sock",
	}
	withKeys, without := first, first
	keys := []ssh.PublicKey{key.PublicKey()}
	withKeys.HostKeys, withKeys.Bastions = keys, bastion("jump", "other", keys)
	without.Bastions = bastion("admin", "key", nil)
	for name, c := range map[string]struct {
		host desired.Host
		want host.Target
	}{
		"what the manifest does not say stays zero": {plain,
			host.Target{Name: "192.0.2.1", AcceptAs: "192.0.2.1", Address: "192.0.2.1"}},
		"all that it can say":     {full, withKeys},
		"a bastion like its host": {brief, without},
	} {
		got, err := Target(c.host)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got, cmp.Comparer(func(a, b ssh.PublicKey) bool {
			return string(a.Marshal()) == string(b.Marshal())
		})); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for _, bad := range []desired.SSH{
		{HostPublicKey: "%"},
		{HostPublicKey: "bm90IGEga2V5"},
		{Bastion: "b", BastionHostPublicKey: "%"},
	} {
		if _, err := Target(desired.Host{ID: "192.0.2.1", SSH: bad}); err == nil ||
			!strings.Contains(err.Error(), "host public key") {
			t.Errorf("%+v: got %v", bad, err)
		}
	}
}

func TestStateDirectoryOfTheEnvironment(t *testing.T) { // it sets the environment
	t.Setenv("KUBEONE_STATE", "")
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("HOME", "/home/me")
	for _, c := range []struct{ name, value, want string }{
		{"HOME", "/home/me", "/home/me/.local/state/kubeone"},
		{"XDG_STATE_HOME", "/xdg", "/xdg/kubeone"},
		{"KUBEONE_STATE", "/own", "/own"},
	} {
		t.Setenv(c.name, c.value)
		if got, err := DefaultStateDir(); got != c.want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", c.name, got, err, c.want)
		}
	}
}

func TestAManifestThatIsGoneIsSaidToBe(t *testing.T) {
	t.Parallel()
	o := options(t, manifestText)
	o.Manifest += ".gone"
	if _, err := Open(t.Context(), o); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
