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

// hookGracePeriod is the time between SIGTERM and SIGKILL for a hook.
const hookGracePeriod = 5 * time.Second

// newHookRunner returns a function that runs the operator's hooks in a directory. Each hook has its own process group,
// so that an interrupt from the terminal does not reach it. When the hook ends, the rest of its group is killed. On
// Linux, its program is killed with kubeone, unless it has changed its user, as sudo does.
func newHookRunner(dir string) apply.RunHook {
	return func(ctx context.Context, h apply.Hook, output io.Writer) error {
		timeoutCtx, cancel := context.WithTimeout(ctx, h.Timeout)
		defer cancel()
		//nolint:gosec // the command in the manifest
		cmd := exec.CommandContext(timeoutCtx, h.Command[0], h.Command[1:]...)
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, append(os.Environ(), h.Env...), output, output
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		killWithParent(cmd.SysProcAttr)
		runtime.LockOSThread() // the hook is killed when the thread that started it exits
		defer runtime.UnlockOSThread()
		signal := func(s syscall.Signal) error { return syscall.Kill(-cmd.Process.Pid, s) }
		cmd.Cancel = func() error { return signal(syscall.SIGTERM) }
		cmd.WaitDelay = hookGracePeriod
		err := cmd.Run()
		if cmd.Process != nil {
			_ = signal(syscall.SIGKILL) // any remaining child processes
		}
		var exit *exec.ExitError
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("was ended: %w", context.Cause(ctx))
		case timeoutCtx.Err() != nil:
			return fmt.Errorf("was killed: it has not ended within %s", h.Timeout)
		case errors.As(err, &exit) && exit.ExitCode() >= 0:
			return fmt.Errorf("failed: %s ended with status %d", h.Command[0], exit.ExitCode())
		case exit != nil:
			return fmt.Errorf("failed: %s ended by %w", h.Command[0], exit)
		case errors.Is(err, exec.ErrWaitDelay):
			return errors.New("has ended, but a process that it started keeps its output open: " +
				"redirect the output of that process")
		}
		return fmt.Errorf("cannot be run: %w", err)
	}
}
