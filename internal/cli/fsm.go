package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"kubeone/internal/decide/fsm"
)

// newFSMCommand returns "kubeone fsm".
func newFSMCommand(stdio IO) *cobra.Command {
	return &cobra.Command{
		Use:   "fsm [cluster | worker]",
		Short: "Print the decision state machine as Mermaid",
		Long: "Print the state machine that decides about a cluster (the default), or about a worker that is a\n" +
			"Machine, as a Mermaid flowchart.",
		Example:   "  kubeone fsm > decisions.mmd",
		Args:      cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{string(fsm.Cluster), string(fsm.Worker)},
		RunE: func(_ *cobra.Command, args []string) error {
			m := fsm.Machine(append(args, string(fsm.Cluster))[0])
			_, err := fmt.Fprint(stdio.Out, m.Mermaid())
			return err
		},
	}
}
