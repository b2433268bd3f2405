package probe

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/model/observed"
)

const (
	digestA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	digestB = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	pathA   = encryptionDir + digestA + ".yaml"
	pathB   = encryptionDir + digestB + ".yaml"
)

func TestWhatAHostSaysOfItsKeys(t *testing.T) {
	t.Parallel()
	configA := observed.EncryptionConfig{Digest: digestA, Providers: []observed.EncryptedBy{
		{Name: "kubeone-2", Key: digestB}, {Name: "identity"},
	}}
	fileA := []string{pathA + " " + digestA + "  -"}
	keysA := []string{pathA + " kubeone-2 " + digestB + "  -", pathA + " identity -"}
	for name, c := range map[string]struct {
		said lines
		want *observed.Encryption
	}{
		"nothing": {lines{}, nil},
		"settled": {lines{
			"encryption-next": {pathA}, "encryption-manifest": {pathA}, "encryption-running": {pathA},
			"encryption-file": fileA, "encryption-key": keysA,
		}, &observed.Encryption{Running: []observed.EncryptionConfig{configA}, Next: configA}},
		"not told yet": {lines{
			"encryption-next": {pathA}, "encryption-manifest": {"none"}, "encryption-running": {"none", "none"},
			"encryption-file": fileA, "encryption-key": keysA,
		}, &observed.Encryption{Running: []observed.EncryptionConfig{{}}, Next: configA}},
		"gone": {lines{"encryption-next": {pathA}, "encryption-manifest": {pathA}, "encryption-running": {pathA}},
			&observed.Encryption{
				Running: []observed.EncryptionConfig{{Digest: digestA}}, Lost: true,
				Next: observed.EncryptionConfig{Digest: digestA},
			}},
		"another content than its name": {lines{
			"encryption-next": {pathA}, "encryption-file": {pathA + " " + digestB + "  -"}, "encryption-key": keysA,
		}, &observed.Encryption{Lost: true, Next: observed.EncryptionConfig{Digest: digestA}}},
		"the manifest's is gone": {lines{
			"encryption-next": {pathA}, "encryption-manifest": {pathB},
			"encryption-file": fileA, "encryption-key": keysA,
		}, &observed.Encryption{Lost: true, Next: configA}},
		"another program's": {lines{"encryption-next": {"none"},
			"encryption-manifest": {"/etc/kubernetes/pki/enc.yaml"}},
			&observed.Encryption{Foreign: "/etc/kubernetes/pki/enc.yaml"}},
	} {
		if diff := cmp.Diff(c.want, parseEncryption(c.said)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// The script prints names and digests, never keys.
func TestTheScriptTellsNoKey(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	from := strings.Index(Script, "\nencryption() {")
	to := strings.Index(Script[from:], "\n}\n")
	const secret = "c2VjcmV0"
	for path, content := range map[string]string{
		"manifests/kube-apiserver.yaml": "    - kube-apiserver\n    - --encryption-provider-config=" + pathA + "\n",
		"encryption/" + digestA + ".yaml": "resources:\n- resources:\n  - secrets\n  providers:\n  - secretbox:\n" +
			"      keys:\n      - name: kubeone-1\n        secret: " + secret + "\n  - identity: {}\n",
		"ours/patches/kube-apiserverencryption+json.yaml": "  value: --encryption-provider-config=" + pathA + "\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, path), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	script := "put() { printf '%s\\t%s\\n' \"$1\" \"$2\"; }\nkubernetes=" + root + "\nours=" + root + "/ours\n" +
		Script[from:from+to+3] + "encryption\n"
	out := output(t, exec.CommandContext(t.Context(), "sh", "-c", script))
	text := string(out)
	for _, want := range []string{
		"encryption-next\t" + pathA + "\n", "encryption-manifest\t" + pathA + "\n", " kubeone-1 ", " identity -\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if strings.Contains(text, secret) {
		t.Errorf("a key was told:\n%s", text)
	}
}
