package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"kubeone/internal/apply"
)

// hookGrace is how long a hook that must end may take for it, before it is killed.
const hookGrace = 5 * time.Second

// runHook runs the operator's hooks in a folder. A hook has a process group of its own, which ends with it: what a
// terminal sends to interrupt kubeone does not reach it. On Linux its program ends with kubeone's, also where that is
// killed, unless it has changed its user, as sudo does.
func runHook(dir string) apply.RunHook {
	return func(ctx context.Context, h apply.Hook, output io.Writer) error {
		within, cancel := context.WithTimeout(ctx, h.Timeout)
		defer cancel()
		//nolint:gosec // the manifest's command is what is to be run
		cmd := exec.CommandContext(within, h.Command[0], h.Command[1:]...)
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, append(os.Environ(), h.Env...), output, output
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		endWithParent(cmd.SysProcAttr)
		runtime.LockOSThread() // the hook is killed when the thread ends that has started it
		defer runtime.UnlockOSThread()
		signal := func(s syscall.Signal) error { return syscall.Kill(-cmd.Process.Pid, s) }
		cmd.Cancel = func() error { return signal(syscall.SIGTERM) }
		cmd.WaitDelay = hookGrace
		err := cmd.Run()
		if cmd.Process != nil {
			_ = signal(syscall.SIGKILL) // what it has left behind; mostly nothing
		}
		var exit *exec.ExitError
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("was ended: %w", context.Cause(ctx))
		case within.Err() != nil:
			return fmt.Errorf("was killed: it has not ended within %s", h.Timeout)
		case errors.As(err, &exit) && exit.ExitCode() >= 0:
			return fmt.Errorf("failed: %s ended with status %d", h.Command[0], exit.ExitCode())
		case exit != nil:
			return fmt.Errorf("failed: %s ended by %w", h.Command[0], exit)
		case errors.Is(err, exec.ErrWaitDelay):
			return errors.New("has ended, and something that it started holds its output: redirect that")
		}
		return fmt.Errorf("cannot be run: %w", err)
	}
}
