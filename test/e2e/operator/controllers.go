package operator

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Controllers is a process of kubeone controller in the background.
type Controllers struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{} // closed when the process has ended
	how  error         // the exit error; valid after done is closed
}

// StartControllers starts a process of kubeone controller. It logs to a file with the given name in the operator's
// folder.
func (o *Operator) StartControllers(ctx context.Context, name string, args []string) (*Controllers, error) {
	c := &Controllers{log: filepath.Join(o.Dir, name), done: make(chan struct{})}
	file, err := os.OpenFile(c.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	c.cmd = o.newCommand(context.WithoutCancel(ctx), args)
	c.cmd.Stderr, c.cmd.Stdout = file, file
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		c.how = c.cmd.Wait()
		close(c.done)
	}()
	return c, nil
}

// Ended reports whether the process has ended, for any reason.
func (c *Controllers) Ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// Kill ends the process at once.
func (c *Controllers) Kill() {
	_ = c.cmd.Process.Kill()
	<-c.done
}

// Stop asks the process to end, and returns its exit error.
func (c *Controllers) Stop() error {
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if <-c.done; c.how != nil {
		return fmt.Errorf("kubeone controller: %w\n%s", c.how, c.Tail())
	}
	return nil
}

// Log returns the log of the process.
func (c *Controllers) Log() string {
	text, err := os.ReadFile(c.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Tail returns the end of the log.
func (c *Controllers) Tail() string {
	const most = 8192
	text := c.Log()
	if len(text) > most {
		_, text, _ = strings.Cut(text[len(text)-most:], "\n")
	}
	return text
}
