package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestHelpOfEveryCommand checks that every command has an example and a short description, and that flags name their
// value instead of its type.
func TestHelpOfEveryCommand(t *testing.T) {
	t.Parallel()
	types := []string{"string", "strings", "stringArray", "stringSlice", "int", "duration", "value"}
	walk(program(), func(cmd *cobra.Command) {
		path := cmd.CommandPath()
		if cmd.Name() == "help" || cmd.Parent().Name() == "completion" {
			return // cobra's own
		}
		if !strings.Contains(cmd.Example, path) {
			t.Errorf("%s has no example", path)
		}
		if words := len(strings.Fields(cmd.Short)); words > 8 || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: its line has %d words: %s", path, words, cmd.Short)
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if name, usage := pflag.UnquoteUsage(f); slices.Contains(types, name) || len(usage) > 110 {
				t.Errorf("%s --%s takes %q: %s", path, f.Name, name, usage)
			}
		})
	})
}

func TestFlagsAreInAGroupThatIsShown(t *testing.T) {
	t.Parallel()
	walk(program(), func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if of := f.Annotations[flagGroup]; of != nil && !slices.Contains(flagGroups(), of[0]) {
				t.Errorf("%s --%s is in the group %q, which no help shows", cmd.CommandPath(), f.Name, of[0])
			}
		})
	})
}
