package apply

import (
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
	"kubeone/internal/locks"
	"kubeone/internal/plan/step"
	"kubeone/internal/testutil/short"
)

// asNobody runs a command as a user without files if this test is root, else as the test's user.
func asNobody(cmd *exec.Cmd) {
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
}

// enterable lets other users enter the directory and the test's directories above it.
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
	// as in older versions
	for _, dir := range []string{"var/lib/kubeone/lock", "var/lib/kubeone/step", "run/kubeone"} {
		if err := os.MkdirAll(m.Path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
		enterable(t, m.Path(dir))
	}
	l := labOf(t, m, ":", prepare())
	if err := l.Do(patience(t), nil); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"var/lib/kubeone", "var/lib/kubeone/lock", "var/lib/kubeone/step", "run/kubeone"} {
		info, err := os.Stat(m.Path(dir))
		if err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", dir, info.Mode(), err)
		}
	}
	for _, dir := range []string{"lock", "step"} {
		err := filepath.WalkDir(m.Path("var/lib/kubeone/"+dir), func(path string, d fs.DirEntry, err error) error {
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

// Each of our scripts that finds a file locked gives up after a while and names the process.
func TestAScriptSaysWhichProcessItWaitedFor(t *testing.T) {
	t.Parallel()
	for _, shell := range [][]string{{"dash"}, {"bash", "--posix"}, {"busybox", "sh"}} {
		for _, name := range []string{"start", "follow", "forget"} {
			t.Run(shell[0]+"/"+name, func(t *testing.T) {
				t.Parallel()
				short.Tool(t, shell[0])
				m := newMachine(t, "node-1")
				file := "var/lib/kubeone/lock/flock"
				if name != "forget" {
					file = "var/lib/kubeone/step/flock"
					m.Write("var/lib/kubeone/step/log", "", 0o600)
				}
				pid := m.LockFile(file)
				script := m.Below(locks.WithFile(time.Second, scriptText(name)))
				words := append(shell[1:len(shell):len(shell)], "-c", script, "sh", "me@here", "run-1", "no", "20", "0")
				cmd := exec.CommandContext(t.Context(), shell[0], words...)
				cmd.Env = append(os.Environ(), "PATH="+m.Path("bin")+":"+os.Getenv("PATH"), "ROOT="+m.Root)
				out, err := cmd.CombinedOutput()
				var exit *exec.ExitError
				if !errors.As(err, &exit) || exit.ExitCode() != locks.ExitFileBusy {
					t.Fatalf("%v: %s", err, out)
				}
				for _, want := range []string{
					m.Path(file) + " has been locked for 1 s by process ", strconv.Itoa(pid) + " (flock)", " (cat)",
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

func TestALockedFileIsWhyAStepFails(t *testing.T) {
	t.Parallel()
	busy := &host.ExitError{
		Host: "node-1", Code: locks.ExitFileBusy, Stderr: []byte("/x/flock has been locked for 40 s by process 7\n"),
	}
	got := explainExit(busy, "node-1", stepOf("init/node-1", "1", step.Init)).Error()
	if got != "node-1: /x/flock has been locked for 40 s by process 7" {
		t.Errorf("a step says %q", got)
	}
}
