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

// completeHosts returns the names of the hosts in the manifest, or none if the manifest cannot be loaded. It only reads
// files and does not connect to any host.
func (f *clusterFlags) completeHosts(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp
	o := manifest.Options{ManifestPath: f.manifest}
	// Use Terraform output from a file only: for a directory, Terraform would run, and the shell uses standard input.
	if info, err := os.Stat(f.terraform); err == nil && info.Mode().IsRegular() {
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

// completeHostFlag completes the value of a flag with the host names in the manifest.
func (f *clusterFlags) completeHostFlag(cmd *cobra.Command, flag string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f.completeHosts); err != nil {
		panic(err) // the flag is defined by the caller
	}
}
