package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"kubeone/internal/cluster/record"
	"kubeone/internal/host"
	"kubeone/internal/view"
)

// newHistoryCommand returns "kubeone history".
func newHistoryCommand(stdio IO) *cobra.Command {
	f := &clusterFlags{}
	var output string
	cmd := &cobra.Command{
		Use:   "history [RUN]",
		Short: "Show past runs and their steps",
		Long: "Show the last 50 runs recorded in the cluster, newest first: operator, machine, time, purpose and\n" +
			"result. With RUN, show the steps of that run and their durations. RUN is a run ID, or the beginning\n" +
			"or end of one.",
		Example: "  kubeone history -m kubeone.yaml\n  kubeone history 20260810T0300",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			w, err := f.openCluster(cmd.Context(), stdio, nil, host.PolicyProbe)
			if err != nil {
				return err
			}
			defer w.Close()
			runs, err := w.Engine.History(cmd.Context())
			if err != nil {
				return err
			}
			if len(args) > 0 {
				if runs, err = findRun(runs, args[0]); err != nil {
					return &classError{view.ExitConfig, err}
				}
			}
			return showHistory(stdio, w.Name(), runs, historyOutput{output, len(args) > 0})
		},
	}
	f.registerFlags(cmd)
	outputFlag(cmd, &output)
	return cmd
}

// historyOutput holds the settings for the output.
type historyOutput struct {
	format string
	single bool // show one run with its steps, not the list of runs
}

func showHistory(stdio IO, name string, runs []record.Run, as historyOutput) error {
	document := func() ([]byte, error) { return view.HistoryJSON(name, runs) }
	return printResult(stdio.Out, as.format, document, func(out io.Writer) error {
		style := view.StyleFor(out, stdio.Getenv)
		if as.single {
			view.HistoryRun(out, style, runs[0])
		} else {
			view.History(out, style, runs)
		}
		return nil
	})
}

// findRun returns the run with the ID name, or the only run whose ID begins or ends with name, as a list of one. It
// fails if there is none, or more than one.
func findRun(runs []record.Run, name string) ([]record.Run, error) {
	var found []record.Run
	for _, r := range runs {
		if r.ID == name {
			return []record.Run{r}, nil
		}
		if strings.HasPrefix(r.ID, name) || strings.HasSuffix(r.ID, name) {
			found = append(found, r)
		}
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("no run %q in the history; kubeone history lists all runs", name)
	case 1:
		return found, nil
	}
	var names []string
	for _, r := range found {
		names = append(names, r.ID)
	}
	return nil, fmt.Errorf("%q matches several runs: %s", name, strings.Join(names, ", "))
}
