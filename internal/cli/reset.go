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
		Short: "Remove the cluster and its data from hosts",
		Long: "Remove everything that apply installed. By default, the whole cluster and all its data are removed.\n" +
			"With --host, only the named hosts leave the running cluster: each host is drained, its etcd member\n" +
			"is removed, and its Node is deleted. Control-plane hosts keep their etcd data, snapshots and PKI in\n" +
			"/var/lib/kubeone-old, or in /var/lib/etcd if that is a separate disk. To delete these too, use\n" +
			"--purge.\n\n" +
			"Before the whole cluster is removed, its Machines are deleted so that the controllers return their\n" +
			"hosts to the pool. If the controllers are not running or cannot return a host, use\n" +
			"--abandon-machines.",
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
	flags.StringSliceVar(&r.Hosts, "host", nil,
		"`HOST` to reset, by name or address; can be repeated (default: all hosts)")
	f.completeHostFlag(cmd, "host")
	flags.BoolVar(&r.Purge, "purge", false,
		"also delete data kept by this and earlier resets, repairs and recoveries")
	flags.BoolVar(&r.AbandonMachines, "abandon-machines", false,
		"do not return Machine hosts to the pool first; leave them unchanged")
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
		return f.reportEnd(stdio, "No changes. "+bareHostsText(p), findHostsNotReset(p))
	}
	if yes, err := f.confirmPlan(stdio, p, "Remove all of this, including its data?"); err != nil || !yes {
		return err
	}
	after, err := f.carryOut(ctx, stdio, w, p)
	if err != nil {
		return err
	}
	if len(after.Plan.Steps) > 0 {
		return &classError{view.ExitRuntime,
			errors.New("all steps succeeded, but hosts still contain parts of the cluster; run the command again")}
	}
	f.printNotRunning(stdio, after)
	return f.reportEnd(stdio, "Done. "+bareHostsText(after), findHostsNotReset(after))
}

// bareHostsText returns a sentence about which hosts are bare: all, none, or all except the skipped ones.
func bareHostsText(p engine.Proposal) string {
	switch left := findHostsNotReset(p); {
	case left == nil:
		return "The hosts are bare."
	case len(left.names) == len(p.Want.Hosts()):
		return "No host could be reset."
	}
	return "The other hosts are bare."
}

// findHostsNotReset returns the hosts that a reset of the whole cluster skips, or nil if there are none. With --host,
// it always returns nil, because the command resets or refuses each named host.
func findHostsNotReset(p engine.Proposal) *skippedHosts {
	if r, ok := p.Request.(engine.Reset); ok && len(r.Hosts) > 0 {
		return nil
	}
	return findSkippedHosts(p, p.Want.Hosts(), "not reset")
}
