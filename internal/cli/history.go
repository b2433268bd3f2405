package cli

import (
	"fmt"
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
	var diffs bool
	cmd := &cobra.Command{
		Use:   "history [RUN]",
		Short: "Show who ran what when on this cluster, or the steps of one run",
		Long: "Show the last 50 runs as the cluster remembers them, newest first: who, from where, when, for what,\n" +
			"and how it went. With RUN, or the beginning or end of its name, the steps of that run and how long\n" +
			"each took. With --diff also which lines of files and objects the runs found and were to change.",
		Example: "  kubeone history -m kubeone.yaml\n  kubeone history 20260810T0300 --diff",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			w, err := f.open(cmd.Context(), stdio, nil, host.PolicyProbe)
			if err != nil {
				return err
			}
			defer w.Close()
			runs, err := w.Engine.History(cmd.Context())
			if err != nil {
				return err
			}
			if len(args) > 0 {
				if runs, err = runNamed(runs, args[0]); err != nil {
					return &classError{exitConfig, err}
				}
			}
			return showHistory(stdio, w.Name(), runs, historyOutput{output, len(args) > 0, diffs})
		},
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&diffs, "diff", false, "show which lines of files and objects were to change")
	outputFlag(cmd, &output, "text or json")
	return cmd
}

// historyOutput is how runs are shown.
type historyOutput struct {
	format     string
	one, diffs bool
}

func showHistory(stdio IO, name string, runs []record.Run, to historyOutput) error {
	style := view.StyleFor(stdio.Out, stdio.Getenv)
	if !to.diffs {
		for i := range runs {
			runs[i].Diffs = nil
		}
	}
	switch {
	case to.format == "json":
		text, err := view.HistoryJSON(name, runs)
		if err != nil {
			return err
		}
		_, err = stdio.Out.Write(text)
		return err
	case to.one:
		view.HistoryRun(stdio.Out, style, runs[0])
	default:
		view.History(stdio.Out, style, runs)
	}
	if to.diffs {
		view.HistoryDiffs(stdio.Out, style, runs)
	}
	return nil
}

// runNamed finds the one run whose name is given, or begins or ends with what is given.
func runNamed(runs []record.Run, name string) ([]record.Run, error) {
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
		return nil, fmt.Errorf("no run that is remembered is called %q; kubeone history lists them", name)
	case 1:
		return found, nil
	}
	var names []string
	for _, r := range found {
		names = append(names, r.ID)
	}
	return nil, fmt.Errorf("%q is not the name of one run: %s", name, strings.Join(names, ", "))
}
