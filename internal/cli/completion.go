package cli

import (
	"strings"

	"github.com/spf13/cobra"
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
