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

// attempt is one thing that an attacker tries. Of says, plays and raw one is set, or none where it is something in the
// API that its kubelet may write.
type attempt struct {
	name string
	as   []role
	// says turns the answer of an honest host into the attacker's. The whole answer is framed as an honest one.
	says func(*trial) []string
	// plays answers in place of a host, and returns the exit status.
	answers func(*trial, *sshtest.Session) int
	// raw answers in place of an SSH server.
	raw func(net.Conn)
	// objects are what its kubelet has put into the API.
	objects func(objects)
	runs    string // what the cluster runs, where it is to be upgraded; "" is as wanted
	slow    bool   // it is waited for in vain, for as long as the test says
	// waits says that the cluster's upgrade may wait for a person: it is left out with --host then, as what it says is
	// a reason to wait if an honest host says it.
	waits bool
	idle  bool // nothing may be done to it
	// except are machines whose decisions it does change, by right.
	except []string
}

// trial is one attempt while it is made.
type trial struct {
	attempt
	as      role
	cluster *cluster
	secret  string // of the attacker's own API

	mu      sync.Mutex
	heard   [][]byte // all that came to the attacker, commands and what they were given
	strange []string // what should not have come
	sent    atomic.Int64
	tunnels atomic.Int64
	asked   atomic.Int64 // how many probes came
}

// honest is what a host in the attacker's seat would say.
func (g *trial) honest() []string { return g.cluster.honest(g.as.machine()) }

// id returns the ID of a host.
func (g *trial) id(name string) string {
	if g.as == poolHost {
		return g.cluster.id(name)
	}
	return idIn(wanted(g.as), name)
}

// start lets the attacker listen, and returns its port and its key.
func (g *trial) start(t *testing.T) (int, ssh.PublicKey) {
	t.Helper()
	if g.raw != nil {
		return g.startRaw(t), g.cluster.key.Public()
	}
	s := sshtest.Start(t, sshtest.Options{
		AllLoopback: true, Handler: g.handle,
		Dial: func(_ context.Context, _, addr string) (net.Conn, error) {
			g.tunnels.Add(1)
			g.note(nil, "a tunnel to "+addr)
			return nil, errors.New("refused")
		},
	})
	return s.Port(), s.HostKey()
}

func (g *trial) startRaw(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp4", g.as.machine().at+":0")
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

// note keeps what came.
func (g *trial) note(heard []byte, strange string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if heard != nil {
		g.heard = append(g.heard, heard)
	}
	if strange != "" {
		g.strange = append(g.strange, strange)
	}
}

// handle takes one command: nothing but the probe may come, and it may not ask for credentials.
func (g *trial) handle(s *sshtest.Session) int {
	text, err := scriptOf(s)
	g.note(append([]byte(s.Command+"\n"), text...), "")
	gone := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	if gone && strings.HasPrefix(probe.Script, string(text)) {
		return 74 // who asked has gone
	}
	if err != nil || !strings.HasPrefix(string(text), probe.Script) || len(text) > len(probe.Script)+20 {
		g.note(nil, "another script than the probe's: "+s.Command)
	}
	if !strings.Contains(s.Command+" ", " kubeone facts ") {
		g.note(nil, "the probe with other arguments: "+s.Command)
	}
	var rest sync.WaitGroup
	rest.Go(func() {
		if more, _ := io.ReadAll(s.Stdin); len(more) > 0 {
			g.note(more, "more than the probe's script")
		}
	})
	g.asked.Add(1)
	s.Stdout, s.Stderr = writer{s.Stdout, &g.sent}, writer{s.Stderr, &g.sent}
	if g.answers != nil {
		return g.answers(g, s)
	}
	lines := g.honest()
	if g.says != nil {
		lines = g.says(g)
	}
	_, _ = io.WriteString(s.Stdout, answer(lines))
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

// pour writes the same again and again until nobody takes it, or so many bytes are written.
func pour(w io.Writer, piece string, most int) {
	for n := 0; n < most; {
		wrote, err := io.WriteString(w, piece)
		if err != nil || wrote == 0 {
			return
		}
		n += wrote
	}
}

// Prefixes of lines to be left out begin with "-".
func edited(lines []string, edits ...string) []string {
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

// adds reports what an honest host says, edited.
func adds(edits ...string) func(*trial) []string {
	return func(g *trial) []string { return edited(g.honest(), edits...) }
}

// prints answers with a text as it is.
func prints(text func(*trial) string) func(*trial, *sshtest.Session) int {
	return func(g *trial, s *sshtest.Session) int {
		_, _ = io.WriteString(s.Stdout, text(g))
		return 0
	}
}
