package drive

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"path"
	"strconv"
	"strings"
	"time"

	"kubeone/internal/host"
	"kubeone/test/sim/world"
)

// remote is a host as apply sees it. It knows apply's commands by their names and arguments.
type remote struct {
	o        *operator
	id, name string
	granted  int64 // generation of the run's lock, as the run knows it
}

var _ host.Host = (*remote)(nil)

// Name is the host's name.
func (r *remote) Name() string { return r.name }

// Close does nothing: connections here have no state.
func (r *remote) Close() error { return nil }

// Dial is unused: the API and etcd are simulated elsewhere.
func (r *remote) Dial(context.Context, string, string) (net.Conn, error) {
	return nil, errors.New("there are no tunnels in the simulated world")
}

func (r *remote) lostError(what string) error {
	return &host.Error{Class: host.Lost, Host: r.name, What: what, Err: host.ErrConnectionLost}
}

func (r *remote) exitError(what string, code int) error {
	return &host.ExitError{Host: r.name, What: what, Code: code}
}

// runCommand runs an action on the host through its connection, which a fault may break.
func (r *remote) runCommand(ctx context.Context, what string, do func(h *world.Host) error) error {
	return r.runOver(ctx, what, r.o.sim.takeFault, do)
}

// runUnbroken is a command that connection faults ignore. They are meant for the commands of steps.
func (r *remote) runUnbroken(ctx context.Context, what string, do func(h *world.Host) error) error {
	return r.runOver(ctx, what, func(*world.Host) Kind { return "" }, do)
}

func (r *remote) runOver(ctx context.Context, what string, breaks func(*world.Host) Kind,
	do func(h *world.Host) error) error {
	switch err := r.o.takeTime(ctx, r.id+" "+what); {
	case errors.Is(err, errBroken):
		return r.lostError(what)
	case err != nil:
		return err
	}
	var err error
	r.o.sim.actAs(r.o, func() {
		h := r.o.sim.World.Host(r.id)
		switch {
		case r.o.dead:
			err = errKilled
			return
		case !h.Reached():
			err = r.lostError(what)
			return
		}
		broken := breaks(h)
		if broken != LostBefore {
			err = do(h)
		}
		if broken != "" {
			err = r.lostError(what)
		}
	})
	return err
}

// Upload stores nothing, and fails on a full disk. Files of one directory take equal times, because apply sends them in
// any order.
func (r *remote) Upload(ctx context.Context, f host.File) error {
	return r.runCommand(ctx, "upload below "+path.Dir(f.Path), func(h *world.Host) error {
		if h.Full && !strings.HasPrefix(f.Path, "/run/") {
			return r.exitError("upload "+f.Path, 1)
		}
		return nil
	})
}

// Run carries out one of apply's commands.
func (r *remote) Run(ctx context.Context, c host.Cmd) (host.Result, error) {
	switch {
	case c.Name == "take the lock":
		return host.Result{}, r.keepLock(ctx, c)
	case c.Name == "look at the lock":
		return r.lookAtLock(ctx, c)
	case c.Name == "look for signs of life":
		return host.Result{}, r.runCommand(ctx, c.Name, func(h *world.Host) error {
			if c.Script != "true" && (h.Run.Etcd || h.Disk.Data != nil) {
				return r.exitError(c.Name, 3)
			}
			return nil
		})
	case c.Name == "remove the working directory":
		return host.Result{}, r.runCommand(ctx, c.Name, func(h *world.Host) error {
			r.o.sim.World.Forget(h, c.Args[0])
			return nil
		})
	case len(c.Args) == 4:
		return host.Result{}, r.runStep(ctx, c)
	}
	var printed string
	err := r.runCommand(ctx, c.Name, func(h *world.Host) error {
		missing := c.Name == "read the CAs" && h.Disk.CA == 0 ||
			c.Name == "read the new cluster's credentials" && h.Disk.AdminCA == 0
		if missing || c.Name == "receive uploads" && h.Full {
			return r.exitError(c.Name, 1)
		}
		var err error
		printed, err = r.o.sim.commandOutput(h, c)
		return err
	})
	return host.Result{Stdout: []byte(printed)}, err
}

// lookAtLock returns the generation of the lock. With a guard off, it returns the run's own.
func (r *remote) lookAtLock(ctx context.Context, c host.Cmd) (host.Result, error) {
	var generation int64
	err := r.runCommand(ctx, c.Name, func(h *world.Host) error {
		if generation = h.Disk.Generation; r.granted != 0 && (r.o.isDeaf() || r.o.isUnlocked()) {
			generation = r.granted
		}
		return nil
	})
	return host.Result{Stdout: []byte(strconv.FormatInt(generation, 10))}, err
}

// kubeconfig is a kubeconfig without valid credentials.
const kubeconfig = `apiVersion: v1
kind: Config
current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: "https://192.0.2.250:6443", certificate-authority-data: Q0E=}}]
users: [{name: a, user: {token: a}}]
`

// commandOutput returns a command's output. All uploads are missing, because none is stored.
func (s *Simulation) commandOutput(h *world.Host, c host.Cmd) (string, error) {
	switch {
	case c.Name == "read the keys for Secrets":
		return keysOf(h)
	case c.Name == "read the keys of authorities":
		return s.authorities.archiveOf(h)
	case c.Name == "read the CAs":
		return "", nil // nothing is signed
	case c.Secret:
		return kubeconfig, nil
	case c.Name == "look for uploads":
		return c.Args[1], nil
	}
	return "", nil
}

// runStep starts a step, or finds it running, and follows it.
func (r *remote) runStep(ctx context.Context, c host.Cmd) error {
	generation, err := strconv.ParseInt(c.Args[0], 10, 64)
	if err != nil {
		return err
	}
	run, id := c.Args[1], c.Args[2]
	boots := 0
	err = r.runCommand(ctx, c.Name, func(h *world.Host) error {
		boots = h.Boots
		s := r.o.findStep(id)
		by := world.Author{Run: run, Step: id, Host: s.Host, Kind: s.Intent.Kind}
		if code := r.o.sim.World.Start(h, by, generation, s.Intent); code != world.CodeDone {
			return r.exitError(c.Name, code)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return r.followStep(ctx, c.Name, boots)
}

// followStep waits for the end of the running step. Its connection ends when the machine stops.
func (r *remote) followStep(ctx context.Context, what string, boots int) error {
	for {
		code, ended := 0, false
		err := r.runCommand(ctx, what, func(h *world.Host) error {
			if h.Boots != boots {
				return r.lostError(what)
			}
			code, ended = r.o.sim.World.Ended(h)
			return nil
		})
		switch {
		case err != nil:
			return err
		case ended && code != world.CodeDone:
			return r.exitError(what, code)
		case ended:
			return nil
		}
		if err := sleepFor(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

// unwritable is the exit status of lock.sh when the disk is not writable.
const unwritable = 73

// keepLock holds the lock as long as lines arrive.
func (r *remote) keepLock(ctx context.Context, c host.Cmd) error {
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
	err = r.runCommand(ctx, c.Name, func(h *world.Host) error {
		claim := world.Claim{Run: run, Force: force, Ours: ours, Stale: stale}
		answer, err = r.answerClaim(h, claim)
		return err
	})
	if err != nil {
		return err
	}
	if _, err := c.Stdout.Write([]byte(answer)); err != nil || answer[0] == 'h' {
		return err
	}
	for lines := bufio.NewScanner(c.Stdin); lines.Scan(); {
		held := true
		err := r.runUnbroken(ctx, "beat", func(h *world.Host) error {
			if held = h.Held != nil && h.Held.Run == run; held {
				h.Held.Beat = r.o.sim.World.Now
			}
			return nil
		})
		if err != nil || !held && !r.o.isDeaf() && !r.o.isUnlocked() {
			return err
		}
	}
	return r.runUnbroken(context.WithoutCancel(ctx), "unlock", func(h *world.Host) error {
		r.o.sim.World.Unlock(h, run)
		return nil
	})
}

// answerClaim returns the host's answer to a claim of its lock.
func (r *remote) answerClaim(h *world.Host, c world.Claim) (string, error) {
	if r.o.isUnlocked() {
		r.granted = 1
		return "granted 1\n", nil
	}
	generation, granted := r.o.sim.World.TakeLock(h, c)
	switch {
	case granted:
		r.granted = generation
		return fmt.Sprintf("granted %d\n", generation), nil
	case h.Full:
		return "", r.exitError("take the lock", unwritable)
	case h.Held != nil:
		return "held\nholder=somebody\nrun=" + h.Held.Run + "\nsince=0\n", nil
	}
	return "held\n", nil
}
