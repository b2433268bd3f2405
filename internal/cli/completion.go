package cli

import (
	"cmp"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"kubeone/internal/manifest"
)

// completeFlag has shells complete a flag's value. After one that ends in = the rest is the operator's.
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

// completeHosts returns the names of the manifest's hosts. It reads files and connects to no host; where that is not
// possible, it returns none.
func (f *clusterFlags) completeHosts(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp
	o := manifest.Options{ManifestPath: f.manifest}
	// A directory would have Terraform run, and standard input is the shell's.
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

// completeHostFlag has shells complete the names of hosts.
func (f *clusterFlags) completeHostFlag(cmd *cobra.Command, flag string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f.completeHosts); err != nil {
		panic(err) // the flag is defined by the caller
	}
}
