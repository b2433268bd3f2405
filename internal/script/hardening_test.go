package script

import (
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/model/desired"
)

// modes are what a box has of these files.
func (b *box) modes(names ...string) map[string]fs.FileMode {
	b.t.Helper()
	out := map[string]fs.FileMode{}
	for _, name := range names {
		info, err := os.Stat(b.path(name))
		if err != nil {
			b.t.Fatal(err)
		}
		out[name] = info.Mode().Perm()
	}
	return out
}

func TestFilesHaveTheModesThatAreWanted(t *testing.T) {
	t.Parallel()
	const config, unit, key, data = "var/lib/kubelet/config.yaml", "etc/systemd/system/kubelet.service",
		"etc/kubernetes/pki/ca.key", "var/lib/etcd"
	for value, want := range map[string]map[string]fs.FileMode{
		"":                        {config: 0o640, unit: 0o644, key: 0o640, data: 0o750},
		desired.HardeningNone:     {config: 0o644, unit: 0o644, key: 0o640, data: 0o750},
		desired.HardeningBaseline: {config: 0o600, unit: 0o600, key: 0o600, data: 0o700},
	} {
		t.Run("hardening "+value, func(t *testing.T) {
			t.Parallel()
			b := newBox(t, hardened("cp-1", value))
			b.write(config, "x")
			b.write(key, "x")
			b.mkdir(data)
			for name, mode := range map[string]fs.FileMode{config: 0o640, key: 0o640, data: 0o750} {
				if err := os.Chmod(b.path(name), mode); err != nil {
					t.Fatal(err)
				}
			}
			b.must(`put "@ROOT@/etc/systemd/system/kubelet.service" "$FILE_MODE" file_kubelet_unit` + "\n" +
				"file_modes; file_modes")
			if diff := cmp.Diff(want, b.modes(config, unit, key, data)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A file is restored with the mode that it had when its digest was recorded.
func TestRecordedFilesKeepTheirModes(t *testing.T) {
	t.Parallel()
	b := newBox(t, hardened("w-1", desired.HardeningBaseline))
	b.write("var/lib/kubelet/config.yaml", "x")
	if err := os.Chmod(b.path("var/lib/kubelet/config.yaml"), 0o644); err != nil {
		t.Fatal(err)
	}
	b.must("record kubelet=1 >/dev/null; stat -c %a $KEPT/*")
	if got := b.must("stat -c %a $KEPT/*"); strings.TrimSpace(got) != "600" {
		t.Errorf("the copies have the modes %q", got)
	}
}

// A hardened API server answers only health checks of anonymous clients, so kubeadm uses the token.
func TestKubeadmFindsTheClusterWithTheJoinToken(t *testing.T) {
	t.Parallel()
	b := controlPlane(t, "w-1")
	b.must("kubeadm_config file_join >/dev/null")
	const join = "run/kubeone/secrets/join.conf"
	want := `apiVersion: v1
kind: Config
current-context: join
clusters:
- name: cluster
  cluster:
    certificate-authority-data: Y2E=
    server: https://lb.example.com:6443
contexts:
- name: join
  context:
    cluster: cluster
    user: join
users:
- name: join
  user:
    token: abcdef.0123456789abcdef
`
	if diff := cmp.Diff(want, b.read(join)); diff != "" {
		t.Error(diff)
	}
	if mode := b.modes(join)[join]; mode != 0o600 {
		t.Errorf("its mode is %o", mode)
	}
	if text := b.read("run/kubeone/secrets/kubeadm.yaml"); !strings.Contains(text, b.path(join)) {
		t.Errorf("kubeadm is not told of it:\n%s", text)
	}
}
