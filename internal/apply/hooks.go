package apply

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"kubeone/internal/host"
	"kubeone/internal/model/desired"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
)

// Hook is one command to run on the operator's machine.
type Hook struct {
	Command []string      // the program and its arguments
	Env     []string      // "KUBEONE_NODE=cp-1", in addition to the process environment
	Timeout time.Duration // the command is killed after it
}

// RunHook runs a hook and writes its standard output and error to output. It stops the hook when ctx ends.
type RunHook func(ctx context.Context, h Hook, output io.Writer) error

// HookError means that a hook on the operator's machine failed.
type HookError struct {
	Name string
	Err  error
}

// Error names the hook and its failure.
func (e *HookError) Error() string { return "hook " + e.Name + " " + e.Err.Error() }

// Unwrap returns the cause.
func (e *HookError) Unwrap() error { return e.Err }

// runOperatorHooks runs the hooks of a step in order and stops at the first failure.
func (r *Run) runOperatorHooks(ctx context.Context, s plan.Step, output io.Writer) error {
	if r.RunHook == nil {
		return errors.New("the plan has hooks for the operator's machine: carry it out with kubeone apply there")
	}
	if err := r.checkLock(ctx, s); err != nil {
		return err
	}
	ctx, done := r.Lock.While(ctx, s.Host)
	defer done()
	for _, of := range step.ParamsOf[step.OperatorHooksParams](s.Intent).Hooks {
		fmt.Fprintf(output, "hook %s: %s\n", of.Name, of)
		err := r.RunHook(ctx, Hook{
			Command: of.Command, Env: r.hookEnv(s, of.Name), Timeout: time.Duration(of.TimeoutSeconds) * time.Second,
		}, output)
		if err != nil {
			return &HookError{of.Name, err}
		}
	}
	return nil
}

// runFailureHooks runs the hooks for a failed run. A failed hook is only a warning, because the run already has an
// error. Runs that the operator stopped or aborted do not count as failed.
func (r *Run) runFailureHooks(ctx context.Context, failure error) {
	if failure == nil || errors.Is(failure, ErrStopped) || ctx.Err() != nil || r.RunHook == nil {
		return
	}
	for _, of := range r.Want.HooksAt(desired.Failed, desired.Applying, false) {
		h := Hook{Command: of.Command, Env: r.failureEnv(of.Name, failure), Timeout: of.Timeout}
		if err := r.RunHook(ctx, h, io.Discard); err != nil {
			r.emitEvent(Event{Type: Warning, Line: (&HookError{of.Name, err}).Error()})
		}
	}
}

// failureEnv returns the environment variables that describe the failed run to a hook: step, host and class of the
// first failure. They contain no host output.
func (r *Run) failureEnv(name string, failure error) []string {
	env := []string{
		"KUBEONE_HOOK=" + name, "KUBEONE_MOMENT=failure", "KUBEONE_CLUSTER=" + r.Want.Name, "KUBEONE_RUN=" + r.RunID,
		"KUBEONE_FAILURE_CLASS=" + host.ClassOf(failure).String(),
	}
	var of *StepError
	if errors.As(failure, &of) {
		env = append(env, "KUBEONE_FAILED_STEP="+of.Step.ID, "KUBEONE_FAILED_HOST="+of.Host)
	}
	return env
}

// hookEnv returns the environment variables that describe the step to a hook.
func (r *Run) hookEnv(s plan.Step, name string) []string {
	env := []string{
		"KUBEONE_HOOK=" + name, "KUBEONE_MOMENT=" + s.Intent.Moment().String(), "KUBEONE_CLUSTER=" + r.Want.Name,
	}
	if h, ok := r.Want.Host(s.Host); ok {
		env = append(env,
			"KUBEONE_NODE="+r.nodeName(s.Host), "KUBEONE_ROLE="+string(h.Role), "KUBEONE_ADDRESS="+h.PublicAddress)
	}
	return env
}
