package cli

import (
	"cmp"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"kubeone/internal/manifest"
)

// completeFlag registers values for shell completion. After a value that ends in =, the shell adds no space.
func completeFlag(cmd *cobra.Command, flag string, values ...string) {
	complete := func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return values, cobra.ShellCompDirectiveNoFileComp
	}
	for _, value := range values {
		if strings.HasSuffix(value, "=") {
			complete = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
				return values, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
			}
		}
	}
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err) // the flag is defined by the caller
	}
}

// completeHosts returns the names of the manifest's hosts, or none if the manifest cannot be loaded. It reads files
// only and connects to no host.
func (f *clusterFlags) completeHosts(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp
	o := manifest.Options{ManifestPath: f.manifest}
	// With a directory, Terraform would run; standard input belongs to the shell.
	if at, err := os.Stat(f.terraform); err == nil && at.Mode().IsRegular() {
		o.TerraformPath = f.terraform
	}
	if f.manifest == "-" {
		return nil, directive
	}
	loaded, err := manifest.Load(cmd.Context(), o)
	if err != nil {
		return nil, directive
	}
	var names []string
	for _, h := range loaded.Cluster.Hosts() {
		names = append(names, cmp.Or(h.Hostname, h.PublicAddress, h.ID))
	}
	return names, directive
}

// completeHostFlag completes host names for a flag.
func (f *clusterFlags) completeHostFlag(cmd *cobra.Command, flag string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f.completeHosts); err != nil {
		panic(err) // the flag is defined by the caller
	}
}
