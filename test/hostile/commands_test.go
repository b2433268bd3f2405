package hostile

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"kubeone/internal/cli"
	"kubeone/internal/host/sshtest"
)

// TestCommandsWriteNowhereElse runs the program's own commands beside a worker that would like to choose where they
// write, and what the terminal is told.
func TestCommandsWriteNowhereElse(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", filepath.Join(home, "home"))
	t.Setenv("KUBEONE_STATE", filepath.Join(home, "state"))
	c := newCluster(t, version, nil)
	before, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for n, name := range []string{
		"..", "-rf", "../owned", "../../owned", "../../../owned", "..\\..\\owned", "a/b", "$(touch owned)", escape,
	} {
		g := &game{as: worker, cluster: c}
		g.plays = func(g *game, s *sshtest.Session) int {
			if !strings.Contains(s.Command, " kubeone facts ") {
				pour(s.Stdout, forged(name), 1)
				return 0
			}
			_, _ = io.WriteString(s.Stdout, answer(edited(g.honest(), "-hostname", "hostname\t"+name,
				"-unit\tActiveState=active", "file\t/var/lib/kubeone/step/current:stage="+name)))
			return 0
		}
		port, key := g.start(t)
		dir := filepath.Join(home, fmt.Sprint("work", n))
		if err := os.MkdirAll(filepath.Join(dir, "scripts", "a"), 0o700); err != nil {
			t.Fatal(err)
		}
		at := func(file string) string { return filepath.Join(dir, file) }
		if err := os.WriteFile(at("kubeone.yaml"), []byte(c.manifestFor(port, key)), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{
			{"plan", "-v", "--insecure-mirror", "--scripts", at("scripts"), "--out", at("plan.json")},
			{"status"}, {"status", "-o", "json"},
			{"support", "-o", at("support.tar.gz")}, {"kubeconfig", "-o", at("kubeconfig")},
		} {
			var out, errs bytes.Buffer
			status := cli.Main(t.Context(), append(args, "-m", at("kubeone.yaml")), cli.IO{
				In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: func(string) string { return "" },
				Interactive: func() bool { return false },
			})
			if strings.ContainsFunc(out.String()+errs.String(), isStrange) {
				t.Errorf("%q: %q prints %q %q", name, args, out.String(), errs.String())
			}
			if args[0] == "plan" && !strings.Contains(out.String(), "Plan for cluster demo") {
				t.Errorf("%q: no plan: %s", name, errs.String())
			}
			if args[0] == "support" && status != 0 {
				t.Errorf("%q: no support bundle: %s", name, errs.String())
			}
		}
		checkArchive(t, at("support.tar.gz"))
	}
	checkFiles(t, home)
	after, err := os.ReadDir(".")
	if err != nil || len(after) != len(before) {
		t.Errorf("%v; here are %d files now, not %d", err, len(after), len(before))
	}
}

// forged are the logs of a host that would like to be another's.
func forged(name string) string {
	const begins = "\n::kubeone-section:: "
	return escape + begins + "../cp-1/kubelet.log\nforged\n" + begins + "../../plan.txt\nforged\n" + begins + name +
		"\nforged\n" + begins + "kubelet.log\nits own\n"
}

// manifestFor is the manifest of files: the attacker listens somewhere else.
func (c *cluster) manifestFor(port int, key ssh.PublicKey) string {
	out := strings.Replace(text(worker), "cloudProvider:", "artifacts:\n  mirror: http://127.0.0.1:1\n"+
		"registryConfiguration:\n  overwriteRegistry: 127.0.0.1:1\n  insecureRegistry: true\ncloudProvider:", 1)
	for _, m := range worker.present() {
		listens, shows := c.hosts.Port(), c.hosts.HostKey()
		if m.name == worker.seat() {
			listens, shows = port, key
		}
		line := "    - publicAddress: " + m.at + "\n"
		out = strings.Replace(out, line, line+fmt.Sprintf(
			"      sshPort: %d\n      sshPrivateKeyFile: %s\n      sshHostPublicKey: %s\n", listens, c.key.Path,
			base64.StdEncoding.EncodeToString(shows.Marshal())), 1)
	}
	return out
}

// checkArchive wants nothing of the attacker outside its own folder.
func checkArchive(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = f.Close() }()
	zip, err := gzip.NewReader(f)
	if err != nil {
		t.Error(err)
		return
	}
	own := false
	for files := tar.NewReader(zip); ; {
		head, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Error(err)
			return
		}
		content, _ := io.ReadAll(files)
		own = own || bytes.Contains(content, []byte("its own"))
		if !fs.ValidPath(head.Name) || !strings.HasPrefix(head.Name, "demo-support/") ||
			strings.ContainsFunc(head.Name, isStrange) {
			t.Errorf("the archive has %q", head.Name)
		}
		if bytes.Contains(content, []byte("forged\n")) {
			t.Errorf("%s is forged", head.Name)
		}
	}
	if !own {
		t.Error("the attacker's own logs are missing")
	}
}

// checkFiles wants no files but those that the commands were told to write, and what the operator's machine remembers.
func checkFiles(t *testing.T, home string) {
	t.Helper()
	expected := []string{"kubeone.yaml", "plan.json", "support.tar.gz", "known_hosts", "ca", "kubeconfig"}
	_ = filepath.WalkDir(home, func(path string, e fs.DirEntry, err error) error {
		inside, _ := filepath.Rel(home, path)
		script := strings.HasPrefix(inside, "work") && strings.HasSuffix(filepath.Dir(inside), "/scripts") &&
			strings.HasSuffix(inside, ".sh")
		if err != nil || !e.IsDir() && !script && !slices.Contains(expected, e.Name()) {
			t.Errorf("%v: there is %s", err, inside)
		}
		return nil
	})
}
