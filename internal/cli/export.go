package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"kubeone/internal/manifest"
	"kubeone/internal/manifest/objects"
	"kubeone/internal/view"
)

// Forms of the desired state.
const (
	formObjects  = "objects"
	formManifest = "manifest"
)

// newExportCommand returns "kubeone export".
func newExportCommand(stdio IO) *cobra.Command {
	f := &clusterFlags{}
	live := &liveFlags{}
	var output, form string
	cmd := &cobra.Command{
		Use:   "export [MANIFEST]",
		Short: "Write a manifest as objects, or back",
		Long: "Write the desired state of a cluster in its other form: a manifest as a Cluster and its Machines, or\n" +
			"these objects as a manifest. Defaults are included, comments are not. The command does not connect\n" +
			"to any host.\n\n" +
			"With --context or --kubeconfig, it writes what was last applied to that cluster, without secrets.",
		Example: "  kubeone export kubeone.yaml > cluster.yaml\n" +
			"  kubeone export --as manifest --context prod > kubeone.yaml",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if form != "" && form != formObjects && form != formManifest {
				return &classError{view.ExitConfig, fmt.Errorf("--as must be objects or manifest, not %q", form)}
			}
			var loaded manifest.Loaded
			var err error
			if live.isSet() {
				loaded, err = live.loadRecord(cmd.Context())
			} else {
				loaded, err = f.loadManifest(cmd.Context(), stdio, args)
			}
			if err != nil {
				return err
			}
			printWarnings(stdio, loaded)
			if form == "" {
				form = formObjects
				if loaded.Objects != nil {
					form = formManifest
				}
			}
			documents, err := exportedDocuments(loaded, form)
			if err != nil {
				return err
			}
			return printObjects(stdio.Out, output, documents)
		},
	}
	f.registerManifest(cmd)
	live.registerFlags(cmd)
	cmd.Flags().StringVar(&form, "as", "", "`FORM` to write: objects or manifest (default: the other form)")
	completeFlag(cmd, "as", formObjects, formManifest)
	objectFlag(cmd, &output)
	return cmd
}

// exportedDocuments returns a cluster as JSON values in one of its forms.
func exportedDocuments(loaded manifest.Loaded, form string) ([]map[string]any, error) {
	switch {
	case form == formObjects && loaded.Objects != nil:
		return loaded.Objects.Documents()
	case form == formObjects:
		all, err := objects.Of(loaded.Written)
		if err != nil {
			return nil, err
		}
		return all.Documents()
	}
	if len(loaded.OtherObjects) > 0 {
		return nil, &classError{view.ExitConfig, objects.InexpressibleError(loaded.OtherObjects)}
	}
	document, err := objects.ManifestDocument(loaded.Written)
	return []map[string]any{document}, err
}
