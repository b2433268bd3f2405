package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"kubeone/internal/engine"
	"kubeone/internal/view"
)

// newAdoptCommand returns "kubeone adopt".
func newAdoptCommand(stdio IO) *cobra.Command {
	f := &applyFlags{}
	var form string
	cmd := &cobra.Command{
		Use:   "adopt [MANIFEST]",
		Short: "Change the form of a cluster's desired state",
		Long: "Change the form of the desired state of a cluster. With --as objects, the cluster stores the Cluster\n" +
			"and the Machines of the file, and kubeone refuses manifests from then on. With --as manifest, the\n" +
			"stored objects are deleted, and kubeone refuses objects. Nothing that runs is changed.\n\n" +
			"kubeone export writes one form as the other.",
		Example: "  kubeone export kubeone.yaml > cluster.yaml\n" +
			"  kubeone adopt --as objects cluster.yaml",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			w, err := f.openCluster(cmd.Context(), stdio, args, f.unknownKeysPolicy())
			if err != nil {
				return err
			}
			defer w.Close()
			if given := formOf(w.Engine); given != form {
				return &classError{view.ExitConfig, fmt.Errorf("the file has the form %q, but --as says %q; kubeone export "+
					"writes one form as the other", given, form)}
			}
			run := requestRun{
				request:        engine.Adopt{},
				noneText:       "No changes. The cluster has this form already.",
				incompleteText: "the form has not changed; run the command again",
				doneText: func(engine.Proposal) string {
					return "Done. The desired state of the cluster has the form " + form + "."
				},
			}
			return f.runUntilStable(stdio, func() error { return run.runOnce(cmd.Context(), stdio, w, f) })
		},
	}
	f.registerFlags(cmd)
	cmd.Flags().StringVar(&form, "as", "", "`FORM` of the file: objects or manifest")
	completeFlag(cmd, "as", formObjects, formManifest)
	f.registerRun(cmd)
	_ = cmd.MarkFlagRequired("as")
	return cmd
}

// formOf returns the form of the engine's desired state.
func formOf(e *engine.Engine) string {
	if e.Want().Objects {
		return formObjects
	}
	return formManifest
}
