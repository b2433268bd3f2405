package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"kubeone/internal/engine"
)

// newResetCommand returns "kubeone reset".
func newResetCommand(stdio IO) *cobra.Command {
	f := &applyFlags{}
	var hosts []string
	cmd := &cobra.Command{
		Use:   "reset [MANIFEST]",
		Short: "Make hosts bare again: everything that apply put there is removed, with all data",
		Long: "Make hosts bare and usable again. Without --host the whole cluster ends, with all its data. With\n" +
			"--host one host leaves a living cluster: it is drained, its member leaves etcd, and its Node is\n" +
			"deleted.",
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
	w, err := f.open(ctx, stdio, args, f.unknown())
	if err != nil {
		return err
	}
	defer w.Close()
	ids, err := w.HostIDs("--host", hosts...)
	if err != nil {
		return err
	}
	p, err := propose(ctx, stdio, w.Engine, engine.Reset{Hosts: ids})
	if err != nil {
		return err
	}
	if len(p.Plan.Steps) == 0 {
		_, _ = fmt.Fprintln(f.out(stdio), "No changes. The hosts are bare.")
		return nil
	}
	if yes, err := f.confirmed(stdio, p, "Remove all this, with its data?"); err != nil || !yes {
		return err
	}
	after, err := f.carryOut(ctx, stdio, w, p)
	if err != nil {
		return err
	}
	if len(after.Plan.Steps) > 0 {
		return &classError{exitRuntime,
			errors.New("all steps succeeded, but something is left on the hosts; reset again")}
	}
	if f.output == "text" {
		_, _ = fmt.Fprintln(stdio.Out, "Done. The hosts are bare.")
	}
	return nil
}
