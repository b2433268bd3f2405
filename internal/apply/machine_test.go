package apply

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"kubeone/internal/cluster"
	"kubeone/internal/host"
	"kubeone/internal/host/sshpool"
	"kubeone/internal/host/sshtest"
	"kubeone/internal/observed"
	"kubeone/internal/plan"
)

// machine is a host behind a real SSH server that really runs what it is told, in a directory that stands for its file
// system: our directories are below root, and systemd is a stand-in that keeps one unit.
type machine struct {
	host.Host
	t      *testing.T
	root   string
	server *sshtest.Server

	mu      sync.Mutex
	args    []string // of every command
	uploads map[string]os.FileMode
	onRun   func(host.Cmd) error // may refuse a command before it runs
}

var ours = regexp.MustCompile(`/(var/lib/kubeone|var/lib/etcd|run/kubeone|etc/kubernetes|etc/kubeone)\b`)

const fakeSystemdRun = `#!/bin/sh
printf '%s\n' "$*" >>"$ROOT/units"
while :; do
	case $1 in
	--setenv=*) export "${1#--setenv=}" ;;
	--*) ;;
	*) break ;;
	esac
	shift
done
rm -f "$ROOT/born"
mkfifo "$ROOT/born"
# Somebody has to be the unit's parent and see its end.
setsid sh -c '"$@" & echo $! >"$ROOT/born"; wait $!' sh "$@" </dev/null >/dev/null 2>&1 &
read -r pid <"$ROOT/born"
printf '%s\n' "$pid" >"$ROOT/pid"
`

const fakeSystemctl = `#!/bin/sh
pid=$(cat "$ROOT/pid" 2>/dev/null || echo 0)
[ "$pid" = 0 ] || kill -0 "$pid" 2>/dev/null || pid=0
case $1 in
is-active) [ "$pid" != 0 ] || exit 3 ;;
show) echo "$pid" ;;
esac
`

func newMachine(t *testing.T, name string) *machine {
	t.Helper()
	m := &machine{t: t, root: t.TempDir(), uploads: map[string]os.FileMode{}}
	for tool, text := range map[string]string{"systemctl": fakeSystemctl, "systemd-run": fakeSystemdRun} {
		m.write("bin/"+tool, text, 0o700)
	}
	m.server = sshtest.Start(t,
		sshtest.Options{Handler: sshtest.Shell("ROOT="+m.root, "PATH="+m.path("bin")+":"+os.Getenv("PATH"))})
	pool := sshpool.New(sshpool.Options{
		HomeDir: t.TempDir(), SystemDir: t.TempDir(), Getenv: func(string) string { return "" },
		// The server is in this process, and the machine may be busy.
		DialTimeout: time.Minute, HandshakeTimeout: time.Minute, KeepaliveInterval: time.Minute,
	})
	t.Cleanup(func() { _ = pool.Close() })
	m.Host = pool.Host(host.Target{
		Name: name, Address: "127.0.0.1", Port: m.server.Port(), KeyFile: sshtest.WriteKey(t, "").Path,
		HostKeys: []ssh.PublicKey{m.server.HostKey()},
	})
	return m
}

func (m *machine) path(name string) string { return filepath.Join(m.root, name) }

func (m *machine) write(name, content string, mode os.FileMode) {
	m.t.Helper()
	if err := os.MkdirAll(filepath.Dir(m.path(name)), 0o700); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(m.path(name), []byte(content), mode); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) read(name string) string {
	content, err := os.ReadFile(m.path(name))
	if err != nil {
		return ""
	}
	return string(content)
}

// below puts our directories below the root.
func (m *machine) below(text string) string { return ours.ReplaceAllString(text, m.root+"/$1") }

// Run runs the script over SSH, below the root.
func (m *machine) Run(ctx context.Context, c host.Cmd) (host.Result, error) {
	m.mu.Lock()
	m.args = append(m.args, c.Args...)
	refuse := m.onRun
	m.mu.Unlock()
	if refuse != nil {
		if err := refuse(c); err != nil {
			return host.Result{ExitCode: -1}, err
		}
	}
	c.Script = m.below(c.Script)
	args := make([]string, 0, len(c.Args))
	for _, a := range c.Args {
		args = append(args, m.below(a))
	}
	c.Args = args
	return m.Host.Run(ctx, c)
}

// Upload writes the file below the root. How files are uploaded is tested where it is done.
func (m *machine) Upload(_ context.Context, f host.File) error {
	content, err := io.ReadAll(f.Content)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.uploads[f.Path] = f.Mode
	m.write(strings.TrimPrefix(f.Path, "/"), m.below(string(content)), f.Mode)
	return nil
}

// journal collects events.
type journal struct {
	mu     sync.Mutex
	events []Event
	on     func(Event) // called for each, outside the lock
}

func (j *journal) emit(e Event) {
	j.mu.Lock()
	j.events = append(j.events, e)
	on := j.on
	j.mu.Unlock()
	if on != nil {
		on(e)
	}
}

// lines are the events in short: "step-done a", "step-output a: hello".
func (j *journal) lines() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []string
	for _, e := range j.events {
		line := string(e.Type)
		if e.Step != "" {
			line += " " + e.Step
		}
		if e.Line != "" {
			line += ": " + e.Line
		}
		out = append(out, line)
	}
	return out
}

// lab is a run on one machine, "1", named node-1, whose lock it holds.
type lab struct {
	*Run
	*machine
	journal *journal
}

// newLab makes a run whose host has the script given.
func newLab(t *testing.T, script string, steps ...plan.Step) *lab {
	t.Helper()
	return labOf(t, newMachine(t, "node-1"), script, steps...)
}

// labOf makes a run on the machine, which has the script given.
func labOf(t *testing.T, m *machine, script string, steps ...plan.Step) *lab {
	t.Helper()
	j := &journal{}
	r := &Run{
		Plan:  plan.Plan{Format: 1, Cluster: "alpha", Steps: steps, Hosts: named(), Nodes: named()},
		Hosts: map[string]host.Host{"1": m}, Scripts: map[string]string{"1": script}, RunID: "run-1", Holder: "me@here",
		World: observed.World{Hosts: map[string]observed.Host{"1": {ID: "1", EtcdData: observed.No}}},
		Emit:  j.emit, Now: time.Now, pause: func(ctx context.Context, _ time.Duration) bool { return ctx.Err() == nil },
		Connect: Connectors{API: func(cluster.Access) (API, error) { return nil, errors.New("nobody listens") }},
	}
	r.Lock = m.lock("run-1", false)
	return &lab{r, m, j}
}

// lock takes the machine's lock for a run; the test's end gives it up.
func (m *machine) lock(run string, force bool) *Lock {
	m.t.Helper()
	l, err := TakeLock(patience(m.t), map[string]host.Host{"1": m}, Claim{Holder: "me@here", Run: run, Force: force})
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(l.Release)
	return l
}

// gate is a FIFO on which a script waits until the test opens it.
func (m *machine) gate() (wait string, open func()) {
	m.t.Helper()
	path := m.path("gate")
	if out, err := m.Host.Run(patience(m.t), host.Cmd{Script: "mkfifo " + path}); err != nil {
		m.t.Fatal(err, string(out.Stderr))
	}
	return "read -r _ <" + path, func() {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err == nil {
			_, err = fmt.Fprintln(f, "go")
		}
		if err != nil {
			m.t.Error(err)
		}
		m.t.Cleanup(func() { _ = f.Close() })
	}
}

// kubeconfig is an administrator's, with a secret of its own, and the CA in it as base64.
func kubeconfig(t *testing.T) (text, ca string) {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	server.Close()
	ca = base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{
		Type:  "CERTIFICATE",
		Bytes: server.Certificate().Raw,
	}))
	return `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:6443", certificate-authority-data: ` + ca + `}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
users: [{name: u, user: {token: the-administrator}}]
`, ca
}

// patience ends before the test's own does.
func patience(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// named is how the only host is called, and its Node.
func named() map[string]string { return map[string]string{"1": "node-1"} }
