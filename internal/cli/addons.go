package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"kubeone/internal/engine"
	"kubeone/internal/host"
	"kubeone/internal/model/observed"
	"kubeone/internal/view"
)

// newAddonsCommand returns "kubeone addons".
func newAddonsCommand(stdio IO) *cobra.Command {
	cmd := &cobra.Command{
		Use: "addons", Short: "Show addons", Args: refuseUnknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		SuggestionsMinimumDistance: 2,
	}
	cmd.AddCommand(newAddonsListCommand(stdio))
	return cmd
}

func newAddonsListCommand(stdio IO) *cobra.Command {
	f := &clusterFlags{}
	var output string
	cmd := &cobra.Command{
		Use:   "list [MANIFEST]",
		Short: "Show addons and their state",
		Long: "Show every addon in the manifest and in the cluster: whether it is applied, outdated, changed or to be\n" +
			"removed, and which of its objects differ. Nothing is changed; kubeone apply updates addons.\n\n" +
			"Exit status: 0 if the API answers, 3 if it does not: then the list shows only the manifest.",
		Example: "  kubeone addons list\n" +
			"  kubeone addons list -o 'jsonpath={.addons[?(@.state!=\"applied\")].name}'",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			doc, reached, err := f.listAddons(cmd.Context(), stdio, args)
			if err != nil {
				return err
			}
			if err := printResult(stdio.Out, output, jsonEncoder(doc), doc.Print); err != nil {
				return err
			}
			if !reached {
				return &statusError{view.ExitUnhealthy}
			}
			return nil
		},
	}
	f.registerFlags(cmd)
	outputFlag(cmd, &output)
	return cmd
}

// listAddons returns the addons, and whether the API answered.
func (f *clusterFlags) listAddons(ctx context.Context, stdio IO, args []string) (view.AddonsDocument, bool, error) {
	w, err := f.openCluster(ctx, stdio, args, host.PolicyProbe)
	if err != nil {
		return view.AddonsDocument{}, false, err
	}
	defer w.Close()
	p, err := w.Engine.Propose(ctx, engine.Apply{NamesOnly: true})
	var config *engine.ConfigError
	if err != nil && !errors.As(err, &config) { // what the cluster has is known even if nothing can be planned
		return view.AddonsDocument{}, false, err
	}
	doc := view.AddonsDocument{Format: view.AddonsFormat, Cluster: w.Name(), Addons: []view.AddonReport{}}
	for _, a := range w.Engine.Addons(p) {
		r := view.AddonReport{Name: a.Name, Source: "kubeone", State: a.State(), Objects: a.Objects, Problem: a.Problem}
		switch {
		case a.Helm:
			r.Source = "helm"
		case a.Custom:
			r.Source = "folder"
		}
		for _, d := range a.Differences {
			r.Differences = append(r.Differences, d.String())
		}
		doc.Addons = append(doc.Addons, r)
	}
	return doc, p.Observed.World.API.Reached == observed.Yes, nil
}
