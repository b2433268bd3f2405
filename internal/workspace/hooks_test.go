package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kubeone/internal/apply"
	"kubeone/internal/locks"
)

func TestHooksRunInTheManifestsFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := "#!/bin/sh\necho \"$1 of $KUBEONE_NODE in $(pwd)\"\necho told >&2\n"
	if err := os.WriteFile(filepath.Join(dir, "tell.sh"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	h := apply.Hook{
		Command: []string{"./tell.sh", "it's a  word"}, Env: []string{"KUBEONE_NODE=cp-1"}, Timeout: time.Minute,
	}
	if err := newHookRunner(dir)(t.Context(), h, &out); err != nil {
		t.Fatal(err)
	}
	if want := "it's a  word of cp-1 in " + dir + "\ntold\n"; out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
}

func TestHooksThatFailSayHow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		command []string
		timeout time.Duration
		says    string
	}{
		{[]string{"sh", "-c", "exit 3"}, time.Minute, "failed: sh ended with status 3"},
		{[]string{"sh", "-c", "trap '' TERM; sleep 600 & wait; sleep 600"}, time.Second,
			"was killed: it has not ended within 1s"},
		{[]string{"./no-such-program"}, time.Minute, "cannot be run: "},
		{[]string{"sh", "-c", "kill -9 $$"}, time.Minute, "failed: sh ended by signal: killed"},
	} {
		began := time.Now()
		err := newHookRunner(t.TempDir())(t.Context(), apply.Hook{Command: c.command, Timeout: c.timeout}, &bytes.Buffer{})
		if err == nil || !strings.HasPrefix(err.Error(), c.says) {
			t.Errorf("%q: %v, want %q", c.command, err, c.says)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("%q took %s", c.command, took)
		}
	}
}

func TestAHookEndsWithItsRun(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	started := make(chan struct{})
	go func() {
		<-started
		cancel()
	}()
	h := apply.Hook{Command: []string{"sh", "-c", "echo begun; exec sleep 600"}, Timeout: time.Minute}
	err := newHookRunner(t.TempDir())(ctx, h, writerFunc(func(p []byte) (int, error) {
		close(started)
		return len(p), nil
	}))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	lost, lose := context.WithCancelCause(t.Context())
	lose(locks.ErrLost)
	if err := newHookRunner(t.TempDir())(lost, h, io.Discard); !errors.Is(err, locks.ErrLost) {
		t.Errorf("got %v", err)
	}
}

// A hook must not continue, without its timeout, after kubeone is killed.
func TestAHookEndsWithAProgramThatIsKilled(t *testing.T) {
	t.Parallel()
	program := exec.CommandContext(t.Context(), os.Args[0])
	program.Env = append(os.Environ(), hookOfAProgram+"=echo $$; exec sleep 600")
	out, err := program.StdoutPipe()
	if err == nil {
		err = program.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	pid := 0
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Fatal(err)
	}
	_ = program.Process.Kill()
	_ = out.(*os.File).SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := io.Copy(io.Discard, out); err != nil { // it ends when the hook, which has its output, has ended
		_ = syscall.Kill(pid, syscall.SIGKILL)
		t.Errorf("the hook runs a minute after: %v", err)
	}
	_ = program.Wait()
}

// hookOfAProgram runs this test's program, which runs a hook: the shell's command with that name.
const hookOfAProgram = "KUBEONE_TEST_HOOK"

func TestMain(m *testing.M) {
	if command := os.Getenv(hookOfAProgram); command != "" {
		_ = newHookRunner(os.TempDir())(context.Background(), apply.Hook{
			Command: []string{"sh", "-c", command}, Timeout: time.Hour,
		}, os.Stdout)
		return
	}
	m.Run()
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
