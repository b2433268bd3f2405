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
		Short: "Print a decision state machine as Mermaid",
		Long: "Print one of the state machines that kubeone uses to decide what to do, as a Mermaid flowchart. With\n" +
			"\"cluster\" (the default), print the one for a cluster. With \"worker\", print the one for the host of a\n" +
			"Machine.",
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
