package hostile

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/crypto/ssh"

	"kubeone/internal/probe"
	"kubeone/internal/testutil/sshtest"
)

// attempt is one attack. At most one of says, answers and raw is set. With none, the attack is an object in the API
// that a kubelet may write.
type attempt struct {
	name string
	as   []role
	// says turns the answer of an honest host into the attacker's. The result is framed like an honest answer.
	says func(*trial) []string
	// answers replaces the host's answer, and returns the exit status.
	answers func(*trial, *sshtest.Session) int
	// raw replaces the SSH server.
	raw func(net.Conn)
	// objects adds the objects that the attacker's kubelet has written to the API.
	objects func(objects)
	runs    string // the cluster's version, for upgrades; empty means the desired one
	slow    bool   // never completes: the test waits as long as it allows
	// waits means that the upgrade of the cluster may wait for an operator, who then excludes the attacker with --host.
	// An honest host with the same answer would be a reason to wait, too.
	waits bool
	idle  bool // no step may change it
	// except are the machines whose decisions the attempt may change.
	except []string
}

// trial is one attempt in one role.
type trial struct {
	attempt
	as      role
	cluster *cluster
	secret  string // of the attacker's own API

	mu      sync.Mutex
	heard   [][]byte // all input of the attacker's host: commands and their standard input
	strange []string // unexpected input
	sent    atomic.Int64
	tunnels atomic.Int64
	asked   atomic.Int64 // number of probes
}

// honestAnswer returns the answer of an honest host in place of the attacker.
func (g *trial) honestAnswer() []string { return g.cluster.honestAnswer(g.as.findMachine()) }

// hostID returns the ID of a host.
func (g *trial) hostID(name string) string {
	if g.as == poolHost {
		return g.cluster.hostID(name)
	}
	return idIn(desiredCluster(g.as), name)
}

// startAttacker lets the attacker listen, and returns its port and its key.
func (g *trial) startAttacker(t *testing.T) (int, ssh.PublicKey) {
	t.Helper()
	if g.raw != nil {
		return g.startRaw(t), g.cluster.key.Public()
	}
	s := sshtest.Start(t, sshtest.Options{
		AllLoopback: true, Handler: g.handleCommand,
		Dial: func(_ context.Context, _, addr string) (net.Conn, error) {
			g.tunnels.Add(1)
			g.noteInput(nil, "a tunnel to "+addr)
			return nil, errors.New("refused")
		},
	})
	return s.Port(), s.HostKey()
}

func (g *trial) startRaw(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp4", g.as.findMachine().at+":0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			g.asked.Add(1)
			all.Go(func() {
				defer func() { _ = c.Close() }()
				g.raw(counted{c, &g.sent})
			})
		}
	})
	_, port, _ := net.SplitHostPort(l.Addr().String())
	n, _ := strconv.Atoi(port)
	return n
}

type counted struct {
	net.Conn
	n *atomic.Int64
}

func (c counted) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.n.Add(int64(n))
	return n, err
}

// noteInput records input.
func (g *trial) noteInput(heard []byte, strange string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if heard != nil {
		g.heard = append(g.heard, heard)
	}
	if strange != "" {
		g.strange = append(g.strange, strange)
	}
}

// handleCommand answers one command. Only the probe may come, and it may not request credentials.
func (g *trial) handleCommand(s *sshtest.Session) int {
	text, err := scriptOf(s)
	g.noteInput(append([]byte(s.Command+"\n"), text...), "")
	gone := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	if gone && strings.HasPrefix(probe.Script, string(text)) {
		return 74 // the client has disconnected
	}
	if err != nil || !strings.HasPrefix(string(text), probe.Script) || len(text) > len(probe.Script)+20 {
		g.noteInput(nil, "another script than the probe's: "+s.Command)
	}
	if !strings.Contains(s.Command+" ", " kubeone facts ") {
		g.noteInput(nil, "the probe with other arguments: "+s.Command)
	}
	var rest sync.WaitGroup
	rest.Go(func() {
		if more, _ := io.ReadAll(s.Stdin); len(more) > 0 {
			g.noteInput(more, "more than the probe's script")
		}
	})
	g.asked.Add(1)
	s.Stdout, s.Stderr = writer{s.Stdout, &g.sent}, writer{s.Stderr, &g.sent}
	if g.answers != nil {
		return g.answers(g, s)
	}
	lines := g.honestAnswer()
	if g.says != nil {
		lines = g.says(g)
	}
	_, _ = io.WriteString(s.Stdout, frameAnswer(lines))
	return 0
}

type writer struct {
	io.Writer
	n *atomic.Int64
}

func (w writer) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	w.n.Add(int64(n))
	return n, err
}

// pourBytes writes piece repeatedly until a write fails or most bytes are written.
func pourBytes(w io.Writer, piece string, most int) {
	for n := 0; n < most; {
		wrote, err := io.WriteString(w, piece)
		if err != nil || wrote == 0 {
			return
		}
		n += wrote
	}
}

// An edit that starts with "-" removes the lines with that prefix.
func editLines(lines []string, edits ...string) []string {
	var kept []string
	for _, line := range lines {
		drop := false
		for _, e := range edits {
			begin, without := strings.CutPrefix(e, "-")
			drop = drop || without && strings.HasPrefix(line, begin)
		}
		if !drop {
			kept = append(kept, line)
		}
	}
	for _, e := range edits {
		if !strings.HasPrefix(e, "-") {
			kept = append(kept, e)
		}
	}
	return kept
}

// addLines returns the answer of an honest host with edits.
func addLines(edits ...string) func(*trial) []string {
	return func(g *trial) []string { return editLines(g.honestAnswer(), edits...) }
}

// printText answers with a literal text.
func printText(text func(*trial) string) func(*trial, *sshtest.Session) int {
	return func(g *trial, s *sshtest.Session) int {
		_, _ = io.WriteString(s.Stdout, text(g))
		return 0
	}
}
