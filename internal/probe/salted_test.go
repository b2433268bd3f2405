package probe

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/host"
	"kubeone/internal/model/observed"
)

// some returns credentials; the caller does not know those of the registry "unknown".
func some() *CredentialFiles {
	return &CredentialFiles{
		Content: map[string]string{"/etc/a": "hunter2", "/etc/b": "hunter3"},
		Of: func(path string) (string, bool) {
			if path == "/etc/foreign" {
				return "", false
			}
			return "credentials " + filepath.Base(path), path != "/etc/unknown"
		},
	}
}

const (
	onA, onB = "/etc/a", "/etc/b"
	ofA, ofB = "credentials a", "credentials b"
)

func saltedLine(nonce, content, mode, path string) string {
	return fmt.Sprintf("salted %x %s %s", sha256.Sum256([]byte(nonce+content)), mode, path)
}

func TestCredentialsOfAHostAreCompared(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lines func(nonce string) []string
		want  []observed.Credential
	}{
		"the same": {func(n string) []string {
			return []string{"salted yes", saltedLine(n, "hunter2", "600", onA), saltedLine(n, "hunter3", "600", onB)}
		}, nil},
		"none": {func(string) []string { return []string{"salted yes"} }, []observed.Credential{
			{Of: ofA, Is: observed.CredentialMissing}, {Of: ofB, Is: observed.CredentialMissing},
		}},
		"all sorts": {func(n string) []string {
			return []string{
				"salted yes", saltedLine(n, "hunter1", "600", onA), saltedLine(n, "hunter3", "644", onB),
				saltedLine(n, "x", "600", "/etc/c"), saltedLine(n, "x", "600", "/etc/unknown"),
				saltedLine(n, "x", "600", "/etc/foreign"), "salted 12 600 /etc/d",
				saltedLine(n, "x", "600", "/etc/$(e)"),
			}
		}, []observed.Credential{
			{Of: ofA, Is: observed.CredentialOther}, {Of: ofB, Is: observed.CredentialOther},
			{Of: "credentials c", Is: observed.CredentialExtra},
			{Of: "credentials unknown", Is: observed.CredentialLeft},
		}},
		"of another nonce": {func(string) []string {
			return []string{
				"salted yes", saltedLine("old", "hunter2", "600", onA), saltedLine("old", "hunter3", "600", onB),
			}
		}, []observed.Credential{
			{Of: ofA, Is: observed.CredentialOther}, {Of: ofB, Is: observed.CredentialOther},
		}},
		"a host that does not say": {func(string) []string { return nil }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &fakeHost{run: func(ctx context.Context, cmd host.Cmd) (host.Result, error) {
				return says(c.lines(cmd.Args[1])).run(ctx, cmd)
			}}
			got, err := Run(t.Context(), Request{Targets: []Target{{ID: "w", Host: h}}, Credentials: some()})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got.World.Hosts["w"].Credentials); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Digests of credentials are valid for one probe only, and hosts are asked only when needed.
func TestEveryProbeHasItsNonce(t *testing.T) {
	t.Parallel()
	h := says(nil)
	for _, credentials := range []*CredentialFiles{some(), some(), nil} {
		if _, err := Run(t.Context(), Request{
			Targets: []Target{{ID: "w", Host: h}}, Credentials: credentials,
		}); err != nil {
			t.Fatal(err)
		}
	}
	first, second, none := h.commands[0].Args, h.commands[1].Args, h.commands[2].Args
	if len(first[1]) < 20 || first[1] == second[1] || len(none) != 1 {
		t.Errorf("arguments are %q, %q, %q", first, second, none)
	}
}

// The script reports on the files without printing their content.
func TestScriptTellsWhetherCredentialsAreTheSame(t *testing.T) {
	t.Parallel()
	root, text := controlPlaneHost(t)
	const registry = "/etc/containerd/conf.d/kubeone-registry-r.example.com:5000.toml"
	for path, content := range map[string]string{
		registry: "hunter2\n", "/etc/kubeone/proxy.env": "hunter3", "/etc/containerd/conf.d/own.toml": "theirs",
	} {
		if err := os.MkdirAll(filepath.Dir(root+path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(root+path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, nonce := range []string{"n0nce", ""} {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", text, "probe", argFacts, nonce)
		cmd.Env = append(os.Environ(), "PATH="+root+"/shims:/usr/bin:/bin")
		out := strings.ReplaceAll(string(output(t, cmd)), root, "")
		if strings.Contains(out, "hunter") {
			t.Errorf("a password was sent:\n%s", out)
		}
		a, err := Parse([]byte(out), sent, received)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]credentialDigest{}
		for path, content := range map[string]string{registry: "hunter2\n", "/etc/kubeone/proxy.env": "hunter3"} {
			want[path] = credentialDigest{fmt.Sprintf("%x", sha256.Sum256([]byte(nonce+content))), "600"}
		}
		if nonce == "" || os.Getuid() != 0 {
			want = nil
		}
		if diff := cmp.Diff(want, a.digests, cmp.AllowUnexported(credentialDigest{})); diff != "" {
			t.Errorf("nonce %q: %s", nonce, diff)
		}
	}
}

// A run killed before containerd read its files leaves credentials that count as different.
func TestScriptTellsWhetherCredentialsWereRead(t *testing.T) {
	t.Parallel()
	for _, proxy := range []bool{true, false} {
		root, text := controlPlaneHost(t)
		files := []string{"/var/lib/kubeone/containerd.changed"}
		c := some()
		c.Of = func(path string) (string, bool) { return path, true }
		c.Content = map[string]string{}
		if proxy {
			files = append(files, "/etc/kubeone/proxy.env")
			c.Content["/etc/kubeone/proxy.env"] = ""
		}
		for _, path := range files {
			if err := os.WriteFile(root+path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", text, "probe", argFacts, "n0nce")
		cmd.Env = append(os.Environ(), "PATH="+root+"/shims:/usr/bin:/bin")
		a, err := Parse([]byte(strings.ReplaceAll(string(output(t, cmd)), root, "")), sent, received)
		if err != nil {
			t.Fatal(err)
		}
		want := 1
		if os.Getuid() != 0 { // only root may read such files
			want = 0
		}
		if got := c.compareWith("n0nce", a.digests); len(got) != want {
			t.Errorf("with a proxy (%t): %v", proxy, got)
		}
	}
}
