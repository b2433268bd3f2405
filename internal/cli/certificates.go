package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"kubeone/internal/engine"
	"kubeone/internal/problem"
	"kubeone/internal/step"
)

// newCertificatesCommand returns "kubeone certificates".
func newCertificatesCommand(stdio IO) *cobra.Command {
	cmd := &cobra.Command{
		Use: "certificates", Short: "Show and renew the certificates of the control plane", Args: subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		SuggestionsMinimumDistance: 2,
	}
	cmd.AddCommand(newCertificatesStatusCommand(stdio), newCertificatesRenewCommand(stdio))
	return cmd
}

func newCertificatesStatusCommand(stdio IO) *cobra.Command {
	f := &clusterFlags{}
	var output string
	cmd := &cobra.Command{
		Use:   "status [MANIFEST]",
		Short: "Show every certificate of every control-plane host: its end, the days left, who signed it",
		Long: "Ask every control-plane host for its certificates, those of CAs and in kubeconfigs too, and show\n" +
			"when they end and who signed them. Nothing is changed.\n\n" +
			"Exit status: 0 well, 3 when one has expired or ends within 30 days, or a host's are not known.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := f.look(cmd.Context(), stdio, args)
			if err != nil {
				return err
			}
			doc := certificatesDocument(p.Want, p.Observed.World, p.Plan.Hosts, time.Now())
			if err := printDocument(stdio, output, doc, doc.print); err != nil {
				return err
			}
			if !doc.Healthy {
				return &statusError{exitUnhealthy}
			}
			return nil
		},
	}
	f.register(cmd)
	outputFlag(cmd, &output, "text or json")
	return cmd
}

func newCertificatesRenewCommand(stdio IO) *cobra.Command {
	f := &applyFlags{}
	var all bool
	cmd := &cobra.Command{
		Use:   "renew [MANIFEST]",
		Short: "Renew the certificates and kubeconfigs of the control plane, one host after the other",
		Long: "Renew what kubeadm signs on the control-plane hosts: the certificates of etcd, API server and their\n" +
			"clients, and the kubeconfigs. One host after the other: its API server and controllers start again,\n" +
			"and its etcd member, which reads certificates by itself, goes on. CAs stay, and kubelets renew theirs.\n" +
			"What was renewed within the last hour is left alone, so that a run that was interrupted goes on where\n" +
			"it ended.\n\n" +
			"kubeone apply renews by itself what has less than 90 days, and less than a third of its life, left.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runRenewal(cmd.Context(), stdio, f, args, all)
		},
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "renew also what was renewed within the last hour")
	f.registerRun(cmd)
	return cmd
}

// runRenewal proposes, shows the plan, asks, carries it out, and looks whether anything is left.
func runRenewal(ctx context.Context, stdio IO, f *applyFlags, args []string, all bool) error {
	w, err := f.open(ctx, stdio, args, f.unknown())
	if err != nil {
		return err
	}
	defer w.Close()
	p, err := propose(ctx, stdio, w.Engine, engine.RenewCertificates{All: all})
	if err != nil {
		return err
	}
	if err := p.Refusal(); err != nil {
		return err
	}
	if len(p.Plan.Steps) == 0 {
		_, _ = fmt.Fprintln(f.out(stdio), "No changes. A renewal would not give any certificate an hour more; "+
			"--all renews them nevertheless.")
		return nil
	}
	if yes, err := f.confirmed(stdio, p, "Carry out this plan?"); err != nil || !yes {
		return err
	}
	after, err := f.carryOut(ctx, stdio, w, p)
	if err != nil {
		return err
	}
	if err := after.Refusal(); err != nil {
		return fmt.Errorf("all steps succeeded, and then: %w", err)
	}
	if len(after.Plan.Steps) > 0 {
		return &classError{exitRuntime, errors.New(
			"all steps succeeded, but some certificates were not renewed; see kubeone certificates status")}
	}
	if f.output == "text" {
		_, _ = fmt.Fprintf(stdio.Out, "Done. Certificates and kubeconfigs are new on %s; kubeone kubeconfig writes "+
			"the new kubeconfig.\n", problem.List(renewed(p)))
	}
	return nil
}

// renewed names the hosts whose certificates a plan renews.
func renewed(p engine.Proposal) []string {
	var out []string
	for _, s := range p.Plan.Steps {
		if s.Intent.Kind == step.Regenerate {
			out = append(out, p.Plan.Hosts[s.Host])
		}
	}
	return out
}
