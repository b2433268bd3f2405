package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"kubeone/internal/decide/fsm"
)

// newFSMCommand returns "kubeone fsm".
func newFSMCommand(stdio IO) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "fsm",
		Short: "Draw the state machine that decides what a cluster needs",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			drawings := map[string]func() string{
				"svg": fsm.Cluster.SVG, "dot": fsm.Cluster.Dot, "mermaid": fsm.Cluster.Mermaid,
			}
			draw, ok := drawings[output]
			if !ok {
				return &usageError{fmt.Errorf("--output is svg, dot or mermaid, not %q", output), "kubeone fsm"}
			}
			_, err := fmt.Fprint(stdio.Out, draw())
			return err
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "mermaid", "svg, dot or mermaid")
	return cmd
}
