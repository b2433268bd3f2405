package cli

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"kubeone/examples"
	"kubeone/internal/manifest"
)

func dirOf(path string) string { return filepath.Dir(path) }

// newConfigCommand returns "kubeone config".
func newConfigCommand(stdio IO) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Print an example manifest, or the effective one",
		Args:  subcommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		SuggestionsMinimumDistance: 2,
	}
	var full bool
	example := &cobra.Command{
		Use:   "print",
		Short: "Print an example manifest",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			name := "minimal.yaml"
			if full {
				name = "full.yaml"
			}
			text, err := examples.Files.ReadFile(name)
			if err != nil {
				return err
			}
			_, err = stdio.Out.Write(text)
			return err
		},
	}
	example.Flags().BoolVarP(&full, "full", "f", false, "with every field")
	f := &clusterFlags{}
	dump := &cobra.Command{
		Use:   "dump [MANIFEST]",
		Short: "Print the manifest with defaults and Terraform's output filled in, without secrets",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				f.manifest = args[0]
			}
			loaded, err := manifest.Load(cmd.Context(),
				manifest.Options{ManifestPath: f.manifest, TerraformPath: f.terraform, Stdin: stdio.In})
			if err != nil {
				return err
			}
			_, err = stdio.Out.Write(loaded.ManifestText)
			return err
		},
	}
	f.register(dump)
	cmd.AddCommand(example, dump)
	return cmd
}
