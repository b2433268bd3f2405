package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"kubeone/internal/desired"
	"kubeone/internal/host"
	"kubeone/internal/host/sshpool"
	"kubeone/internal/host/sshtest"
	"kubeone/internal/release"
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

// options are those of a manifest in a directory of the test's own.
func options(t *testing.T, manifest string) Options {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "kubeone.yaml")
	manifest = strings.ReplaceAll(manifest, "sshUsername: root", "sshUsername: root\n      sshPrivateKeyFile: "+sshtest.WriteKey(t, "").Path)
	if err := os.WriteFile(path, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	return Options{
		Manifest: path, StateDir: filepath.Join(dir, "state"), Now: time.Now,
		Pool: sshpool.Options{HomeDir: dir, Getenv: func(string) string { return "" }},
	}
}

// open opens an engine that needs no network: its release is known, and its hosts are players of bare machines.
func open(t *testing.T) (*Engine, map[string]*player) {
	t.Helper()
	e, err := Open(t.Context(), options(t, manifestText))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	names, err := release.Names(e.release("amd64"))
	if err != nil {
		t.Fatal(err)
	}
	e.want.Artifacts = map[string]desired.Artifacts{"amd64": names}
	facts, err := os.ReadFile("../probe/testdata/empty.txt")
	if err != nil {
		t.Fatal(err)
	}
	players := map[string]*player{}
	for _, h := range e.want.Hosts() {
		p := &player{id: h.ID, facts: string(facts)}
		players[h.ID], e.hosts[h.ID] = p, p
	}
	return e, players
}

// player is a host that answers the probe with recorded facts, grants its lock, and refuses everything else.
type player struct {
	id string

	mu       sync.Mutex
	facts    string
	commands []string
}

var _ host.Host = (*player)(nil)

func (p *player) Name() string { return "node-" + p.id }

func (p *player) Close() error { return nil }

func (p *player) Dial(context.Context, string, string) (net.Conn, error) {
	return nil, errors.New("nothing listens")
}

func (p *player) Upload(_ context.Context, f host.File) error {
	p.note("upload " + f.Path)
	return errors.New("the player takes no files")
}

func (p *player) note(command string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.commands = append(p.commands, command)
}

// changes are the commands that came, but for probes and locks.
func (p *player) changes() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.commands
}

// say replaces something in what the host will answer.
func (p *player) say(old, now string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.facts = strings.ReplaceAll(p.facts, old, now)
}

func (p *player) Run(_ context.Context, c host.Cmd) (host.Result, error) {
	switch {
	case strings.Contains(c.Script, "kubeone-probe 1"):
		_, err := io.WriteString(c.Stdout, p.present())
		return host.Result{}, err
	case c.Name == "take the lock":
		_, _ = io.WriteString(c.Stdout, "granted 1\n")
		_, err := io.Copy(io.Discard, c.Stdin)
		return host.Result{}, err
	}
	p.note(c.Name)
	return host.Result{ExitCode: 1}, &host.ExitError{Host: p.Name(), What: c.Name, Code: 1}
}

// present makes the recorded answer one of now, from this host.
func (p *player) present() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	clock := fmt.Sprintf("clock\t%f", float64(time.Now().UnixNano())/1e9)
	return strings.NewReplacer(
		"clock\t1800000000.250000000", clock, "clock\t1800000000.350000000", clock,
		"hostname\tcp-1", "hostname\tnode-"+strings.ReplaceAll(p.id, ".", "-"),
		"machine-id\ta7bdb53aa5cf4851a708d39020e5b177", fmt.Sprintf("machine-id\t%032x", net.ParseIP(p.id).To4()),
	).Replace(p.facts)
}
