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

// confirmPlan shows a plan and asks the question, for commands other than apply. With --dry-run, or if the plan must
// not be carried out, it returns an error without asking.
func (f *applyFlags) confirmPlan(stdio IO, p engine.Proposal, question string) (bool, error) {
	out := f.planWriter(stdio)
	view.Plan(out, view.StyleFor(out, stdio.Getenv), p.Plan, verbosityOf(f.verbose))
	if f.dryRun {
		return false, &statusError{view.ExitChanges}
	}
	if err := p.Refusal(); err != nil {
		return false, err
	}
	return f.askQuestion(stdio, question)
}

// carryOut carries out a proposal, writes events to the journal and to the operator, and handles Ctrl-C. It returns the
// proposal made after the last step.
func (f *applyFlags) carryOut(ctx context.Context, stdio IO, w *workspace.Workspace,
	p engine.Proposal) (engine.Proposal, error) {
	return f.carryOutObserved(ctx, stdio, w, p, func(engine.Proposal) {})
}

// carryOutObserved is carryOut with a callback: it calls onProposal with every proposal made after the last step,
// including the returned one.
func (f *applyFlags) carryOutObserved(ctx context.Context, stdio IO, w *workspace.Workspace, p engine.Proposal,
	onProposal func(engine.Proposal)) (engine.Proposal, error) {
	id := w.Engine.NewRunID()
	journal, err := openJournal(w.Journals(), id, f.logFile)
	if err != nil {
		return p, err
	}
	defer func() { _ = journal.Close() }() // nothing is buffered: the journal writes every event immediately
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
			onProposal(p)
			showWaiting(p, pending)
		}})
	progress.Close()
	if errors.Is(err, apply.ErrStopped) {
		return after, &classError{view.ExitInterrupted, err}
	}
	if err != nil {
		return after, fmt.Errorf("run %s: %w", id, err)
	}
	onProposal(after)
	if f.output == "text" {
		view.Timing(stdio.Err, style, p.Plan, journal.events)
	}
	return after, nil
}

// printNotRunning prints the cluster components that are not running. Runs that change only some hosts end with it,
// because they do not wait for these components.
func (f *applyFlags) printNotRunning(stdio IO, after engine.Proposal) {
	absent := decide.NotRunning(after.Want.Network, after.Observed.World.API)
	if text := view.NotRunning(absent); text != "" {
		_, _ = fmt.Fprintln(f.planWriter(stdio), text)
	}
}

// printWaiting returns a callback that prints what a run is waiting for. It prints a text again only if it has changed.
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
