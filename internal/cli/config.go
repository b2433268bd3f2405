package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"kubeone/api/kubeone/v1beta2"
	"kubeone/examples"
	"kubeone/internal/manifest"
)

func dirOf(path string) string { return filepath.Dir(path) }

// newConfigCommand returns "kubeone config".
func newConfigCommand(stdio IO) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Print an example manifest, the effective one, its Machines, its JSON Schema; migrate one",
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
	cmd.AddCommand(example, newConfigDumpCommand(stdio), newConfigMachineDeploymentsCommand(stdio),
		newConfigSchemaCommand(stdio), newConfigMigrateCommand(stdio))
	return cmd
}

func newConfigSchemaCommand(stdio IO) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of manifests, for editors",
		Long: "Print the JSON Schema (draft 7) of manifests. With it, editors complete fields, show what they mean,\n" +
			"and mark what is wrong. With the YAML language server, the first line of a manifest names it:\n\n" +
			"  # yaml-language-server: $schema=kubeone.schema.json",
		Example: "  kubeone config schema > kubeone.schema.json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := io.WriteString(stdio.Out, v1beta2.Schema())
			return err
		},
	}
}

func newConfigMigrateCommand(stdio IO) *cobra.Command {
	path := "./kubeone.yaml"
	cmd := &cobra.Command{
		Use:   "migrate [MANIFEST]",
		Short: "Print a manifest of apiVersion kubeone.k8c.io/v1beta3 as one of v1beta2, which this program reads",
		Long: "Print a manifest of apiVersion kubeone.k8c.io/v1beta3 as one of v1beta2, which this program reads.\n" +
			"It means the same, and is printed with its secrets and comments. The file itself is not changed.\n" +
			"What v1beta2 cannot say is an error. A manifest of v1beta2 is printed as it is.",
		Example: "  kubeone config migrate old.yaml > kubeone.yaml",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				path = args[0]
			}
			text, err := manifest.Migrate(manifest.Options{ManifestPath: path, Stdin: stdio.In})
			if err != nil {
				return err
			}
			_, err = stdio.Out.Write(text)
			return err
		},
	}
	cmd.Flags().StringVarP(&path, "manifest", "m", path, "the manifest; also the first argument")
	return cmd
}

func newConfigDumpCommand(stdio IO) *cobra.Command {
	f := &clusterFlags{}
	dump := &cobra.Command{
		Use:   "dump [MANIFEST]",
		Short: "Print the manifest with defaults and Terraform's output filled in, without secrets",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			loaded, err := f.load(cmd.Context(), stdio, args)
			if err != nil {
				return err
			}
			_, err = stdio.Out.Write(loaded.ManifestText)
			return err
		},
	}
	f.register(dump)
	return dump
}

func newConfigMachineDeploymentsCommand(stdio IO) *cobra.Command {
	f := &clusterFlags{}
	cmd := &cobra.Command{
		Use:   "machinedeployments [MANIFEST]",
		Short: "Print the manifest's dynamic workers as MachineDeployments",
		Long: "Print the MachineDeployments that the manifest's dynamicWorkers, and Terraform's kubeone_workers,\n" +
			"stand for. Without a cloud provider their provider is ssh: hosts of the pool.",
		Example: "  kubeone config machinedeployments -m kubeone.yaml -t tf.json | kubectl apply -f -",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			loaded, err := f.load(cmd.Context(), stdio, args)
			if err != nil {
				return err
			}
			for i, d := range loaded.MachineDeployments {
				text, err := yaml.Marshal(d)
				if err != nil {
					return err
				}
				if i > 0 {
					_, _ = fmt.Fprintln(stdio.Out, "---")
				}
				if _, err := stdio.Out.Write(text); err != nil {
					return err
				}
			}
			return nil
		},
	}
	f.register(cmd)
	return cmd
}

// load reads the manifest that the flags and the first argument name.
func (f *clusterFlags) load(ctx context.Context, stdio IO, args []string) (manifest.Loaded, error) {
	if len(args) > 0 {
		f.manifest = args[0]
	}
	return manifest.Load(ctx,
		manifest.Options{
			ManifestPath: f.manifest, TerraformPath: f.terraform, CredentialsPath: f.credentials, Stdin: stdio.In,
		})
}
