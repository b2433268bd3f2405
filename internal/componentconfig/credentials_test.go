package componentconfig

import (
	"github.com/google/go-cmp/cmp"
	"kubeone/internal/model/desired"
	"kubeone/internal/testutil/configtest"
	"testing"
)

func TestCredentialsAreWrittenAsContainerdAndSystemdReadThem(t *testing.T) {
	t.Parallel()
	const table = `[plugins."io.containerd.cri.v1.images".registry.configs.`
	want := map[string]string{
		"/etc/containerd/conf.d/kubeone-registry-registry.example.com:5000.toml": "version = 3\n\n" +
			table + `"registry.example.com:5000".auth]` + "\n" +
			`  username = "puller"` + "\n" + `  password = "hunter2\"'\\$(x) and more"` + "\n",
		"/etc/containerd/conf.d/kubeone-registry-%5Bfd00::1%5D:5000.toml": "version = 3\n\n" +
			table + `"[fd00::1]:5000".auth]` + "\n" + `  auth = "dTpwYXNz"` + "\n",
		// containerd matches the name of the host it connects to.
		"/etc/containerd/conf.d/kubeone-registry-docker.io.toml": "version = 3\n\n" +
			table + `"docker.io".auth]` + "\n" + `  identitytoken = "t0ken"` + "\n\n" +
			table + `"registry-1.docker.io".auth]` + "\n" + `  identitytoken = "t0ken"` + "\n",
		"/etc/kubeone/proxy.env": "HTTP_PROXY='http://user:pa%27ss@proxy.example.com:3128'\n",
	}
	if diff := cmp.Diff(want, CredentialFiles(configtest.Credentials())); diff != "" {
		t.Error(diff)
	}
}

func TestFilesWithCredentialsAreNamed(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/etc/containerd/conf.d/kubeone-registry-%5Bfd00::1%5D:5000.toml": "registry credentials of [fd00::1]:5000",
		"/etc/containerd/conf.d/kubeone-registry-a.example.com.toml":      "registry credentials of a.example.com",
		"/etc/kubeone/proxy.env":                        "proxy credentials",
		"/etc/containerd/conf.d/own.toml":               "",
		"/etc/containerd/conf.d/kubeone-registry-.toml": "",
	} {
		if got, known := CredentialOf(path, configtest.Credentials()); got != want || known != (want != "") {
			t.Errorf("%s is %q (known: %t), want %q", path, got, known, want)
		}
	}
	if _, known := CredentialOf("/etc/containerd/conf.d/kubeone-registry-a.toml", desired.Credentials{}); known {
		t.Error("the registries' credentials are unknown, and count as known")
	}
}

func TestARegistrysTextIsTOML(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a":         `"a"`,
		"é\t\x7f\n": `"é\u0009\u007F\u000A"`,
		`"\`:        `"\"\\"`,
	} {
		if got := tomlText(in); got != want {
			t.Errorf("%q is %s, want %s", in, got, want)
		}
	}
}
