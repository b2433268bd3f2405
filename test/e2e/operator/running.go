package operator

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"kubeone/internal/apply"
)

// Running is a started command with its event stream (-o json). Its methods are safe for concurrent use.
type Running struct {
	args    []string
	cmd     *exec.Cmd
	started time.Time
	stderr  bytes.Buffer
	done    chan struct{}
	// Events delivers the stream's events, and is closed at the stream's end. The command blocks while the channel is
	// not read.
	Events chan apply.Event

	end  sync.Once
	mu   sync.Mutex
	last Result
}

// Start starts a command that prints events.
func (o *Operator) Start(ctx context.Context, args ...string) (*Running, error) {
	args = append(args, "-o", "json")
	r := &Running{
		args: args, cmd: o.newCommand(ctx, args), started: time.Now(), done: make(chan struct{}),
		Events: make(chan apply.Event),
	}
	r.cmd.Stderr = &r.stderr
	stdout, err := r.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := r.cmd.Start(); err != nil {
		return nil, err
	}
	go r.readEvents(stdout)
	return r, nil
}

func (r *Running) readEvents(stdout io.Reader) {
	var text bytes.Buffer
	lines := bufio.NewScanner(io.TeeReader(stdout, &text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event apply.Event
		if json.Unmarshal(lines.Bytes(), &event) == nil && event.Type != "" {
			r.Events <- event
		}
	}
	close(r.Events)
	err := r.cmd.Wait()
	r.mu.Lock()
	r.last = Result{
		Args: r.args, Status: statusOf(err), Stdout: text.String(), Stderr: r.stderr.String(),
		Took: time.Since(r.started),
	}
	r.mu.Unlock()
	close(r.done)
}

// Await reads events until one matches, and returns it. It returns false when the command ends before.
func (r *Running) Await(match func(apply.Event) bool) (apply.Event, bool) {
	for event := range r.Events {
		if match(event) {
			return event, true
		}
	}
	return apply.Event{}, false
}

// Wait drops the remaining events and returns the result.
func (r *Running) Wait() Result {
	r.end.Do(func() {
		for range r.Events {
		}
	})
	<-r.done
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// Kill ends the command at once, like a power cut of the operator's machine.
func (r *Running) Kill() error { return r.cmd.Process.Signal(syscall.SIGKILL) }

// Freeze stops the process until Thaw.
func (r *Running) Freeze() error { return r.cmd.Process.Signal(syscall.SIGSTOP) }

// Thaw ends a Freeze.
func (r *Running) Thaw() error { return r.cmd.Process.Signal(syscall.SIGCONT) }

// Step returns a matcher for events of that type about the step with that ID. An empty argument matches any.
func Step(kind apply.EventType, id string) func(apply.Event) bool {
	return func(e apply.Event) bool { return (kind == "" || e.Type == kind) && (id == "" || e.Step == id) }
}
