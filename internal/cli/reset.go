package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"kubeone/internal/apply"
	"kubeone/internal/engine"
	"kubeone/internal/host"
	"kubeone/internal/view"
)

// newResetCommand returns "kubeone reset".
func newResetCommand(stdio IO) *cobra.Command {
	f := &applyFlags{}
	var hosts []string
	cmd := &cobra.Command{
		Use:   "reset [MANIFEST]",
		Short: "Make hosts bare again: everything that apply put there is removed, with all data",
		Long: "Make hosts bare and usable again. Without --host the whole cluster ends, with all its data. With --host one host\n" +
			"leaves a living cluster: it is drained, its member leaves etcd, and its Node is deleted.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runReset(cmd.Context(), stdio, f, hosts, args)
		},
	}
	f.register(cmd)
	flags := cmd.Flags()
	flags.StringSliceVar(&hosts, "host", nil, "reset these hosts only (names or addresses)")
	flags.IntVar(&f.parallel, "parallel", 32, "hosts worked on at a time")
	f.registerRun(cmd)
	return cmd
}

func runReset(ctx context.Context, stdio IO, f *applyFlags, hosts, args []string) error {
	e, err := f.open(ctx, stdio, args, host.PolicyStrict)
	if err != nil {
		return err
	}
	defer e.Close()
	look, err := e.LookReset(ctx, hosts)
	if err == nil && len(look.RunningSteps()) > 0 {
		_, _ = fmt.Fprintln(stdio.Err, "a step of an earlier run is still running; waiting for its end")
		if err = e.Await(ctx, look); err == nil {
			look, err = e.LookReset(ctx, hosts)
		}
	}
	if err != nil {
		return err
	}
	out := stdio.Out
	if f.output == "json" {
		out = stdio.Err
	}
	if len(look.Plan.Steps) == 0 {
		_, _ = fmt.Fprintln(out, "No changes. The hosts are bare.")
		return nil
	}
	view.Plan(out, view.StyleFor(out, stdio.Getenv), look.Plan, verbosity(f.verbose))
	if f.dryRun {
		return &statusError{exitChanges}
	}
	if !f.approve {
		yes, err := confirm(stdio, "Remove all this, with its data?")
		if err != nil || !yes {
			return err
		}
	}
	return f.carryOutReset(ctx, stdio, e, hosts, look)
}

func (f *applyFlags) carryOutReset(ctx context.Context, stdio IO, e *engine.Engine, hosts []string, look engine.Look) error {
	id := e.NewRunID()
	err := f.observe(ctx, stdio, e, look, id, func(ctx context.Context, o engine.ApplyOptions) error {
		return e.Reset(ctx, hosts, look, o)
	})
	if err != nil {
		return err
	}
	after, err := e.LookReset(ctx, hosts)
	if err != nil {
		return err
	}
	if len(after.Plan.Steps) > 0 {
		return &classError{exitRuntime, errors.New("every step succeeded, and yet something is left on the hosts; reset again")}
	}
	if f.output == "text" {
		_, _ = fmt.Fprintln(stdio.Out, "Done. The hosts are bare.")
	}
	return nil
}

// observe runs something that emits events: they go to the journal and to the operator, and Ctrl-C is heard.
func (f *applyFlags) observe(ctx context.Context, stdio IO, e *engine.Engine, look engine.Look, id string, run func(context.Context, engine.ApplyOptions) error) error {
	journal, err := openJournal(e, id, f.logFile)
	if err != nil {
		return err
	}
	defer func() { _ = journal.Close() }() // every line is written as it comes
	style := view.StyleFor(stdio.Err, stdio.Getenv)
	progress := view.NewProgress(stdio.Err, style, look.Plan, f.verbose)
	if f.output == "json" {
		progress = view.NewJSONProgress(stdio.Out)
	}
	ctx, stop, done := interruptible(ctx, stdio)
	defer done()
	err = run(ctx, engine.ApplyOptions{RunID: id, ForceUnlock: f.forceUnlock, Stop: stop, Emit: func(ev apply.Event) {
		journal.write(ev)
		progress.Event(ev)
	}})
	progress.Close()
	if errors.Is(err, apply.ErrStopped) {
		return &classError{exitInterrupted, err}
	}
	if err != nil {
		return fmt.Errorf("run %s: %w", id, err)
	}
	if f.output == "text" {
		view.Timing(stdio.Err, style, look.Plan, journal.events)
	}
	return nil
}
