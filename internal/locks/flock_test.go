package locks

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"kubeone/internal/host"
	"kubeone/internal/testutil/hosttest"
	"kubeone/internal/testutil/short"
)

const flockFile = "var/lib/kubeone/lock/flock"

// lockScriptWaits runs lock.sh while another process has locked the file. It returns that process ID and the output.
func lockScriptWaits(t *testing.T, h *hosttest.Host, script string, shell ...string) (pid int, out string, err error) {
	t.Helper()
	pid = h.LockFile(flockFile)
	words := append(shell[1:len(shell):len(shell)], "-c", script, "sh", "me@here", "run-1", "no", "20", "0")
	cmd := exec.CommandContext(t.Context(), shell[0], words...)
	cmd.Env = append(os.Environ(), "PATH="+h.Path("bin")+":"+os.Getenv("PATH"), "ROOT="+h.Root)
	said, err := cmd.CombinedOutput()
	return pid, string(said), err
}

func TestLockScriptSaysWhichProcessItWaitedFor(t *testing.T) {
	t.Parallel()
	for _, shell := range [][]string{{"dash"}, {"bash", "--posix"}, {"busybox", "sh"}} {
		t.Run(shell[0], func(t *testing.T) {
			t.Parallel()
			short.Tool(t, shell[0])
			h := hosttest.New(t, "node-1")
			pid, out, err := lockScriptWaits(t, h, h.Below(WithFile(time.Second, lockScript)), shell...)
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != ExitFileBusy {
				t.Fatalf("%v: %s", err, out)
			}
			for _, want := range []string{
				h.Path(flockFile) + " has been locked for 1 s by process ", strconv.Itoa(pid) + " (flock)", " (cat)",
				"run kubeone again",
			} {
				if !strings.Contains(out, want) {
					t.Errorf("%q lacks %q", out, want)
				}
			}
		})
	}
}

func TestLockScriptSaysThatItCannotSeeWhoHasTheFile(t *testing.T) {
	t.Parallel()
	h := hosttest.New(t, "node-1")
	script := strings.ReplaceAll(h.Below(WithFile(time.Second, lockScript)), "/proc/", h.Path("proc")+"/")
	_, out, err := lockScriptWaits(t, h, script, "sh")
	if err == nil || !strings.Contains(out, "by a process that /proc does not show") {
		t.Errorf("%v: %s", err, out)
	}
}

// busyHost is a host where another process has locked the file.
type busyHost struct{ host.Host }

func (busyHost) Name() string { return "node-1" }

func (busyHost) Run(_ context.Context, c host.Cmd) (host.Result, error) {
	return host.Result{ExitCode: ExitFileBusy}, &host.ExitError{
		Host: "node-1", What: c.Name, Code: ExitFileBusy,
		Stderr: []byte("/x/flock has been locked for 40 s by process 7\n"),
	}
}

func TestALockedFileIsWhyAHostIsNotLocked(t *testing.T) {
	t.Parallel()
	const want = "node-1: take the lock: /x/flock has been locked for 40 s by process 7"
	_, err := TakeHosts(t.Context(), map[string]host.Host{"1": busyHost{}}, Claim{Holder: "me@here", RunID: "run-1"})
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	l, err := TakeHosts(t.Context(), map[string]host.Host{"1": busyHost{}, "2": hosttest.New(t, "node-2")},
		Claim{Holder: "me@here", RunID: "run-1", Dispensable: map[string]bool{"1": true}})
	if err != nil {
		t.Fatalf("a worker stops the run: %v", err)
	}
	defer l.Release()
	if denied := l.Denied("1"); denied == nil || denied.Error() != want {
		t.Errorf("denied: %v", denied)
	}
}
