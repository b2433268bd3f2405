package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"kubeone/api/kubeone/v1beta2"
	"kubeone/examples"
	"kubeone/internal/manifest"
	"kubeone/internal/view"
)

// newConfigCommand returns "kubeone config".
func newConfigCommand(stdio IO) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check and print manifests",
		Args:  refuseUnknownCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		SuggestionsMinimumDistance: 2,
	}
	var full bool
	printCommand := &cobra.Command{
		Use:     "print",
		Short:   "Print an example manifest",
		Example: "  kubeone config print > kubeone.yaml",
		Args:    cobra.NoArgs,
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
	printCommand.Flags().BoolVarP(&full, "full", "f", false, "include every field")
	cmd.AddCommand(printCommand, newConfigValidateCommand(stdio), newConfigDumpCommand(stdio),
		newConfigMachineDeploymentsCommand(stdio), newConfigSchemaCommand(stdio))
	return cmd
}

func newConfigSchemaCommand(stdio IO) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of manifests",
		Long: "Print the JSON Schema (draft 7) of manifests. Editors use it to complete fields, show their\n" +
			"descriptions and mark errors. For the YAML language server, begin the manifest with this line:\n\n" +
			"  # yaml-language-server: $schema=kubeone.schema.json",
		Example: "  kubeone config schema > kubeone.schema.json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := io.WriteString(stdio.Out, v1beta2.Schema())
			return err
		},
	}
}

func newConfigDumpCommand(stdio IO) *cobra.Command {
	f := &clusterFlags{}
	var output string
	dump := &cobra.Command{
		Use:   "dump [MANIFEST]",
		Short: "Print the effective manifest without secrets",
		Long: "Print the manifest with its defaults and the Terraform output, without secrets. Warnings and\n" +
			"unsupported fields are printed to standard error. The command does not connect to any host.",
		Example: "  kubeone config dump -m kubeone.yaml -t tf.json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			loaded, err := f.loadManifest(cmd.Context(), stdio, args)
			if err != nil {
				return err
			}
			printWarnings(stdio, loaded)
			if output == formatYAML {
				_, err = stdio.Out.Write(loaded.ManifestText)
				return err
			}
			return printResult(stdio.Out, output,
				func() ([]byte, error) { return yaml.YAMLToJSON(loaded.ManifestText) }, nil)
		},
	}
	f.registerManifest(dump)
	objectFlag(dump, &output)
	return dump
}

func newConfigMachineDeploymentsCommand(stdio IO) *cobra.Command {
	f := &clusterFlags{}
	var output string
	cmd := &cobra.Command{
		Use:   "machinedeployments [MANIFEST]",
		Short: "Print dynamic workers as MachineDeployments",
		Long: "Print a MachineDeployment for each entry of dynamicWorkers in the manifest and of kubeone_workers in\n" +
			"the Terraform output. If cloudProvider is none, they use the ssh provider, which takes hosts from\n" +
			"the pool.",
		Example: "  kubeone config machinedeployments -m kubeone.yaml -t tf.json | kubectl apply -f -",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			loaded, err := f.loadManifest(cmd.Context(), stdio, args)
			if err != nil {
				return err
			}
			printWarnings(stdio, loaded)
			if len(loaded.MachineDeployments) == 0 {
				_, _ = fmt.Fprintln(stdio.Err, "The manifest has no dynamicWorkers.")
			}
			return printObjects(stdio.Out, output, loaded.MachineDeployments)
		},
	}
	f.registerManifest(cmd)
	objectFlag(cmd, &output)
	return cmd
}

// printObjects prints objects as a stream of YAML documents. In the other formats, several objects are a List.
func printObjects(out io.Writer, output string, all []map[string]any) error {
	if output != formatYAML {
		var value any = map[string]any{"apiVersion": "v1", "kind": "List", "items": append([]map[string]any{}, all...)}
		if len(all) == 1 && all[0]["kind"] == v1beta2.Kind {
			value = all[0]
		}
		return printResult(out, output, jsonEncoder(value), nil)
	}
	for i, o := range all {
		text, err := yaml.Marshal(o)
		if err != nil {
			return err
		}
		if i > 0 {
			_, _ = fmt.Fprintln(out, "---")
		}
		if _, err := out.Write(text); err != nil {
			return err
		}
	}
	return nil
}

// newConfigValidateCommand returns "kubeone config validate".
func newConfigValidateCommand(stdio IO) *cobra.Command {
	f := &clusterFlags{}
	var output string
	cmd := &cobra.Command{
		Use:   "validate [MANIFEST]",
		Short: "Check a manifest without connecting to hosts",
		Long: "Check the manifest and the Terraform output without connecting to any host. Errors, warnings and\n" +
			"unsupported fields are printed with their line numbers.\n\n" +
			"Exit status: 0 if the manifest is valid, 4 if it is valid but sets unsupported fields, 15 if it is not\n" +
			"valid.",
		Example: "  kubeone config validate -m kubeone.yaml -t tf.json\n" +
			"  kubeone config validate -o json --allow-unsupported kubeone.yaml",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			loaded, err := f.loadManifest(cmd.Context(), stdio, args)
			var problems *manifest.Problems
			if err != nil && !errors.As(err, &problems) {
				return err
			}
			found := slices.Concat(loaded.Warnings, loaded.Notes)
			if problems != nil {
				found = problems.List
			}
			return f.printValidation(stdio, found, output)
		},
	}
	f.registerManifest(cmd)
	f.registerUnsupported(cmd)
	outputFlag(cmd, &output)
	return cmd
}

// printValidation prints the problems. It returns nil if the manifest is valid, otherwise the exit status as an error.
func (f *clusterFlags) printValidation(stdio IO, found []manifest.Problem, output string) error {
	status := 0
	switch {
	case manifest.HasErrors(found):
		status = view.ExitConfig
	case !f.allowUnsupported && slices.ContainsFunc(found, func(p manifest.Problem) bool {
		return p.Severity == manifest.Note
	}):
		status = view.ExitExcept
	}
	err := printResult(stdio.Out, output,
		func() ([]byte, error) { return view.ManifestJSON(found, status) },
		func(out io.Writer) error { view.Manifest(out, f.manifest, found); return nil })
	if err != nil {
		return err
	}
	if status != 0 {
		return &statusError{status}
	}
	return nil
}

// printWarnings prints warnings and unsupported fields in the manifest to standard error.
func printWarnings(stdio IO, loaded manifest.Loaded) {
	for _, p := range slices.Concat(loaded.Warnings, loaded.Notes) {
		_, _ = fmt.Fprintln(stdio.Err, p)
	}
}

// loadManifest loads the manifest that the first argument or the flags name.
func (f *clusterFlags) loadManifest(ctx context.Context, stdio IO, args []string) (manifest.Loaded, error) {
	if len(args) > 0 {
		f.manifest = args[0]
	}
	return manifest.Load(ctx,
		manifest.Options{
			ManifestPath: f.manifest, TerraformPath: f.terraform, CredentialsPath: f.credentials, Stdin: stdio.In,
			ReadAddons: true,
		})
}
