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

// hookGrace is how long a hook may take to terminate before it is killed.
const hookGrace = 5 * time.Second

// runHook returns a function that runs the operator's hooks in a directory. A hook has its own process group, which
// ends with it, so that an interrupt from the terminal does not reach it. On Linux its program ends with kubeone, even
// if kubeone is killed, unless it has changed its user, as sudo does.
func runHook(dir string) apply.RunHook {
	return func(ctx context.Context, h apply.Hook, output io.Writer) error {
		within, cancel := context.WithTimeout(ctx, h.Timeout)
		defer cancel()
		//nolint:gosec // the manifest's command is what is to be run
		cmd := exec.CommandContext(within, h.Command[0], h.Command[1:]...)
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, append(os.Environ(), h.Env...), output, output
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		endWithParent(cmd.SysProcAttr)
		runtime.LockOSThread() // the hook is killed when the thread that started it ends
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
