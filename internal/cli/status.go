package cli

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"kubeone/internal/engine"
	"kubeone/internal/host"
	"kubeone/internal/view"
)

// newStatusCommand returns "kubeone status".
func newStatusCommand(stdio IO) *cobra.Command {
	f := &clusterFlags{}
	var output string
	cmd := &cobra.Command{
		Use:   "status [MANIFEST]",
		Short: "Show hosts, components, etcd, certificates and drift",
		Long: "Inspect every host, the API and etcd, and show their state. Nothing is changed.\n\n" +
			"Exit status: 0 if the cluster is healthy, 3 if it is not.",
		Example: "  kubeone status\n" +
			"  kubeone status -o 'jsonpath={.checks[?(@.ok==false)].name}'",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := f.inspectCluster(cmd.Context(), stdio, args, engine.HangTimeout)
			if err != nil {
				return err
			}
			in := newStatusInput(p, time.Now())
			err = printResult(stdio.Out, output, func() ([]byte, error) { return view.StatusJSON(in) },
				func(out io.Writer) error {
					view.Status(out, view.StyleFor(out, stdio.Getenv), in)
					return nil
				})
			if err != nil {
				return err
			}
			if !view.Healthy(in) {
				return &statusError{view.ExitUnhealthy}
			}
			return nil
		},
	}
	f.registerFlags(cmd)
	outputFlag(cmd, &output)
	return cmd
}

// inspectCluster inspects every host, the API and etcd, and changes nothing. It inspects unhealthy members again until
// the timeout ends; 0 means once.
func (f *clusterFlags) inspectCluster(ctx context.Context, stdio IO, args []string, timeout time.Duration) (
	engine.Proposal, error) {
	w, err := f.openCluster(ctx, stdio, args, host.PolicyProbe)
	if err != nil {
		return engine.Proposal{}, err
	}
	defer w.Close()
	r := engine.Apply{NamesOnly: true}
	p, err := w.Engine.Propose(ctx, r)
	if timeout == 0 {
		return p, err
	}
	return proposeReady(ctx, stdio, w.Engine, p, err, timeout)
}

func newStatusInput(p engine.Proposal, now time.Time) view.StatusInput {
	return view.StatusInput{Want: p.Want, World: p.Observed.World, Decision: p.Decision(), Now: now}
}
