package apply

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"kubeone/internal/cluster"
	"kubeone/internal/host"
	"kubeone/internal/locks"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
	"kubeone/internal/testutil/hosttest"
)

// machine is a host of a run whose lock a test takes.
type machine struct {
	*hosttest.Host
	t *testing.T
}

func newMachine(t *testing.T, name string) *machine {
	t.Helper()
	return &machine{hosttest.New(t, name), t}
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

// lines returns the events in short: "step-done a", "step-output a: hello".
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

// lab is a run on one machine, "1", named node-1. It holds the machine's lock.
type lab struct {
	*Run
	*machine
	journal *journal
}

// newLab returns a run whose host has this script.
func newLab(t *testing.T, script string, steps ...plan.Step) *lab {
	t.Helper()
	return labOf(t, newMachine(t, "node-1"), script, steps...)
}

// labOf returns a run on the machine, which has this script.
func labOf(t *testing.T, m *machine, script string, steps ...plan.Step) *lab {
	t.Helper()
	j := &journal{}
	r := &Run{
		Plan:  plan.Plan{Format: 1, Cluster: "alpha", Steps: steps, Hosts: named(), Nodes: named()},
		Hosts: map[string]host.Host{"1": m}, Scripts: map[string]string{"1": script}, RunID: "run-1", Holder: "me@here",
		World: observed.World{Hosts: map[string]observed.Host{"1": {ID: "1", EtcdData: observed.No}}},
		Emit:  j.emit, Now: time.Now,
		pause:   func(ctx context.Context, _ time.Duration) bool { return ctx.Err() == nil },
		Connect: Connectors{API: func(cluster.Access) (API, error) { return nil, errors.New("connection refused") }},
	}
	r.Lock = m.lock("run-1", false)
	return &lab{r, m, j}
}

// lock takes the machine's lock for a run until the test ends.
func (m *machine) lock(run string, force bool) *locks.HostLocks {
	m.t.Helper()
	l, err := locks.TakeHosts(patience(m.t), map[string]host.Host{"1": m},
		locks.Claim{Holder: "me@here", RunID: run, Force: force})
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(l.Release)
	return l
}

// kubeconfig returns an administrator's kubeconfig with a secret of its own, and its CA in base64.
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

// patience returns a context that ends before the test's own.
func patience(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// named returns the name of the only host and its Node.
func named() map[string]string { return map[string]string{"1": "node-1"} }

func wanted(controlPlane ...string) desired.Cluster {
	c := desired.Cluster{Name: "alpha", Digest: "manifest-1"}
	for _, id := range controlPlane {
		c.ControlPlane = append(c.ControlPlane,
			desired.Host{ID: id, Role: desired.ControlPlane, Hostname: "node-" + id, PrivateAddress: "10.0.0." + id})
	}
	return c
}
