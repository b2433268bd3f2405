package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kubeone/internal/engine"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"kubeone/internal/plan/step"
	"kubeone/internal/view"
	"kubeone/internal/workspace"
)

// newCertificatesCommand returns "kubeone certificates".
func newCertificatesCommand(stdio IO) *cobra.Command {
	cmd := &cobra.Command{
		Use: "certificates", Short: "Show, renew and rotate control-plane certificates",
		Args: refuseUnknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		SuggestionsMinimumDistance: 2,
	}
	cmd.AddCommand(newCertificatesStatusCommand(stdio), newCertificatesRenewCommand(stdio),
		newCertificatesRotateCommand(stdio))
	return cmd
}

func newCertificatesStatusCommand(stdio IO) *cobra.Command {
	f := &clusterFlags{}
	var output string
	cmd := &cobra.Command{
		Use:   "status [MANIFEST]",
		Short: "Show the certificates of control-plane hosts",
		Long: "Show the certificates on every control-plane host, including CAs and the client certificates in\n" +
			"kubeconfigs: expiry date, days left and signer. Nothing is changed.\n\n" +
			"Exit status: 0 if all certificates are valid, 3 if a certificate has expired, expires within 30 days\n" +
			"or could not be read.",
		Example: "  kubeone certificates status",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := f.inspectCluster(cmd.Context(), stdio, args,
				0) // do not wait for slow components: certificates do not depend on them
			if err != nil {
				return err
			}
			doc := view.NewCertificatesDocument(p.Want, p.Observed.World, p.Plan.Hosts, time.Now())
			if err := printResult(stdio.Out, output, jsonEncoder(doc), doc.Print); err != nil {
				return err
			}
			if !doc.Healthy {
				return &statusError{view.ExitUnhealthy}
			}
			return nil
		},
	}
	f.registerFlags(cmd)
	outputFlag(cmd, &output)
	return cmd
}

func newCertificatesRenewCommand(stdio IO) *cobra.Command {
	f := &applyFlags{}
	var all bool
	cmd := &cobra.Command{
		Use:   "renew [MANIFEST]",
		Short: "Renew control-plane certificates and kubeconfigs",
		Long: "Renew the certificates of etcd and the API server, their client certificates, and the kubeconfigs on\n" +
			"all control-plane hosts, one host at a time. The API server and the controllers on the host restart;\n" +
			"etcd keeps running. CAs are not renewed (see rotate-ca), and kubelets renew their own certificates.\n" +
			"Certificates that were renewed within the last hour are skipped, so that you can repeat an\n" +
			"interrupted run.\n\n" +
			"kubeone apply renews certificates that have less than 90 days and less than a third of their\n" +
			"lifetime left.",
		Example: "  kubeone certificates renew\n" +
			"  kubeone certificates renew --all --auto-approve",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			run := requestRun{
				request: engine.RenewCertificates{All: all},
				noneText: "No changes. Renewal would not extend any certificate by more than an hour; to renew anyway, " +
					"use --all.",
				incompleteText: "some certificates were not renewed; see kubeone certificates status",
				doneText: func(p engine.Proposal) string {
					return "Done. Renewed certificates and kubeconfigs on " + problem.List(renewedHosts(p)) +
						". Run kubeone kubeconfig to get the new kubeconfig."
				},
			}
			return run.carryOut(cmd.Context(), stdio, f, args)
		},
	}
	f.registerFlags(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "also renew certificates that were renewed within the last hour")
	f.registerRun(cmd)
	return cmd
}

// requestRun describes a run whose request is neither an Apply nor about hosts.
type requestRun struct {
	request        engine.Request
	noneText       string                         // printed if there is nothing to do
	incompleteText string                         // ends the error if certificates are left after the run
	doneText       func(p engine.Proposal) string // printed on success
}

// carryOut opens the cluster and calls runOnce until the cluster no longer changes under the plan.
func (c requestRun) carryOut(ctx context.Context, stdio IO, f *applyFlags, args []string) error {
	w, err := f.openCluster(ctx, stdio, args, f.unknownKeysPolicy())
	if err != nil {
		return err
	}
	defer w.Close()
	return f.runUntilStable(stdio, func() error { return c.runOnce(ctx, stdio, w, f) })
}

// runOnce makes a plan, shows it, asks for confirmation, carries it out, and checks the result.
func (c requestRun) runOnce(ctx context.Context, stdio IO, w *workspace.Workspace, f *applyFlags) error {
	p, err := proposeWhenIdle(ctx, stdio, w.Engine, c.request)
	if err != nil {
		return err
	}
	if err := p.Refusal(); err != nil {
		return err
	}
	if len(p.Plan.Steps) == 0 {
		if p.Plan.Again != "" {
			return &classError{view.ExitRuntime, errors.New("cannot continue yet: " + p.Plan.Again)}
		}
		return f.reportEnd(stdio, c.noneText, nil)
	}
	if yes, err := f.confirmPlan(stdio, p, "Carry out this plan?"); err != nil || !yes {
		return err
	}
	after, err := f.carryOut(ctx, stdio, w, p)
	if err != nil {
		return err
	}
	if err := after.Refusal(); err != nil {
		return fmt.Errorf("all steps succeeded, but the check afterwards failed: %w", err)
	}
	if p.Plan.Again != "" && (len(after.Plan.Steps) > 0 || len(rotatedAuthorities(p)) == 0) {
		return &classError{view.ExitRuntime,
			errors.New("all steps succeeded, but the rotation is not finished: " + p.Plan.Again)}
	}
	if len(after.Plan.Steps) > 0 {
		return &classError{view.ExitRuntime, errors.New("all steps succeeded, but " + c.incompleteText)}
	}
	f.printNotRunning(stdio, after)
	return f.reportEnd(stdio, c.doneText(p), nil)
}

func newCertificatesRotateCommand(stdio IO) *cobra.Command {
	f := &applyFlags{}
	var authorities []string
	var resume bool
	cmd := &cobra.Command{
		Use:   "rotate-ca [MANIFEST]",
		Short: "Rotate CAs and the service-account key",
		Long: "Replace the etcd CA, the front-proxy CA and the service-account key while the cluster is running.\n" +
			"With --authority cluster, replace the cluster CA.\n\n" +
			"A rotation has three phases: hosts trust the new key, sign with it, and stop trusting the old one.\n" +
			"Each phase covers all control-plane hosts in turn and restarts the components that use the key.\n" +
			"Before the old service-account key is removed, pods get new tokens and tokens in Secrets are\n" +
			"renewed; other tokens become invalid.\n\n" +
			"Rotating the cluster CA takes three runs. Each of the first two ends with a list of tasks for you,\n" +
			"such as restarting pods and distributing kubeconfigs. Complete them, then run the command again with\n" +
			"--resume. Also use --resume to continue an interrupted rotation.",
		Example: "  kubeone certificates rotate-ca\n" +
			"  kubeone certificates rotate-ca --authority cluster\n" +
			"  kubeone certificates rotate-ca --resume",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			run := requestRun{
				request:        engine.RotateCA{Authorities: authorities, Anew: !resume},
				noneText:       "No changes. There is no rotation to resume.",
				incompleteText: "the rotation is not finished; run kubeone certificates rotate-ca --resume",
				doneText: func(p engine.Proposal) string {
					return "Done. Only the new keys are trusted: " + problem.List(rotatedAuthorities(p)) + "."
				},
			}
			return run.carryOut(cmd.Context(), stdio, f, args)
		},
	}
	f.registerFlags(cmd)
	cmd.Flags().StringSliceVar(&authorities, "authority", nil,
		"`AUTHORITY` to rotate: "+strings.Join(observed.Authorities(),
			", ")+"; can be repeated (default: all but cluster)")
	completeFlag(cmd, "authority", observed.Authorities()...)
	cmd.Flags().BoolVar(&resume, "resume", false, "continue a rotation instead of starting a new one")
	f.registerRun(cmd)
	return cmd
}

// rotatedAuthorities returns the authorities whose rotation the plan finishes, sorted.
func rotatedAuthorities(p engine.Proposal) []string {
	var out []string
	for _, s := range p.Plan.Steps {
		if s.Intent.Kind == step.RotateForget {
			out = append(out, step.ParamsOf[step.RotateParams](s.Intent).Authorities...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// renewedHosts returns the names of the hosts whose certificates the plan renews.
func renewedHosts(p engine.Proposal) []string {
	var out []string
	for _, s := range p.Plan.Steps {
		if s.Intent.Kind == step.Regenerate {
			out = append(out, p.Plan.Hosts[s.Host])
		}
	}
	return out
}
