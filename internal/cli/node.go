package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"kubeone/internal/engine"
	"kubeone/internal/view"
)

// newNodeCommand returns "kubeone node".
func newNodeCommand(stdio IO) *cobra.Command {
	cmd := &cobra.Command{
		Use: "node", Short: "Take one host out of a living cluster, or replace it", Args: subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SuggestionsMinimumDistance = 2
	cmd.AddCommand(
		newNodeChangeCommand(stdio, engine.NodeChange{}, "remove HOST", "Take a host out of the cluster: drained, out of etcd, reset, its Node deleted",
			"Take a worker or a control-plane host out of a living cluster: its pods go elsewhere, its member leaves etcd if the quorum\n"+
				"allows it, the host is reset, and its Node is deleted. Take it out of the manifest afterwards.\n\n"+
				"A host that does not answer needs --unreachable: it must then be found dead three times over 30 seconds, and only its etcd\n"+
				"member and its Node are removed. The last control-plane host is not removed, nor one without which the quorum would be lost."),
		newNodeChangeCommand(stdio, engine.NodeChange{Replace: true}, "replace HOST", "Take a host out of the cluster and join it again as a new one",
			"Take a host out of a living cluster as \"node remove\" does, and join the same machine again, all in one plan. Of a host that\n"+
				"does not answer (--unreachable), the etcd member and the Node are removed, and what its successor needs is listed."),
	)
	return cmd
}

// newNodeChangeCommand returns a command that changes what one host is.
func newNodeChangeCommand(stdio IO, change engine.NodeChange, use, short, about string) *cobra.Command {
	f := &applyFlags{}
	cmd := &cobra.Command{
		Use: use, Short: short, Long: about, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			change.Host = args[0]
			return runNode(cmd.Context(), stdio, f, change)
		},
	}
	f.register(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&change.Gone, "unreachable", false, "the host does not answer and is gone for good")
	if change.Replace {
		flags.StringArrayVar(&f.bundles, "bundle", nil, "install from this bundle; hosts then need nothing but SSH")
	}
	f.registerRun(cmd)
	return cmd
}

// runNode looks, shows the plan, asks, carries it out, and says what is left to do.
func runNode(ctx context.Context, stdio IO, f *applyFlags, change engine.NodeChange) error {
	e, err := f.open(ctx, stdio, nil, f.unknown())
	if err != nil {
		return err
	}
	defer e.Close()
	look, err := lookNode(ctx, stdio, e, change)
	if err != nil {
		return err
	}
	out := stdio.Out
	if f.output == "json" {
		out = stdio.Err
	}
	if len(look.Plan.Steps) == 0 {
		_, _ = fmt.Fprintf(out, "No changes. %s is not in the cluster.\n", change.Host)
		return nil
	}
	view.Plan(out, view.StyleFor(out, stdio.Getenv), look.Plan, verbosity(f.verbose))
	if f.dryRun {
		return &statusError{exitChanges}
	}
	if !f.approve {
		yes, err := confirm(stdio, "Carry out this plan?")
		if err != nil || !yes {
			return err
		}
	}
	if err := e.Approve(); err != nil {
		return err
	}
	err = f.observe(ctx, stdio, e, look, e.NewRunID(), func(ctx context.Context, o engine.ApplyOptions) error {
		return e.ChangeNode(ctx, change, look, o)
	})
	if err != nil {
		return err
	}
	return f.changed(ctx, stdio, e, change)
}

// lookNode waits for steps of earlier runs that still run.
func lookNode(ctx context.Context, stdio IO, e *engine.Engine, change engine.NodeChange) (engine.Look, error) {
	look, err := e.LookNode(ctx, change)
	if err != nil || len(look.RunningSteps()) == 0 {
		return look, err
	}
	_, _ = fmt.Fprintln(stdio.Err, "a step of an earlier run is still running; waiting for its end")
	if err := e.Await(ctx, look); err != nil {
		return look, err
	}
	return e.LookNode(ctx, change)
}

// changed checks what was done, and says what the operator has to do now.
func (f *applyFlags) changed(ctx context.Context, stdio IO, e *engine.Engine, change engine.NodeChange) error {
	if change.Replace && !change.Gone {
		after, err := e.LookUntilUp(ctx)
		if err != nil {
			return err
		}
		return f.verify(stdio, after)
	}
	after, err := e.LookNode(ctx, change)
	if err != nil {
		return err
	}
	if len(after.Plan.Steps) > 0 {
		return &classError{exitRuntime, errors.New("every step succeeded, and yet something of the host is left in the cluster; run the command again")}
	}
	if f.output != "text" {
		return nil
	}
	if change.Replace {
		_, _ = fmt.Fprintf(stdio.Out, "Done. %s is out of the cluster. Now make its successor, as listed above, and run kubeone apply.\n", change.Host)
		return nil
	}
	_, _ = fmt.Fprintf(stdio.Out, "Done. %s is out of the cluster. Now take it out of the manifest: kubeone apply would join it again.\n", change.Host)
	return nil
}
