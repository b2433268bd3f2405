// Package hosttest has a host for tests, with a real SSH server and real shells.
package hosttest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"kubeone/internal/host"
	"kubeone/internal/host/sshpool"
	"kubeone/internal/testutil/sshtest"
)

// Host is a host with a real SSH server. Scripts run in a directory that stands for its file system: the directories of
// kubeone are below Root, and a substitute for systemd keeps one unit.
type Host struct {
	host.Host
	Root   string
	Server *sshtest.Server

	// The host updates these fields during commands and uploads.
	Args    []string               // of all commands
	Uploads map[string]os.FileMode // by path
	OnRun   func(host.Cmd) error   // may refuse a command before it runs

	t  *testing.T
	mu sync.Mutex
}

var product = regexp.MustCompile(`/(var/lib/kubeone|var/lib/etcd|run/kubeone|etc/kubernetes|etc/kubeone)\b`)

// SystemdRun is the script that replaces systemd-run.
const SystemdRun = `#!/bin/sh
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
# The unit needs a parent that sees its end.
setsid sh -c '"$@" & echo $! >"$ROOT/born"; wait $!' sh "$@" </dev/null >/dev/null 2>&1 &
read -r pid <"$ROOT/born"
printf '%s\n' "$pid" >"$ROOT/pid"
`

const systemctl = `#!/bin/sh
pid=$(cat "$ROOT/pid" 2>/dev/null || echo 0)
[ "$pid" = 0 ] || kill -0 "$pid" 2>/dev/null || pid=0
case $1 in
is-active) [ "$pid" != 0 ] || exit 3 ;;
show) echo "$pid" ;;
esac
`

// New starts a host that ends with the test.
func New(t *testing.T, name string) *Host {
	t.Helper()
	h := &Host{t: t, Root: t.TempDir(), Uploads: map[string]os.FileMode{}}
	for tool, text := range map[string]string{"systemctl": systemctl, "systemd-run": SystemdRun} {
		h.Write("bin/"+tool, text, 0o700)
	}
	t.Cleanup(h.killUnit)
	h.Server = sshtest.Start(t,
		sshtest.Options{Handler: sshtest.Shell("ROOT="+h.Root, "PATH="+h.Path("bin")+":"+os.Getenv("PATH"))})
	pool := sshpool.New(sshpool.Options{
		HomeDir: t.TempDir(), SystemDir: t.TempDir(), Getenv: func(string) string { return "" },
		// The server runs in this process, and the machine may be busy.
		DialTimeout: time.Minute, HandshakeTimeout: time.Minute, KeepaliveInterval: time.Minute,
	})
	t.Cleanup(func() { _ = pool.Close() })
	h.Host = pool.Host(host.Target{
		Name: name, Address: "127.0.0.1", Port: h.Server.Port(), KeyFile: sshtest.WriteKey(t, "").Path,
		HostKeys: []ssh.PublicKey{h.Server.HostKey()},
	})
	return h
}

// killUnit ends the processes of the last unit, which may wait for a gate that no test opens any more.
func (h *Host) killUnit() {
	pid, err := strconv.Atoi(strings.TrimSpace(h.Read("pid")))
	if err != nil || pid <= 1 {
		return // no unit was started
	}
	// A unit has a session of its own; what a test starts itself does not.
	if group, err := syscall.Getpgid(pid); err == nil && group != syscall.Getpgrp() {
		_ = syscall.Kill(-group, syscall.SIGKILL)
	}
}

// Path returns where a file of the host is.
func (h *Host) Path(name string) string { return filepath.Join(h.Root, name) }

// Write writes a file of the host.
func (h *Host) Write(name, content string, mode os.FileMode) {
	h.t.Helper()
	if err := os.MkdirAll(filepath.Dir(h.Path(name)), 0o700); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(h.Path(name), []byte(content), mode); err != nil {
		h.t.Fatal(err)
	}
}

// Read returns the content of a file of the host, or "" if it cannot be read.
func (h *Host) Read(name string) string {
	content, err := os.ReadFile(h.Path(name))
	if err != nil {
		return ""
	}
	return string(content)
}

// Below returns a script with the directories of kubeone below Root.
func (h *Host) Below(text string) string { return product.ReplaceAllString(text, h.Root+"/$1") }

// Run runs the script over SSH, below Root.
func (h *Host) Run(ctx context.Context, c host.Cmd) (host.Result, error) {
	h.mu.Lock()
	h.Args = append(h.Args, c.Args...)
	refuse := h.OnRun
	h.mu.Unlock()
	if refuse != nil {
		if err := refuse(c); err != nil {
			return host.Result{ExitCode: -1}, err
		}
	}
	c.Script = h.Below(c.Script)
	args := make([]string, 0, len(c.Args))
	for _, a := range c.Args {
		args = append(args, h.Below(a))
	}
	c.Args = args
	return h.Host.Run(ctx, c)
}

// Upload writes the file below Root. The tests of package sshpool cover real uploads.
func (h *Host) Upload(_ context.Context, f host.File) error {
	content, err := io.ReadAll(f.Content)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Uploads[f.Path] = f.Mode
	h.Write(strings.TrimPrefix(f.Path, "/"), h.Below(string(content)), f.Mode)
	return nil
}

// Gate creates a FIFO. A script that runs wait blocks until the test calls open.
func (h *Host) Gate() (wait string, open func()) {
	h.t.Helper()
	path := h.Path("gate")
	if out, err := h.Host.Run(h.t.Context(), host.Cmd{Script: "mkfifo " + path}); err != nil {
		h.t.Fatal(err, string(out.Stderr))
	}
	return "read -r _ <" + path, func() {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err == nil {
			_, err = fmt.Fprintln(f, "go")
		}
		if err != nil {
			h.t.Error(err)
		}
		h.t.Cleanup(func() { _ = f.Close() })
	}
}

// LockFile lets another process lock a file of the host until the test ends, and returns its process ID.
func (h *Host) LockFile(name string) int {
	h.t.Helper()
	h.Write(name, "", 0o600)
	cmd := exec.CommandContext(h.t.Context(), "flock", "-n", h.Path(name), "sh", "-c", "echo locked; exec cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "locked\n" {
		h.t.Fatalf("%s is not locked: %q, %v", name, line, err)
	}
	return cmd.Process.Pid
}
