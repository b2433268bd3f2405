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
		Use: "certificates", Short: "Show, renew and rotate the certificates of the control plane",
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
		Short: "Show every certificate of every control-plane host: its end, the days left, who signed it",
		Long: "Ask every control-plane host for its certificates, those of CAs and in kubeconfigs too, and show\n" +
			"when they end and who signed them. Nothing is changed.\n\n" +
			"Exit status: 0 well, 3 when one has expired or ends within 30 days, or a host's are not known.",
		Example: "  kubeone certificates status",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := f.inspectCluster(cmd.Context(), stdio, args,
				0) // a late component's certificates are what they are
			if err != nil {
				return err
			}
			doc := view.NewCertificatesDocument(p.Want, p.Observed.World, p.Plan.Hosts, time.Now())
			if err := printResult(stdio.Out, output, documentOf(doc), doc.Print); err != nil {
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
		Short: "Renew the certificates and kubeconfigs of the control plane, one host after the other",
		Long: "Renew what kubeadm signs on the control-plane hosts: the certificates of etcd, API server and their\n" +
			"clients, and the kubeconfigs. One host after the other: its API server and controllers start again,\n" +
			"and its etcd member, which reads certificates by itself, goes on. CAs stay, and kubelets renew theirs.\n" +
			"What was renewed within the last hour is left alone, so that a run that was interrupted goes on where\n" +
			"it ended.\n\n" +
			"kubeone apply renews by itself what has less than 90 days, and less than a third of its life, left.",
		Example: "  kubeone certificates renew\n" +
			"  kubeone certificates renew --all --auto-approve",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			run := certificateRun{
				request: engine.RenewCertificates{All: all},
				none: "No changes. A renewal would not give any certificate an hour more; --all renews them " +
					"nevertheless.",
				left: "some certificates were not renewed; see kubeone certificates status",
				done: func(p engine.Proposal) string {
					return "Done. Certificates and kubeconfigs are new on " + problem.List(renewedHosts(p)) +
						"; kubeone kubeconfig writes the new kubeconfig."
				},
			}
			return run.carryOut(cmd.Context(), stdio, f, args)
		},
	}
	f.registerFlags(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "renew also what was renewed within the last hour")
	f.registerRun(cmd)
	return cmd
}

// certificateRun is what is said of a run about certificates: when nothing is to be done, when something is left that
// should have been, and at its end.
type certificateRun struct {
	request    engine.Request
	none, left string
	done       func(p engine.Proposal) string
}

// carryOut proposes, shows the plan, asks, carries it out, and looks whether anything is left.
func (c certificateRun) carryOut(ctx context.Context, stdio IO, f *applyFlags, args []string) error {
	w, err := f.openCluster(ctx, stdio, args, f.unknownKeysPolicy())
	if err != nil {
		return err
	}
	defer w.Close()
	return f.runUntilStable(stdio, func() error { return c.renewOrRotate(ctx, stdio, w, f) })
}

func (c certificateRun) renewOrRotate(ctx context.Context, stdio IO, w *workspace.Workspace, f *applyFlags) error {
	p, err := proposeWhenIdle(ctx, stdio, w.Engine, c.request)
	if err != nil {
		return err
	}
	if err := p.Refusal(); err != nil {
		return err
	}
	if len(p.Plan.Steps) == 0 {
		if p.Plan.Again != "" {
			return &classError{view.ExitRuntime, errors.New("nothing can be done now: " + p.Plan.Again)}
		}
		return f.reportEnd(stdio, c.none, nil)
	}
	if yes, err := f.confirmPlan(stdio, p, "Carry out this plan?"); err != nil || !yes {
		return err
	}
	after, err := f.carryOut(ctx, stdio, w, p)
	if err != nil {
		return err
	}
	if err := after.Refusal(); err != nil {
		return fmt.Errorf("all steps succeeded, and then: %w", err)
	}
	if p.Plan.Again != "" && (len(after.Plan.Steps) > 0 || len(rotatedAuthorities(p)) == 0) {
		return &classError{view.ExitRuntime,
			errors.New("all steps succeeded, and the rotation has not ended: " + p.Plan.Again)}
	}
	if len(after.Plan.Steps) > 0 {
		return &classError{view.ExitRuntime, errors.New("all steps succeeded, but " + c.left)}
	}
	f.notRunning(stdio, after)
	return f.reportEnd(stdio, c.done(p), nil)
}

func newCertificatesRotateCommand(stdio IO) *cobra.Command {
	f := &applyFlags{}
	var authorities []string
	var resume bool
	cmd := &cobra.Command{
		Use:   "rotate-ca [MANIFEST]",
		Short: "Rotate the CAs of etcd, the front proxy and the cluster, and the key of service accounts",
		Long: "Give etcd and the front proxy a new CA each, and service accounts a new key, while the cluster\n" +
			"works; with --authority cluster, the cluster itself a new CA. On every control-plane host, one after\n" +
			"the other, the new key is trusted beside the present one; when all trust it, each host signs with it,\n" +
			"and makes anew what the former one had signed; then the former one is trusted no more. What reads\n" +
			"them starts anew in each of the three phases.\n\n" +
			"Before the former key of service accounts is dropped, kubelets start anew, so that all pods get tokens\n" +
			"of the new one, and tokens that stand in Secrets are made anew. Other copies of tokens end with the\n" +
			"key.\n\n" +
			"The CA of the cluster is that by which clients know the API. When all hosts trust the new one, the\n" +
			"command ends and says what people have to do: start pods anew, and fetch kubeconfigs. With --resume\n" +
			"it goes on when that is done, and once more when people have kubeconfigs of the new one.\n\n" +
			"A run that was interrupted goes on where it ended, with --resume or without.",
		Example: "  kubeone certificates rotate-ca\n" +
			"  kubeone certificates rotate-ca --authority cluster\n" +
			"  kubeone certificates rotate-ca --resume",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			run := certificateRun{
				request: engine.RotateCA{Authorities: authorities, Anew: !resume},
				none:    "No changes. No rotation has begun that could be ended.",
				left:    "the rotation has not ended; kubeone certificates rotate-ca --resume goes on",
				done: func(p engine.Proposal) string {
					return "Done. New keys sign, and are trusted alone: " + problem.List(rotatedAuthorities(p)) + "."
				},
			}
			return run.carryOut(cmd.Context(), stdio, f, args)
		},
	}
	f.registerFlags(cmd)
	cmd.Flags().StringSliceVar(&authorities, "authority", nil,
		"rotate only the keys of this `AUTHORITY`: "+strings.Join(observed.Authorities(), ", "))
	completeFlag(cmd, "authority", observed.Authorities()...)
	cmd.Flags().BoolVar(&resume, "resume", false, "end a rotation that has begun, and begin none")
	f.registerRun(cmd)
	return cmd
}

// rotatedAuthorities names the authorities whose rotation a plan ends.
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

// renewedHosts names the hosts whose certificates a plan renews.
func renewedHosts(p engine.Proposal) []string {
	var out []string
	for _, s := range p.Plan.Steps {
		if s.Intent.Kind == step.Regenerate {
			out = append(out, p.Plan.Hosts[s.Host])
		}
	}
	return out
}
