package cli

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/crypto/ssh"

	"kubeone/internal/testutil/golden"
	"kubeone/internal/testutil/sshtest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"kubeone": func() { os.Exit(Main(context.Background(), os.Args[1:], OS())) },
	})
}

// TestScripts runs the dialogues of testdata/script with the program. They know, besides testscript's own commands:
//
//	exits STATUS PROGRAM ARGS...      runs the program, which must exit with that status
//	manifest FILE ADDRESS...          writes a manifest with these control-plane hosts, which hosts_test.go plays
//	fill FILE...                      replaces $NAME in the files by the environment's
//	edit FILE OLD NEW                 replaces text in a file; it must be there
//	damage FILE                       changes one byte in the file's middle
//	cut FILE                          takes the file's last byte away
//	fields FILE                       checks every field of a JSON file (or "stdout") against docs/json.md
func TestScripts(t *testing.T) {
	t.Parallel()
	play := newPlay(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       golden.Update(),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               play.setup,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "manifest": writeManifest, "fill": fill, "edit": edit, "damage": damage, "cut": cut,
			"fields": fields,
		},
	})
}

// play holds what the scripts share: hosts, a mirror and keys.
type play struct {
	mirror             string
	hosts, hung        *sshtest.Server
	key, locked, other sshtest.Key
	backups            *age.X25519Identity
	backup, snapshot   string // files
}

func newPlay(t *testing.T) *play {
	t.Helper()
	p := &play{
		mirror: mirror(t).URL,
		key:    sshtest.WriteKey(t, ""),
		locked: sshtest.WriteKey(t, "a secret"),
		other:  sshtest.WriteKey(t, ""),
	}
	var err error
	if p.backups, err = age.GenerateX25519Identity(); err != nil {
		t.Fatal(err)
	}
	p.backup, p.snapshot = copies(t, p.backups.Recipient())
	p.hosts = startHosts(t, p.key.Public())
	p.hung = sshtest.Start(t, sshtest.Options{AllLoopback: true, Silent: true})
	return p
}

func (p *play) setup(env *testscript.Env) error {
	key := func(s *sshtest.Server) string { return base64.StdEncoding.EncodeToString(s.HostKey().Marshal()) }
	for name, value := range map[string]string{
		"HOME": env.WorkDir, "KUBEONE_STATE": filepath.Join(env.WorkDir, "state"),
		"XDG_CACHE_HOME": filepath.Join(env.WorkDir, "cache"),
		"NO_COLOR":       "1", "SSH_AUTH_SOCK": "",
		"MIRROR": p.mirror, "REGISTRY": strings.TrimPrefix(p.mirror, "http://"),
		"PORT": strconv.Itoa(p.hosts.Port()), "HUNG": strconv.Itoa(p.hung.Port()), "HOSTKEY": key(p.hosts),
		"OTHERHOSTKEY": key(p.hung),
		"HOSTPRINT":    ssh.FingerprintSHA256(p.hosts.HostKey()), "OTHERPRINT": ssh.FingerprintSHA256(p.other.Public()),
		"RECIPIENT": p.backups.Recipient().String(), "IDENTITY": p.backups.String(),
		"BACKUP": p.backup, "SNAPSHOT": p.snapshot,
		"OFFLINE": offline,
		"MIRRORED": strings.NewReplacer("https://127.0.0.1:1", p.mirror, "127.0.0.1:1",
			strings.TrimPrefix(p.mirror, "http://")).Replace(offline),
		"KEY": p.key.Path, "LOCKEDKEY": p.locked.Path, "OTHERKEY": p.other.Path, "SSHUSER": "root",
	} {
		env.Setenv(name, value)
	}
	return nil
}

// offline goes before "cloudProvider:" in a manifest and makes all its downloads fail at once.
const offline = "artifacts:\n  mirror: https://127.0.0.1:1\nregistryConfiguration:\n" +
	"  overwriteRegistry: 127.0.0.1:1\n  insecureRegistry: true\ncloudProvider:"

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS PROGRAM ARGS...")
	}
	err := ts.Exec(args[1], args[2:]...)
	status := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		status = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if strconv.Itoa(status) != args[0] {
		ts.Fatalf("exit status %d, want %s", status, args[0])
	}
}

func writeManifest(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: manifest FILE ADDRESS[=PRIVATE]...")
	}
	var b strings.Builder
	b.WriteString("apiVersion: kubeone.k8c.io/v1beta2\nkind: KubeOneCluster\nname: demo\nversions:\n" +
		"  kubernetes: 1.36.3\n" +
		"cloudProvider:\n  none: {}\nclusterNetwork:\n  cni:\n    flannel: {}\ncontrolPlane:\n  hosts:\n")
	for _, address := range args[1:] {
		public, private, named := strings.Cut(address, "=")
		if named {
			public += "\n      privateAddress: " + private
		}
		fmt.Fprintf(&b, "    - publicAddress: %s\n      sshUsername: %s\n      sshPort: %s\n"+
			"      sshPrivateKeyFile: %s\n      sshHostPublicKey: %s\n",
			public, ts.Getenv("SSHUSER"), ts.Getenv("PORT"), ts.Getenv("KEY"), ts.Getenv("HOSTKEY"))
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(b.String()), 0o600))
}

func fill(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		rewrite(ts, name, func(text string) string { return os.Expand(text, ts.Getenv) })
	}
}

func edit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: edit FILE OLD NEW")
	}
	rewrite(ts, args[0], func(text string) string {
		if !strings.Contains(text, args[1]) {
			ts.Fatalf("%s has no %q", args[0], args[1])
		}
		return strings.ReplaceAll(text, args[1], args[2])
	})
}

func damage(ts *testscript.TestScript, _ bool, args []string) {
	rewrite(ts, args[0], func(text string) string {
		changed := []byte(text)
		changed[len(changed)/2] ^= 1
		return string(changed)
	})
}

func cut(ts *testscript.TestScript, _ bool, args []string) {
	rewrite(ts, args[0], func(text string) string { return text[:len(text)-1] })
}

func rewrite(ts *testscript.TestScript, name string, change func(string) string) {
	path := ts.MkAbs(name)
	text, err := os.ReadFile(path)
	ts.Check(err)
	ts.Check(os.WriteFile(path, []byte(change(string(text))), 0o600))
}

// fields checks that docs/json.md describes every field of a JSON document.
func fields(ts *testscript.TestScript, _ bool, args []string) {
	known := map[string]bool{}
	for _, page := range []string{"json.md", "steps.md"} {
		docs, err := os.ReadFile(filepath.Join(startDir, "..", "..", "docs", page))
		ts.Check(err)
		for _, m := range regexp.MustCompile("`([a-zA-Z.\\[\\]]+)`").FindAllStringSubmatch(string(docs), -1) {
			known[strings.ReplaceAll(m[1], "[]", "")] = true
		}
	}
	for n, document := range strings.Split(strings.TrimSpace(ts.ReadFile(args[0])), "\n{") {
		if n > 0 {
			document = "{" + document
		}
		var value map[string]any
		ts.Check(json.Unmarshal([]byte(document), &value))
		for _, path := range unknownPaths("", value, known) {
			ts.Fatalf("%s has the field %q, which docs/json.md does not have", args[0], path)
		}
	}
}

// documentedPath returns the path of a field in the section that describes its type, such as Problem.
func documentedPath(path string) string {
	for _, prefix := range []string{"steps.intent.", "problems.", "warnings.", "operator.", "instructions."} {
		if i := strings.LastIndex(path, prefix); i >= 0 {
			path = path[i+len(prefix):]
		}
	}
	return strings.Replace(path, "metadata.snapshot.", "snapshot.", 1)
}

// unknownPaths returns the paths in value that are not known. What lies below a map whose keys are data is not looked
// at.
func unknownPaths(path string, value any, known map[string]bool) []string {
	var out []string
	switch v := value.(type) {
	case []any:
		for _, one := range v {
			out = append(out, unknownPaths(path, one, known)...)
		}
	case map[string]any:
		for key, below := range v {
			at := strings.TrimPrefix(path+"."+key, ".")
			switch {
			case known[at], known[documentedPath(at)]:
				out = append(out, unknownPaths(at, below, known)...)
			case !slices.Contains([]string{"hosts", "nodes", "firstContacts"}, path) &&
				!strings.HasSuffix(path, "parameters") &&
				!strings.HasSuffix(path, "labels") && !strings.HasSuffix(path, "annotations"):
				out = append(out, at)
			}
		}
	}
	return out
}
