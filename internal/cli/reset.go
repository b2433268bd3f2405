package cli

import (
	"context"
	"errors"
	"fmt"
	"kubeone/internal/view"

	"github.com/spf13/cobra"

	"kubeone/internal/engine"
)

// newResetCommand returns "kubeone reset".
func newResetCommand(stdio IO) *cobra.Command {
	f := &applyFlags{}
	var r engine.Reset
	cmd := &cobra.Command{
		Use:   "reset [MANIFEST]",
		Short: "Wipe the cluster from its hosts, with all data",
		Long: "Remove everything that apply put on hosts. Without --host the whole cluster ends, with all its\n" +
			"data. With --host one host leaves a living cluster: it is drained, its member leaves etcd, and its\n" +
			"Node is deleted. A control-plane host keeps its etcd data, its snapshots and its PKI, in\n" +
			"/var/lib/kubeone-old or, where /var/lib/etcd is a disk of its own, there; --purge deletes that too.\n\n" +
			"Before a whole cluster ends, its Machines are deleted, and the controllers return their hosts. Where\n" +
			"no controllers run, or hosts do not come back, --abandon-machines leaves these hosts as they are.",
		Example: "  kubeone reset\n" +
			"  kubeone reset --host worker-3\n" +
			"  kubeone reset --purge --auto-approve",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runReset(cmd.Context(), stdio, f, r, args)
		},
	}
	f.registerFlags(cmd)
	flags := cmd.Flags()
	flags.StringSliceVar(&r.Hosts, "host", nil, "reset this `HOST` only, by name or address; can be repeated")
	f.completeHostFlag(cmd, "host")
	flags.BoolVar(&r.Purge, "purge", false,
		"delete what this and earlier resets, repairs and recoveries have kept on the hosts")
	flags.BoolVar(&r.AbandonMachines, "abandon-machines", false,
		"leave the hosts of Machines as they are, and do not have them returned first")
	cmd.MarkFlagsMutuallyExclusive("host", "abandon-machines")
	parallelFlag(cmd, &f.parallel)
	f.registerRun(cmd)
	return cmd
}

func runReset(ctx context.Context, stdio IO, f *applyFlags, r engine.Reset, args []string) error {
	w, err := f.openCluster(ctx, stdio, args, f.unknownKeysPolicy())
	if err != nil {
		return err
	}
	defer w.Close()
	if r.Hosts, err = hostIDs(ctx, w, "--host", r.Hosts...); err != nil {
		return err
	}
	p, err := proposeWhenIdle(ctx, stdio, w.Engine, r)
	if err != nil {
		return err
	}
	if len(p.Plan.Steps) == 0 {
		for _, note := range p.Plan.Notes {
			_, _ = fmt.Fprintln(f.planWriter(stdio), note)
		}
		return f.reportEnd(stdio, "No changes. "+bareText(p), notReset(p))
	}
	if yes, err := f.confirmPlan(stdio, p, "Remove all this, with its data?"); err != nil || !yes {
		return err
	}
	after, err := f.carryOut(ctx, stdio, w, p)
	if err != nil {
		return err
	}
	if len(after.Plan.Steps) > 0 {
		return &classError{view.ExitRuntime,
			errors.New("all steps succeeded, but something is left on the hosts; reset again")}
	}
	f.notRunning(stdio, after)
	return f.reportEnd(stdio, "Done. "+bareText(after), notReset(after))
}

// bareText says which hosts are bare after a reset, or when there is nothing to reset.
func bareText(p engine.Proposal) string {
	switch left := notReset(p); {
	case left == nil:
		return "The hosts are bare."
	case len(left.hosts) == len(p.Want.Hosts()):
		return "No host could be reset."
	}
	return "The other hosts are bare."
}

// notReset names the hosts that a reset of the whole cluster leaves as they are. It is nil if there are none, and where
// hosts are named: each of those is reset, or refused.
func notReset(p engine.Proposal) *leftOut {
	if r, ok := p.Request.(engine.Reset); ok && len(r.Hosts) > 0 {
		return nil
	}
	return leftOutOf(p, p.Want.Hosts(), "not reset")
}
