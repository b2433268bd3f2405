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
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"kubeone/internal/cli"
	"kubeone/internal/testutil/sshtest"
)

// TestCommandsWriteNowhereElse runs kubeone's commands next to a worker that tries to choose the written files and the
// terminal output.
func TestCommandsWriteNowhereElse(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", filepath.Join(home, "home"))
	t.Setenv("KUBEONE_STATE", filepath.Join(home, "state"))
	c := newCluster(t, version, nil)
	c.stopped = "w-3" // it needs a start, which takes a script and no artifacts
	before, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var honest map[string]string // names of the script files next to an honest host, by host ID
	for n, name := range []string{
		"w-2", "..", "-rf", "../owned", "../../owned", "../../../owned", "..\\..\\owned", "a/b", "$(touch owned)",
		escape, "w-3", "W-1", "cp-1", "127.0.3.23", "localhost", "hosts", "plan.txt", longName,
	} {
		g := &trial{as: worker, cluster: c}
		g.answers = func(g *trial, s *sshtest.Session) int {
			if !strings.Contains(s.Command, " kubeone facts ") {
				pourBytes(s.Stdout, forgeLogs(name), 1)
				return 0
			}
			_, _ = io.WriteString(s.Stdout, frameAnswer(editLines(append(g.honestAnswer(), kubeletStopped()...),
				"-file\t/etc/kubeone/marker:node=", "-hostname", "hostname\t"+name,
				"file\t/var/lib/kubeone/step/current:stage="+name)))
			return 0
		}
		port, key := g.startAttacker(t)
		manifest := c.manifestFor(port, key)
		c.configureHosts(manifest)
		dir := filepath.Join(home, fmt.Sprint("work", n))
		if err := os.MkdirAll(filepath.Join(dir, "scripts", "a"), 0o700); err != nil {
			t.Fatal(err)
		}
		at := func(file string) string { return filepath.Join(dir, file) }
		if err := os.WriteFile(at("kubeone.yaml"), []byte(manifest), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{
			{"plan", "-v", "--insecure-mirror", "--scripts", at("scripts"), "--out", at("plan.json")},
			{"status"}, {"status", "-o", "json"},
			{"support", "-f", at("support.tar.gz")}, {"kubeconfig", "-f", at("kubeconfig")},
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
		scripts := scriptsIn(t, at("scripts"))
		if n == 0 {
			honest = scripts
		}
		if len(honest) != 2 || scripts[c.hostID("w-3")] != honest[c.hostID("w-3")] {
			t.Errorf("%q: the scripts are %v, beside an honest host %v", name, scripts, honest)
		}
	}
	checkFiles(t, home)
	after, err := os.ReadDir(".")
	if err != nil || len(after) != len(before) {
		t.Errorf("%v; here are %d files now, not %d", err, len(after), len(before))
	}
}

// longName is a DNS name of the maximum length.
var longName = strings.Repeat("a", 63) + strings.Repeat("."+strings.Repeat("b", 63), 2) + "." + strings.Repeat("c", 61)

// ownLog is a text in the log of a host.
const ownLog = "says the attacker\n"

// forgeLogs returns the logs of a host that tries to write into other folders and over other files.
func forgeLogs(name string) string {
	const begins = "\n::kubeone-section:: "
	out := escape + begins + "kubelet.log\n" + ownLog
	for _, allowed := range []string{"plan.txt", "status.txt", "missing.txt"} {
		out += begins + allowed + "\n" + ownLog
	}
	for _, refused := range []string{
		"../cp-1/kubelet.log", "../../plan.txt", name, name + "/kubelet.log", "kubelet.log", "plan.txt",
		"stderr.txt", "",
	} {
		out += begins + refused + "\nforged\n"
	}
	return out
}

// scriptsIn returns the names of script files by host ID.
func scriptsIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.sh"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, id, _ := strings.Cut(string(text), "\nHOST_ID=")
		id, _, _ = strings.Cut(id, "\n")
		id = strings.Trim(id, "'")
		if id == "" || out[id] != "" {
			t.Errorf("%s is for host %q, which has %q", file, id, out[id])
		}
		out[id] = filepath.Base(file)
	}
	return out
}

// manifestFor returns the manifest with the attacker's port and key.
func (c *cluster) manifestFor(port int, key ssh.PublicKey) string {
	out := strings.Replace(manifestText(worker), "cloudProvider:", "artifacts:\n  mirror: http://127.0.0.1:1\n"+
		"registryConfiguration:\n  overwriteRegistry: 127.0.0.1:1\n  insecureRegistry: true\ncloudProvider:", 1)
	for _, m := range worker.presentMachines() {
		listens, shows := c.hosts.Port(), c.hosts.HostKey()
		if m.name == worker.seatName() {
			listens, shows = port, key
		}
		line := "    - publicAddress: " + m.at + "\n"
		out = strings.Replace(out, line, line+fmt.Sprintf(
			"      sshPort: %d\n      sshPrivateKeyFile: %s\n      sshHostPublicKey: %s\n", listens, c.key.Path,
			base64.StdEncoding.EncodeToString(shows.Marshal())), 1)
	}
	return out
}

// checkArchive checks that each file is there once, and that the attacker's files are in one folder below hosts.
func checkArchive(t *testing.T, archive string) {
	t.Helper()
	f, err := os.Open(archive)
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
	entries, own := map[string]bool{}, map[string]bool{}
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
		if bytes.Contains(content, []byte(ownLog)) {
			own[path.Dir(head.Name)] = true
		}
		if !fs.ValidPath(head.Name) || !strings.HasPrefix(head.Name, "demo-support/") || entries[head.Name] ||
			strings.ContainsFunc(head.Name, isStrange) {
			t.Errorf("the archive has %q, or has it twice", head.Name)
		}
		entries[head.Name] = true
		if bytes.Contains(content, []byte("forged\n")) {
			t.Errorf("%s is forged", head.Name)
		}
	}
	for folder := range own {
		if path.Dir(folder) != "demo-support/hosts" || len(own) > 1 {
			t.Errorf("the attacker's texts are in %v", slices.Collect(maps.Keys(own)))
		}
	}
	if len(own) == 0 {
		t.Error("the attacker's own logs are missing")
	}
}

// checkFiles checks that there are only the requested files and the state of the operator's machine.
func checkFiles(t *testing.T, home string) {
	t.Helper()
	expected := []string{"kubeone.yaml", "plan.json", "support.tar.gz", "known_hosts", "ca", "kubeconfig"}
	_ = filepath.WalkDir(home, func(file string, e fs.DirEntry, err error) error {
		inside, _ := filepath.Rel(home, file)
		script := strings.HasPrefix(inside, "work") && strings.HasSuffix(filepath.Dir(inside), "/scripts") &&
			strings.HasSuffix(inside, ".sh")
		if err != nil || !e.IsDir() && !script && !slices.Contains(expected, e.Name()) {
			t.Errorf("%v: there is %s", err, inside)
		}
		return nil
	})
}
