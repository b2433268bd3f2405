package cli

import (
	"context"
	"errors"
	"fmt"
	"kubeone/internal/view"
	"strings"

	"github.com/spf13/cobra"

	"kubeone/internal/engine"
	"kubeone/internal/workspace"
)

// nodeChange describes the removal or replacement of one host in a running cluster.
type nodeChange struct {
	host        string // name or address
	replace     bool   // join the host again after its removal
	unreachable bool   // the host is permanently lost
}

// engineRequest returns the request to the engine, with the ID of the host.
func (c nodeChange) engineRequest(ctx context.Context, w *workspace.Workspace) (engine.Request, error) {
	ids, err := hostIDs(ctx, w, "HOST", c.host)
	switch {
	case err != nil:
		return nil, err
	case c.replace:
		return engine.Replace{Host: ids[0], HostGone: c.unreachable}, nil
	}
	return engine.Remove{Host: ids[0], HostGone: c.unreachable}, nil
}

// newNodeCommand returns "kubeone node".
func newNodeCommand(stdio IO) *cobra.Command {
	cmd := &cobra.Command{
		Use: "node", Short: "Remove or replace a host", Args: refuseUnknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SuggestionsMinimumDistance = 2
	cmd.AddCommand(
		newNodeChangeCommand(stdio, nodeChange{}, "remove HOST",
			"Remove a host from the cluster",
			"Remove a worker or control-plane host from a running cluster. The host is drained, leaves etcd and\n"+
				"is reset, and its Node is deleted. Afterwards, remove the host from the manifest. The command\n"+
				"refuses to remove the last control-plane host, and any host without which etcd would lose quorum.\n\n"+
				"For a host that does not respond, use --unreachable. kubeone first tries to connect for 30 seconds\n"+
				"and continues only if every attempt fails. It then removes only the etcd member and the Node of\n"+
				"the host."),
		newNodeChangeCommand(stdio, nodeChange{replace: true}, "replace HOST",
			"Remove a host and join it again",
			"Remove a host from a running cluster as \"node remove\" does, and join the same machine again, in one\n"+
				"plan. For a host that does not respond, use --unreachable: only its etcd member and its Node are\n"+
				"removed, and the command lists the steps to add a replacement."),
	)
	return cmd
}

// newNodeChangeCommand returns "kubeone node remove" or "kubeone node replace".
func newNodeChangeCommand(stdio IO, change nodeChange, use, short, about string) *cobra.Command {
	f := &applyFlags{}
	cmd := &cobra.Command{
		Use: use, Short: short, Long: about, Args: cobra.ExactArgs(1),
		Example: "  kubeone node " + strings.ReplaceAll(use, "HOST", "worker-1") + "\n" +
			"  kubeone node " + strings.ReplaceAll(use, "HOST", "cp-2") + " --unreachable",
		RunE: func(cmd *cobra.Command, args []string) error {
			change.host = args[0]
			return runNode(cmd.Context(), stdio, f, change)
		},
	}
	cmd.ValidArgsFunction = f.completeHosts
	f.registerFlags(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&change.unreachable, "unreachable", false, "remove a host that does not respond and is permanently lost")
	if change.replace {
		f.artifacts.registerFlags(cmd)
	}
	f.registerRun(cmd)
	return cmd
}

// runNode removes or replaces a host.
func runNode(ctx context.Context, stdio IO, f *applyFlags, change nodeChange) error {
	w, err := f.openCluster(ctx, stdio, nil, f.unknownKeysPolicy())
	if err != nil {
		return err
	}
	defer w.Close()
	r, err := change.engineRequest(ctx, w)
	if err != nil {
		return err
	}
	return f.runUntilStable(stdio, func() error { return f.changeNode(ctx, stdio, w, r, change) })
}

// changeNode makes a plan, shows it, asks for confirmation, carries it out, and tells the operator the next step.
func (f *applyFlags) changeNode(ctx context.Context, stdio IO, w *workspace.Workspace, r engine.Request,
	change nodeChange) error {
	p, err := proposeWhenIdle(ctx, stdio, w.Engine, r)
	if err != nil {
		return err
	}
	if len(p.Plan.Steps) == 0 {
		return f.reportEnd(stdio, fmt.Sprintf("No changes. %s is not in the cluster.", change.host), nil)
	}
	if yes, err := f.confirmPlan(stdio, p, "Carry out this plan?"); err != nil || !yes {
		return err
	}
	after, err := f.carryOut(ctx, stdio, w, p)
	if err != nil {
		return err
	}
	return f.checkChange(stdio, after, change)
}

// checkChange returns an error if the change is not complete. Otherwise it tells the operator the next step.
func (f *applyFlags) checkChange(stdio IO, after engine.Proposal, change nodeChange) error {
	if change.replace && !change.unreachable {
		return f.verifyResult(stdio, after)
	}
	if len(after.Plan.Steps) > 0 {
		return &classError{view.ExitRuntime, errors.New(
			"all steps succeeded, but the cluster still contains parts of the host; run the command again")}
	}
	defer f.printNotRunning(stdio, after)
	next := "Now remove it from the manifest; otherwise kubeone apply joins it again."
	if change.replace {
		next = "Now prepare its replacement, as listed above, and run kubeone apply."
	}
	return f.reportEnd(stdio, fmt.Sprintf("Done. %s is no longer in the cluster. %s", change.host, next), nil)
}
