package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpWidth is the width of flag lists, in columns.
const helpWidth = 100

// flagGroup is the annotation that names the heading for a flag in the help.
const flagGroup = "kubeone_group"

// Headings for flags, in the order of the help. Flags without the annotation appear under commandFlags.
const (
	commandFlags  = "Flags"
	upgradeGroup  = "Upgrade flags"
	runGroup      = "Run flags"
	downloadGroup = "Binary and image flags"
	clusterGroup  = "Cluster flags"
)

func flagGroups() []string {
	return []string{commandFlags, upgradeGroup, runGroup, downloadGroup, clusterGroup}
}

// groupFlags calls register and puts the flags that register adds under a heading.
func groupFlags(cmd *cobra.Command, heading string, register func()) {
	existing := map[string]bool{}
	cmd.Flags().VisitAll(func(f *pflag.Flag) { existing[f.Name] = true })
	register()
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !existing[f.Name] && f.Annotations[flagGroup] == nil {
			if f.Annotations == nil {
				f.Annotations = map[string][]string{}
			}
			f.Annotations[flagGroup] = []string{heading}
		}
	})
}

// writeUsage writes the help below the description of a command.
func writeUsage(cmd *cobra.Command) error {
	var b strings.Builder
	b.WriteString("Usage:\n")
	if cmd.Runnable() && isRunnable(cmd) {
		fmt.Fprintf(&b, "  %s\n", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "  %s COMMAND\n", cmd.CommandPath())
	}
	if len(cmd.Aliases) > 0 {
		fmt.Fprintf(&b, "\nAliases: %s\n", cmd.NameAndAliases())
	}
	if cmd.HasExample() {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", cmd.Example)
	}
	writeCommands(&b, cmd)
	writeFlags(&b, cmd)
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\nUse \"%s COMMAND --help\" for more information about a command.\n", cmd.CommandPath())
	}
	_, err := fmt.Fprint(cmd.OutOrStderr(), b.String())
	return err
}

// isRunnable reports whether a command can be run without a subcommand.
func isRunnable(cmd *cobra.Command) bool { return !cmd.HasSubCommands() || cmd.Use != cmd.Name() }

// writeCommands lists the subcommands under the headings of their groups.
func writeCommands(b *strings.Builder, cmd *cobra.Command) {
	list := func(heading, group string) {
		hasHeading := false
		for _, sub := range cmd.Commands() {
			if sub.GroupID != group || !sub.IsAvailableCommand() && sub.Name() != "help" {
				continue
			}
			if !hasHeading {
				fmt.Fprintf(b, "\n%s:\n", heading)
				hasHeading = true
			}
			fmt.Fprintf(b, "  %-*s  %s\n", sub.NamePadding(), sub.Name(), sub.Short)
		}
	}
	for _, group := range cmd.Groups() {
		list(group.Title, group.ID)
	}
	list("Commands", "")
}

// writeFlags lists the flags under their headings.
func writeFlags(b *strings.Builder, cmd *cobra.Command) {
	for _, heading := range flagGroups() {
		set := pflag.NewFlagSet(heading, pflag.ContinueOnError)
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			group := commandFlags
			if headings := f.Annotations[flagGroup]; len(headings) > 0 {
				group = headings[0]
			}
			if group == heading {
				set.AddFlag(f)
			}
		})
		if set.HasAvailableFlags() {
			fmt.Fprintf(b, "\n%s:\n%s", heading, set.FlagUsagesWrapped(helpWidth))
		}
	}
}
