package script

import (
	"kubeone/internal/componentconfig"
	"kubeone/internal/testutil/configtest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kubeone/internal/model/desired"
)

// The script names the files and has nothing of what is in them.
func TestScriptsHoldNoCredentials(t *testing.T) {
	t.Parallel()
	text := rendered(t, everything())
	for _, secret := range []string{"hunter2", "dTpwYXNz", "t0ken", "pa%27ss", "puller"} {
		if strings.Contains(text, secret) {
			t.Errorf("the script has %q", secret)
		}
	}
	if !strings.Contains(text, "\nEnvironmentFile=-/etc/kubeone/proxy.env\n") {
		t.Error("containerd does not read its proxy's password")
	}
}

// credentialed is a worker that runs, and to which these credentials are brought.
func credentialed(t *testing.T, c *desired.Credentials) *box {
	t.Helper()
	b := configured(t, "credentials")
	b.command("crictl", ":")
	b.command("ctr", `case "$*" in "plugins ls") echo 'io.containerd.grpc.v1  cri  -  ok   ' ;; esac`)
	b.bring(c)
	return b
}

// bring puts credentials where the operator's machine puts them, and has the script name them.
func (b *box) bring(c *desired.Credentials) {
	b.t.Helper()
	for _, v := range credentialVariables(c) {
		b.script += "\n" + v.Name + "=" + Quote(strings.ReplaceAll(value(b.t, v), "/etc/", b.root+"/etc/")) + "\n"
	}
	if c == nil {
		return
	}
	files := componentconfig.CredentialFiles(*c)
	names := []string{"-C", b.path("brought"), "-cf", b.path("brought/credentials.tar")}
	b.mkdir("brought")
	for path, content := range files {
		b.write("brought/"+filepath.Base(path), content)
		names = append(names, filepath.Base(path))
	}
	if len(files) == 0 {
		return
	}
	if out, err := exec.CommandContext(b.t.Context(), "tar", names...).CombinedOutput(); err != nil {
		b.t.Fatalf("%v: %s", err, out)
	}
	b.write("run/kubeone/secrets/credentials.tar", b.read("brought/credentials.tar"))
}

const registryFile = "etc/containerd/conf.d/kubeone-registry-registry.example.com:5000.toml"

func (b *box) modeOf(name string) os.FileMode {
	b.t.Helper()
	about, err := os.Stat(b.path(name))
	if err != nil {
		b.t.Fatal(err)
	}
	return about.Mode().Perm()
}

// Only containerd restarts for its credentials. Only root can read them, and no digest of them is recorded.
func TestCredentialsComeToAHost(t *testing.T) {
	t.Parallel()
	credentials := configtest.Credentials()
	b := credentialed(t, &credentials)
	out := b.must("umask 022; stage_reconfigure")
	for path, want := range componentconfig.CredentialFiles(credentials) {
		path = strings.TrimPrefix(path, "/")
		if got := b.read(path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
		if mode := b.modeOf(path); mode != 0o600 {
			t.Errorf("%s has mode %o", path, mode)
		}
	}
	calls := b.calls()
	if !slices.Contains(calls, "systemctl restart containerd.service") ||
		slices.Contains(calls, "systemctl restart kubelet.service") || !slices.Contains(calls, "ctr plugins ls") {
		t.Errorf("containerd alone starts anew, and is asked whether it serves:\n%s", strings.Join(calls, "\n"))
	}
	said := out + strings.Join(calls, "\n") + b.read("etc/kubeone/files") + b.read("etc/kubeone/digests")
	for _, secret := range []string{"hunter2", "kubeone-registry", "proxy.env"} {
		if strings.Contains(said, secret) {
			t.Errorf("%q is in what was called, said or noted:\n%s", secret, said)
		}
	}
	b.must("stage_reconfigure")
	if again := strings.Join(b.calls(), "\n"); strings.Contains(again, "restart") {
		t.Errorf("the second time restarts something:\n%s", again)
	}
}

func TestCredentialsThatNobodyWantsAreRemoved(t *testing.T) {
	t.Parallel()
	none := map[string]desired.RegistryAuth{}
	for name, c := range map[string]struct {
		credentials     *desired.Credentials
		registry, proxy bool // they stay
		restarts        bool
	}{
		"known":                    {&desired.Credentials{Registries: none}, false, false, true},
		"registries are not known": {&desired.Credentials{}, true, false, true},
		"nothing is known":         {nil, true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := credentialed(t, c.credentials)
			b.write(registryFile, "old")
			b.write("etc/kubeone/proxy.env", "old")
			b.write("etc/containerd/conf.d/own.toml", "theirs")
			b.must("stage_reconfigure")
			if got := b.read(registryFile) != ""; got != c.registry {
				t.Errorf("the registry's stay: %t, want %t", got, c.registry)
			}
			if got := b.read("etc/kubeone/proxy.env") != ""; got != c.proxy {
				t.Errorf("the proxy's stay: %t, want %t", got, c.proxy)
			}
			if b.read("etc/containerd/conf.d/own.toml") != "theirs" {
				t.Error("a file of somebody else's is gone")
			}
			if got := slices.Contains(b.calls(), "systemctl restart containerd.service"); got != c.restarts {
				t.Errorf("containerd starts anew: %t, want %t", got, c.restarts)
			}
		})
	}
}

// A containerd that does not take them has what it had before, to the byte.
func TestCredentialsThatAreRefusedAreTakenBack(t *testing.T) {
	t.Parallel()
	credentials := configtest.Credentials()
	b := credentialed(t, &credentials)
	b.write(registryFile, "old")
	b.script += "\nwait_for() { case $2 in *\"new credentials\") die \"gave up\" ;; esac; }\n"
	b.fails("stage_reconfigure", "this host has again what it had before")
	if got := b.read(registryFile); got != "old" {
		t.Errorf("it is %q", got)
	}
	if got := b.read("etc/kubeone/proxy.env"); got != "" {
		t.Errorf("what was not there is %q", got)
	}
	restarts := 0
	for _, call := range b.calls() {
		if call == "systemctl restart containerd.service" {
			restarts++
		}
	}
	if restarts != 2 {
		t.Errorf("containerd was started %d times, want once with the new and once with the old ones", restarts)
	}
}

// A stage that was killed between the files and the restart owes the restart to the next one.
func TestCredentialsThatWereWrittenAreReadInTheEnd(t *testing.T) {
	t.Parallel()
	credentials := configtest.Credentials()
	b := credentialed(t, &credentials)
	b.must("credential_files")
	b.calls()
	b.must("stage_reconfigure")
	if calls := b.calls(); !slices.Contains(calls, "systemctl restart containerd.service") {
		t.Errorf("containerd does not know of them:\n%s", strings.Join(calls, "\n"))
	}
}

// An operator who runs a script by hand may not have them.
func TestWithoutTheirFileCredentialsStay(t *testing.T) {
	t.Parallel()
	credentials := configtest.Credentials()
	b := credentialed(t, &credentials)
	b.write(registryFile, "old")
	out := b.must("rm '" + b.path("run/kubeone/secrets/credentials.tar") + "'; credential_files")
	if b.read(registryFile) != "old" || !strings.Contains(out, "kubeone apply uploads them") {
		t.Errorf("it is %q, and says %q", b.read(registryFile), out)
	}
}

// ctr knows no credentials but those on its command line, which everybody sees.
func TestImagesAreFetchedWithCredentials(t *testing.T) {
	t.Parallel()
	credentials := configtest.Credentials()
	b := credentialed(t, &credentials)
	b.must("credential_files; IMAGES='a/b:1 sha256:x a/b:1'; images_now() { :; }; pull_images")
	calls := strings.Join(b.calls(), "\n")
	if !strings.Contains(calls, "crictl pull a/b@sha256:x") || strings.Contains(calls, "ctr -n k8s.io images pull") ||
		!strings.Contains(calls, "images tag --force a/b@sha256:x a/b:1") {
		t.Errorf("pulled by\n%s", calls)
	}
}

// The proxy's password is in a download's environment, and on no command line.
func TestDownloadsGoThroughAProxyWithAPassword(t *testing.T) {
	t.Parallel()
	credentials := configtest.Credentials()
	b := credentialed(t, &credentials)
	b.command("curl", `printf '%s %s\n' "$http_proxy" "$https_proxy" >'`+b.path("went")+`'`)
	b.must("PROXY_AUTH=yes HTTPS_PROXY_URL=http://plain:1; credential_files; download http://x '" + b.path("y") + "'")
	if got, want := b.read("went"), "http://user:pa%27ss@proxy.example.com:3128 http://plain:1\n"; got != want {
		t.Errorf("through %q, want %q", got, want)
	}
	if calls := strings.Join(b.calls(), "\n"); strings.Contains(calls, "pa%27ss") {
		t.Errorf("it is on a command line:\n%s", calls)
	}
}

func TestResetRemovesCredentials(t *testing.T) {
	t.Parallel()
	credentials := configtest.Credentials()
	b := credentialed(t, &credentials)
	b.must("credential_files; remove_files")
	for _, name := range []string{registryFile, "etc/kubeone/proxy.env", "run/kubeone/secrets/credentials.tar"} {
		if b.read(name) != "" {
			t.Errorf("%s is still there", name)
		}
	}
}

// crictl, which would ask as the kubelet does, is not on every host.
func TestContainerdServesTheKubelet(t *testing.T) {
	t.Parallel()
	for status, serves := range map[string]bool{"ok": true, "error": false, "skip": false} {
		b := configured(t, "credentials")
		b.command("ctr", `echo 'io.containerd.cri.v1  images  -  ok   '
echo 'io.containerd.grpc.v1  cri  -  `+status+`   '`)
		if out := b.must("if cri_runs; then echo yes; else echo no; fi"); strings.Contains(out, "yes") != serves {
			t.Errorf("its status is %s, and it says %s", status, out)
		}
	}
}

// Credentials do not wait for a host's turn, so they change no settings, and a killed stage does not count as an
// upgrade.
func TestCredentialsAloneLeaveSettings(t *testing.T) {
	t.Parallel()
	credentials := configtest.Credentials()
	b := credentialed(t, &credentials)
	const has = "; cat etc/kubeone/digests etc/kubeone/files etc/containerd/config.toml var/lib/kubelet/config.yaml"
	before := b.must("cd '" + b.root + "'" + has)
	b.must(`NODE_DIGESTS='kubelet=k1'
		file_containerd_config() { echo other; }
		kubelet_healthy() { false; }
		upgrade_text() { echo begun >"` + b.path("begun") + `"; }
		stage_reconfigure`)
	if after := b.must("cd '" + b.root + "'" + has); before != after {
		t.Errorf("it has other settings:\n%s\nbefore:\n%s", after, before)
	}
	if b.read("begun") != "" || b.read(registryFile) == "" {
		t.Error("an upgrade counts as begun, or the credentials did not come")
	}
	for _, gone := range []string{"var/lib/kubeone/before", "var/lib/kubeone/containerd.changed"} {
		if b.must("[ ! -e '"+b.path(gone)+"' ] || echo there") != "" {
			t.Errorf("%s is still there", gone)
		}
	}
}
