package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"kubeone/internal/chart"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/machine/life"
)

// newFSMCommand returns "kubeone fsm".
func newFSMCommand(stdio IO) *cobra.Command {
	var output string
	charts := map[string]func() chart.Chart{
		"cluster": fsm.Cluster.Chart, "worker": fsm.Worker.Chart, "machines": life.Chart,
	}
	cmd := &cobra.Command{
		Use:   "fsm [cluster | worker | machines]",
		Short: "Draw the state machines of clusters, workers and Machines",
		Example: "  kubeone fsm > decisions.mmd\n" +
			"  kubeone fsm machines -o svg > machines.svg",
		Args:      cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"cluster", "worker", "machines"},
		RunE: func(_ *cobra.Command, args []string) error {
			draws := map[string]func(chart.Chart) string{
				"svg": chart.Chart.SVG, "dot": chart.Chart.Dot, "mermaid": chart.Chart.Mermaid,
			}
			_, err := fmt.Fprint(stdio.Out, draws[output](charts[append(args, "cluster")[0]]()))
			return err
		},
	}
	formatFlag(cmd, &output, []string{"mermaid", "dot", "svg"}, "format of the drawing")
	return cmd
}
