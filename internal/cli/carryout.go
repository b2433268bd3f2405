package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"kubeone/internal/apply"
	"kubeone/internal/decide"
	"kubeone/internal/engine"
	"kubeone/internal/view"
	"kubeone/internal/workspace"
)

// planWriter returns the writer for plans and results: standard output, or standard error if standard output carries
// the event stream.
func (f *applyFlags) planWriter(stdio IO) io.Writer {
	if f.output == "json" {
		return stdio.Err
	}
	return stdio.Out
}

// confirmPlan shows a plan of a command other than apply and asks the question.
func (f *applyFlags) confirmPlan(stdio IO, p engine.Proposal, question string) (bool, error) {
	out := f.planWriter(stdio)
	view.Plan(out, view.StyleFor(out, stdio.Getenv), p.Plan, verbosityOf(f.verbose))
	if f.dryRun {
		return false, &statusError{view.ExitChanges}
	}
	if err := p.Refusal(); err != nil {
		return false, err
	}
	return f.confirmAll(stdio, question)
}

// carryOut carries a proposal out. Events go to the journal and to the operator, and Ctrl-C is handled. It returns the
// proposal made after the last step.
func (f *applyFlags) carryOut(ctx context.Context, stdio IO, w *workspace.Workspace,
	p engine.Proposal) (engine.Proposal, error) {
	return f.carryOutSeen(ctx, stdio, w, p, func(engine.Proposal) {})
}

// carryOutSeen is carryOut with a callback: seen receives every proposal made after the last step, including the
// returned one.
func (f *applyFlags) carryOutSeen(ctx context.Context, stdio IO, w *workspace.Workspace, p engine.Proposal,
	seen func(engine.Proposal)) (engine.Proposal, error) {
	id := w.Engine.NewRunID()
	journal, err := openJournal(w.Journals(), id, f.logFile)
	if err != nil {
		return p, err
	}
	defer func() { _ = journal.Close() }() // every line is written as it comes
	style := view.StyleFor(stdio.Err, stdio.Getenv)
	progress := view.NewProgress(stdio.Err, style, p.Plan, f.verbose)
	if f.output == "json" {
		progress = view.NewJSONProgress(stdio.Out)
	}
	ctx, stop, done := withInterrupt(ctx, stdio)
	defer done()
	showWaiting := printWaiting(stdio.Err)
	after, err := w.Engine.CarryOut(ctx, p,
		engine.RunOptions{RunID: id, ForceUnlock: f.forceUnlock, Stop: stop, Emit: func(ev apply.Event) {
			journal.writeEvent(ev)
			progress.Event(ev)
		}, Waiting: func(p engine.Proposal, pending []engine.Pending) {
			seen(p)
			showWaiting(p, pending)
		}})
	progress.Close()
	if errors.Is(err, apply.ErrStopped) {
		return after, &classError{view.ExitInterrupted, err}
	}
	if err != nil {
		return after, fmt.Errorf("run %s: %w", id, err)
	}
	seen(after)
	if f.output == "text" {
		view.Timing(stdio.Err, style, p.Plan, journal.events)
	}
	return after, nil
}

// notRunning prints the cluster components that do not run, after a run about single hosts.
func (f *applyFlags) notRunning(stdio IO, after engine.Proposal) {
	absent := decide.NotRunning(after.Want.Network, after.Observed.World.API)
	if text := view.NotRunning(absent); text != "" {
		_, _ = fmt.Fprintln(f.planWriter(stdio), text)
	}
}

// printWaiting returns a callback that prints what a run waits for whenever it changes.
func printWaiting(out io.Writer) func(engine.Proposal, []engine.Pending) {
	last := ""
	return func(p engine.Proposal, pending []engine.Pending) {
		var notReady []string
		for _, o := range pending {
			if o.Why != engine.Differs {
				notReady = append(notReady, o.Name)
			}
		}
		if text := view.Unsettled(notReady, p.Plan); text != last {
			_, _ = fmt.Fprintf(out, "%s; checking again, for up to a minute\n", text)
			last = text
		}
	}
}
