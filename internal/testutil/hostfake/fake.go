// Package hostfake is a host.Host for tests: it answers expected commands, stores uploaded files, and fails the test
// for anything else.
package hostfake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strings"
	"sync"
	"testing"

	"kubeone/internal/host"
)

// An Expect is one expected command and its answer.
type Expect struct {
	// Name is the Cmd.Name expected; "" accepts any.
	Name string
	// Script is a part of the script expected; "" accepts any.
	Script string
	// Args are the arguments expected; nil accepts any.
	Args []string

	// Stdout, Stderr and ExitCode are the answer. A code other than 0 gives a *host.ExitError.
	Stdout, Stderr string
	ExitCode       int
	// Err is returned instead of an answer, such as a *host.Error of an unreachable host.
	Err error
	// Do, if set, answers instead of the fields above.
	Do func(ctx context.Context, c host.Cmd) (host.Result, error)
	// Times is how often the command may come: 0 means exactly once, -1 any number of times, including never.
	Times int
}

// A File is a file that was uploaded.
type File struct {
	Mode    fs.FileMode
	Owner   string
	Content string
}

// A Host is a scripted host.Host. Expected commands may come in any order; the first matching expectation that is not
// used up answers. It is safe for concurrent use.
type Host struct {
	t    testing.TB
	name string

	mu       sync.Mutex
	expects  []*Expect
	used     map[*Expect]int
	commands []host.Cmd
	files    map[string]File
	dial     func(ctx context.Context, network, addr string) (net.Conn, error)
}

var _ host.Host = (*Host)(nil)

// New returns a host. When the test ends, it fails if an expected command was not run.
func New(t testing.TB, name string, expects ...Expect) *Host {
	t.Helper()
	h := &Host{t: t, name: name, used: map[*Expect]int{}, files: map[string]File{}}
	h.Expect(expects...)
	t.Cleanup(h.verifyCalls)
	return h
}

// Expect adds commands.
func (h *Host) Expect(expects ...Expect) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range expects {
		h.expects = append(h.expects, &e)
	}
}

// OnDial answers Dial; without it, Dial fails the test.
func (h *Host) OnDial(dial func(ctx context.Context, network, addr string) (net.Conn, error)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dial = dial
}

// Commands returns the received commands in order.
func (h *Host) Commands() []host.Cmd {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]host.Cmd(nil), h.commands...)
}

// File returns the file uploaded to a path.
func (h *Host) File(path string) (File, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f, ok := h.files[path]
	return f, ok
}

func (h *Host) verifyCalls() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.expects {
		if n := h.used[e]; e.Times >= 0 && n < max(1, e.Times) {
			h.t.Errorf("%s: expected %s, which came %d times", h.name, e, n)
		}
	}
}

// String describes the expectation in failures.
func (e *Expect) String() string {
	return fmt.Sprintf("a command (name %q, script with %q, args %q)", e.Name, e.Script, e.Args)
}

func (e *Expect) matchesCommand(c host.Cmd) bool {
	return (e.Name == "" || e.Name == c.Name) && strings.Contains(c.Script, e.Script) &&
		(e.Args == nil || strings.Join(e.Args, "\x00") == strings.Join(c.Args, "\x00"))
}

// Name implements host.Host.
func (h *Host) Name() string { return h.name }

// Close implements host.Host.
func (h *Host) Close() error { return nil }

// Run implements host.Host.
func (h *Host) Run(ctx context.Context, c host.Cmd) (host.Result, error) {
	h.t.Helper()
	if err := ctx.Err(); err != nil {
		return host.Result{ExitCode: -1}, &host.Error{Class: host.Canceled, Host: h.name, What: c.Name, Err: err}
	}
	e := h.takeExpected(c)
	if e == nil {
		h.t.Errorf("%s: unexpected command %q, args %q, script:\n%s", h.name, c.Name, c.Args, c.Script)
		return host.Result{ExitCode: -1}, errors.New("hostfake: unexpected command")
	}
	if e.Do != nil {
		return e.Do(ctx, c)
	}
	if e.Err != nil {
		return host.Result{ExitCode: -1}, e.Err
	}
	return e.answerCommand(h.name, c)
}

func (h *Host) takeExpected(c host.Cmd) *Expect {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.commands = append(h.commands, c)
	for _, e := range h.expects {
		if e.matchesCommand(c) && (e.Times < 0 || h.used[e] < max(1, e.Times)) {
			h.used[e]++
			return e
		}
	}
	return nil
}

func (e *Expect) answerCommand(name string, c host.Cmd) (host.Result, error) {
	res := host.Result{ExitCode: e.ExitCode}
	if c.Stdin != nil {
		if _, err := io.Copy(io.Discard, c.Stdin); err != nil {
			return host.Result{ExitCode: -1}, err
		}
	}
	if err := writeOutput(c.Stdout, &res.Stdout, e.Stdout); err != nil {
		return res, err
	}
	if err := writeOutput(c.Stderr, &res.Stderr, e.Stderr); err != nil {
		return res, err
	}
	if e.ExitCode != 0 {
		return res, &host.ExitError{Host: name, What: c.Name, Code: e.ExitCode, Stderr: []byte(e.Stderr)}
	}
	return res, nil
}

func writeOutput(w io.Writer, collected *[]byte, s string) error {
	if w == nil {
		*collected = []byte(s)
		return nil
	}
	_, err := io.WriteString(w, s)
	return err
}

// Upload implements host.Host.
func (h *Host) Upload(_ context.Context, f host.File) error {
	var content []byte
	if f.Content != nil {
		var err error
		if content, err = io.ReadAll(f.Content); err != nil {
			return err
		}
	}
	if int64(len(content)) != f.Size {
		return fmt.Errorf("%s: %s has %d bytes, not %d", h.name, f.Path, len(content), f.Size)
	}
	mode := f.Mode
	if mode == 0 {
		mode = 0o600
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.files[f.Path] = File{Mode: mode, Owner: f.Owner, Content: string(content)}
	return nil
}

// Dial implements host.Host.
func (h *Host) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	h.mu.Lock()
	dial := h.dial
	h.mu.Unlock()
	if dial == nil {
		h.t.Errorf("%s: unexpected dial of %s", h.name, addr)
		return nil, errors.New("hostfake: unexpected dial")
	}
	return dial(ctx, network, addr)
}
