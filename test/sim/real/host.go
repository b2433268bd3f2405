package real

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"kubeone/internal/host"
	"kubeone/test/sim/drive"
	"kubeone/test/sim/world"
)

// machine is a host as apply sees it. It knows the commands that apply gives, by their names and arguments.
type machine struct {
	w        *World
	operator string
	id, name string
}

var _ host.Host = (*machine)(nil)

// Name is the host's name.
func (m *machine) Name() string { return m.name }

// Close does nothing: connections here have no state.
func (m *machine) Close() error { return nil }

// Dial is not needed: the API and etcd are reached otherwise.
func (m *machine) Dial(context.Context, string, string) (net.Conn, error) {
	return nil, errors.New("there are no tunnels in the simulated world")
}

func (m *machine) lost(what string) error {
	return &host.Error{Class: host.Lost, Host: m.name, What: what, Err: host.ErrConnectionLost}
}

func (m *machine) exit(what string, code int) error {
	return &host.ExitError{Host: m.name, What: what, Code: code}
}

// command does something on the host by its connection.
func (m *machine) command(ctx context.Context, what string, do func(h *world.Host) error) error {
	if err := m.w.take(ctx, m.operator+m.name, what); err != nil {
		return err
	}
	var err error
	m.w.do(func() {
		h := m.w.truth.Host(m.id)
		broken := m.w.breaks(h)
		switch {
		case m.w.dead[m.operator]:
			err = errors.New("the operator's program was killed")
		case !h.Reached(), broken == drive.LostBefore:
			err = m.lost(what)
		default:
			if err = do(h); broken != "" {
				err = m.lost(what)
			}
		}
	})
	return err
}

// Upload stores nothing; a full disk refuses.
func (m *machine) Upload(ctx context.Context, f host.File) error {
	return m.command(ctx, "upload "+f.Path, func(h *world.Host) error {
		if h.Full && !strings.HasPrefix(f.Path, "/run/") {
			return m.exit("upload "+f.Path, 1)
		}
		return nil
	})
}

// Run carries out one of apply's commands.
func (m *machine) Run(ctx context.Context, c host.Cmd) (host.Result, error) {
	switch {
	case c.Name == "take the lock":
		return host.Result{}, m.keep(ctx, c)
	case c.Name == "wait for a running step":
		boots := 0
		m.w.look(func() { boots = m.w.truth.Host(m.id).Boots })
		return host.Result{}, m.follow(ctx, c.Name, boots)
	case c.Name == "look at the lock":
		var generation int64
		err := m.command(ctx, c.Name, func(h *world.Host) error {
			generation = h.Disk.Generation
			return nil
		})
		return host.Result{Stdout: []byte(strconv.FormatInt(generation, 10))}, err
	case c.Name == "look for signs of life":
		return host.Result{}, m.command(ctx, c.Name, func(h *world.Host) error {
			if c.Script != "true" && (h.Run.Etcd || h.Disk.Data != nil) {
				return m.exit(c.Name, 3)
			}
			return nil
		})
	case len(c.Args) == 4:
		return host.Result{}, m.run(ctx, c)
	}
	err := m.command(ctx, c.Name, func(h *world.Host) error {
		missing := c.Name == "read the CAs" && h.Disk.CA == 0 ||
			c.Name == "read the new cluster's credentials" && h.Disk.AdminCA == 0
		if missing || c.Name == "receive uploads" && h.Full {
			return m.exit(c.Name, 1)
		}
		return nil
	})
	return host.Result{Stdout: []byte(printed(c))}, err
}

// kubeconfig is one that nobody can log in with.
const kubeconfig = `apiVersion: v1
kind: Config
current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: "https://192.0.2.250:6443", certificate-authority-data: Q0E=}}]
users: [{name: a, user: {token: a}}]
`

// printed is what a command prints: where nothing was uploaded before, all uploads are missing.
func printed(c host.Cmd) string {
	switch {
	case c.Name == "read the keys for Secrets", c.Name == "read the CAs":
		return "" // no manifest here asks for any, and nobody signs anything
	case c.Secret:
		return kubeconfig
	case c.Name == "look for uploads":
		return c.Args[1]
	}
	return ""
}

// run starts a step, or finds it, and follows it.
func (m *machine) run(ctx context.Context, c host.Cmd) error {
	generation, err := strconv.ParseInt(c.Args[0], 10, 64)
	if err != nil {
		return err
	}
	run, id := c.Args[1], c.Args[2]
	boots := 0
	err = m.command(ctx, c.Name, func(h *world.Host) error {
		boots = h.Boots
		s := m.w.step(run, id)
		by := world.Author{Run: run, Step: id, Host: m.id, Kind: s.Intent.Kind}
		if code := m.w.truth.Start(h, by, generation, s.Intent); code != world.CodeDone {
			return m.exit(c.Name, code)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return m.follow(ctx, c.Name, boots)
}

// follow waits for the end of the step that runs, by a connection that ends when the machine stops.
func (m *machine) follow(ctx context.Context, what string, boots int) error {
	for {
		code, ended := 0, false
		err := m.command(ctx, what, func(h *world.Host) error {
			if h.Boots != boots {
				return m.lost(what)
			}
			code, ended = m.w.truth.Ended(h)
			return nil
		})
		switch {
		case err != nil:
			return err
		case ended && code != world.CodeDone:
			return m.exit(what, code)
		case ended:
			return nil
		}
		if err := sleep(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

// keep is the keeper of the lock: it holds it as long as lines come.
func (m *machine) keep(ctx context.Context, c host.Cmd) error {
	run, force := c.Args[1], c.Args[2] == "yes"
	stale, err := strconv.ParseInt(c.Args[3], 10, 64)
	if err != nil {
		return err
	}
	ours, err := strconv.ParseInt(c.Args[4], 10, 64)
	if err != nil {
		return err
	}
	answer := ""
	err = m.command(ctx, c.Name, func(h *world.Host) error {
		answer = "held\n"
		if h.Held != nil {
			answer += "holder=somebody\nrun=" + h.Held.Run + "\nsince=0\n"
		}
		if generation, ok := m.w.truth.TakeLock(h, world.Claim{Run: run, Force: force, Ours: ours, Stale: stale}); ok {
			answer = fmt.Sprintf("granted %d\n", generation)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if _, err := c.Stdout.Write([]byte(answer)); err != nil || answer[0] == 'h' {
		return err
	}
	for lines := bufio.NewScanner(c.Stdin); lines.Scan(); {
		held := true
		err := m.command(ctx, "beat", func(h *world.Host) error {
			if held = h.Held != nil && h.Held.Run == run; held {
				h.Held.Beat = m.w.truth.Now
			}
			return nil
		})
		if err != nil || !held {
			return err
		}
	}
	return m.command(context.WithoutCancel(ctx), "unlock", func(h *world.Host) error {
		m.w.truth.Unlock(h, run)
		return nil
	})
}
