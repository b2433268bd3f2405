package apply

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"kubeone/internal/host"
	"kubeone/internal/short"
	"kubeone/internal/step"
)

// asNobody has a command run as a user that owns nothing, where this test is root; as this test's user elsewhere.
func asNobody(cmd *exec.Cmd) {
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
}

// hold has another process lock the file until the test ends, and returns its process ID.
func hold(t *testing.T, file string, as func(*exec.Cmd)) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "flock", "-n", file, "sh", "-c", "echo locked; exec cat")
	as(cmd)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "locked\n" {
		t.Fatalf("%s is not locked: %q, %v", file, line, err)
	}
	return cmd.Process.Pid
}

// enterable has other users enter the directory, and those above it that are the test's.
func enterable(t *testing.T, dir string) {
	t.Helper()
	for ; strings.HasPrefix(dir, os.TempDir()+"/"); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWhatIsOnAHostIsRootsAlone(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "node-1")
	for _, dir := range []string{"var/lib/kubeone/lock", "var/lib/kubeone/step", "run/kubeone"} { // as they were once
		if err := os.MkdirAll(m.path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
		enterable(t, m.path(dir))
	}
	l := labOf(t, m, ":", prepare())
	if err := l.Do(patience(t), nil); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"var/lib/kubeone", "var/lib/kubeone/lock", "var/lib/kubeone/step", "run/kubeone"} {
		info, err := os.Stat(m.path(dir))
		if err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", dir, info.Mode(), err)
		}
	}
	for _, dir := range []string{"lock", "step"} {
		err := filepath.WalkDir(m.path("var/lib/kubeone/"+dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			if info, err := d.Info(); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v, %v", path, info.Mode(), err)
			}
			if out, err := tryLock(t, path); os.Geteuid() == 0 && err == nil {
				t.Errorf("another user can lock %s: %s", path, out)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func tryLock(t *testing.T, path string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "flock", "-n", path, "true")
	asNobody(cmd)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Each of our scripts that finds a file locked ends after a while, and names the process.
func TestAScriptSaysWhichProcessItWaitedFor(t *testing.T) {
	t.Parallel()
	for _, shell := range [][]string{{"dash"}, {"bash", "--posix"}, {"busybox", "sh"}} {
		for _, name := range []string{"lock", "start", "follow", "forget"} {
			t.Run(shell[0]+"/"+name, func(t *testing.T) {
				t.Parallel()
				short.Tool(t, shell[0])
				m := newMachine(t, "node-1")
				m.write("var/lib/kubeone/lock/flock", "", 0o600)
				m.write("var/lib/kubeone/step/flock", "", 0o600)
				file := m.path("var/lib/kubeone/lock/flock")
				if name == "start" || name == "follow" {
					file = m.path("var/lib/kubeone/step/flock")
					m.write("var/lib/kubeone/step/log", "", 0o600)
				}
				pid := hold(t, file, func(*exec.Cmd) {})
				words := append(shell[1:len(shell):len(shell)], "-c", m.below(locking(time.Second, name)), "sh",
					"me@here", "run-1", "no", "20", "0")
				cmd := exec.CommandContext(t.Context(), shell[0], words...)
				cmd.Env = append(os.Environ(), "PATH="+m.path("bin")+":"+os.Getenv("PATH"), "ROOT="+m.root)
				out, err := cmd.CombinedOutput()
				var exit *exec.ExitError
				if !errors.As(err, &exit) || exit.ExitCode() != exitLocked {
					t.Fatalf("%v: %s", err, out)
				}
				for _, want := range []string{
					file + " has been locked for 1 s by process ", strconv.Itoa(pid) + " (flock)", " (cat)",
					"run kubeone again",
				} {
					if !strings.Contains(string(out), want) {
						t.Errorf("%q lacks %q", out, want)
					}
				}
			})
		}
	}
}

func TestAScriptSaysThatItCannotSeeWhoHasTheFile(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "node-1")
	m.write("var/lib/kubeone/lock/flock", "", 0o600)
	hold(t, m.path("var/lib/kubeone/lock/flock"), func(*exec.Cmd) {})
	text := strings.ReplaceAll(m.below(locking(time.Second, "lock")), "/proc/", m.path("proc")+"/")
	out, err := exec.CommandContext(t.Context(), "sh", "-c", text, "sh", "me@here", "run-1", "no", "20", "0").
		CombinedOutput()
	if err == nil || !strings.Contains(string(out), "by a process that /proc does not show") {
		t.Errorf("%v: %s", err, out)
	}
}

// lockedHost is a host on which another process has locked a file of ours.
type lockedHost struct {
	host.Host
	name string
}

func (l *lockedHost) Name() string { return l.name }

func (l *lockedHost) Run(_ context.Context, c host.Cmd) (host.Result, error) {
	return host.Result{ExitCode: exitLocked}, &host.ExitError{
		Host: l.name, What: c.Name, Code: exitLocked,
		Stderr: []byte("/x/flock has been locked for 40 s by process 7\n"),
	}
}

func TestALockedFileIsWhyAHostIsNotWorkedOn(t *testing.T) {
	t.Parallel()
	const want = "node-1: take the lock: /x/flock has been locked for 40 s by process 7"
	stuck := &lockedHost{name: "node-1"}
	_, err := TakeLock(patience(t), map[string]host.Host{"1": stuck}, Claim{Holder: "me@here", Run: "run-1"})
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	l, err := TakeLock(patience(t), map[string]host.Host{"1": stuck, "2": newMachine(t, "node-2")},
		Claim{Holder: "me@here", Run: "run-1", Dispensable: map[string]bool{"1": true}})
	if err != nil {
		t.Fatalf("a worker stops the run: %v", err)
	}
	defer l.Release()
	if denied := l.Denied("1"); denied == nil || denied.Error() != want {
		t.Errorf("denied: %v", denied)
	}
	s := stepOf("init/node-1", "1", step.Init)
	_, err = stuck.Run(t.Context(), host.Cmd{})
	if got := explain(err, "node-1", s).Error(); got != "node-1: /x/flock has been locked for 40 s by process 7" {
		t.Errorf("a step says %q", got)
	}
}

// The host says which process it waits for before the run gives it up.
func TestAHostWaitsForAFileLessThanARunForTheHost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string][2]time.Duration{
		"a lock": {FlockTimeout, GrantTimeout}, "a step": {StartTimeout, StepTimeout},
	} {
		if c[0] >= c[1] {
			t.Errorf("%s: %s of %s", name, c[0], c[1])
		}
	}
}
