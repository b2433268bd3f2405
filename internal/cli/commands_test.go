package cli

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// program returns the command tree, including the commands that cobra adds.
func program() *cobra.Command {
	root := newRoot(IO{})
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	return root
}

// walk calls visit for every command that does something itself.
func walk(cmd *cobra.Command, visit func(*cobra.Command)) {
	if cmd.HasParent() && isRunnable(cmd) {
		visit(cmd)
	}
	for _, below := range cmd.Commands() {
		walk(below, visit)
	}
}

// option identifies a flag. Flags with the same help on several commands are one option.
func option(f *pflag.Flag) string { return "--" + f.Name + ": " + f.Usage }

// TestEveryCommandAndFlagIsRun checks that a test uses every command, alias and flag in a run that succeeds. Dialogues
// in testdata/script and scenarios below test/ count. -v prints them.
func TestEveryCommandAndFlagIsRun(t *testing.T) {
	t.Parallel()
	root := program()
	runs := map[string]map[string]bool{} // by whom a command path, or an option of any command, is run
	ran := func(what, where string) {
		if runs[what] == nil {
			runs[what] = map[string]bool{}
		}
		runs[what][where] = true
	}
	for _, u := range append(usesOfDialogues(t), usesOfScenarios(t, root)...) {
		cmd, flags, err := u.resolve(root)
		if err != nil || u.refused || slices.Contains(u.args, "--help") {
			continue // dialogues run what does not exist, too
		}
		ran(cmd.CommandPath(), u.where)
		for _, arg := range u.args {
			if cmd.HasAlias(arg) {
				ran(cmd.CommandPath()+", as "+arg, u.where)
			}
		}
		for _, f := range flags {
			ran(option(f), u.where)
			ran(cmd.CommandPath()+" --"+f.Name, u.where)
		}
	}
	walk(root, func(cmd *cobra.Command) {
		path := cmd.CommandPath()
		need := func(what, shared string) {
			t.Logf("%s\t%s", what, strings.Join(slices.Sorted(maps.Keys(runs[what])), " "))
			if len(runs[what]) == 0 && len(runs[shared]) == 0 {
				t.Errorf("no test runs %s", what)
			}
		}
		need(path, path)
		for _, alias := range cmd.Aliases {
			need(path+", as "+alias, "")
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" {
				need(path+" --"+f.Name, option(f))
			}
		})
	})
}

// TestWhatIsShownExists checks that documents, help and messages show only commands and flags that exist, and that
// docs/commands.md shows every command.
func TestWhatIsShownExists(t *testing.T) {
	t.Parallel()
	root := program()
	shown := map[string]bool{}
	for _, u := range usesOfDocuments(t) {
		cmd, _, err := u.resolve(root)
		if err != nil {
			t.Errorf("%s shows kubeone %s: %v", u.where, strings.Join(u.args, " "), err)
			continue
		}
		if u.where == "commands.md" {
			shown[cmd.CommandPath()] = true
		}
	}
	for _, u := range usesOfMessages(t, root) {
		if _, _, err := u.resolve(root); err != nil {
			t.Errorf("%s says kubeone %s: %v", u.where, strings.Join(u.args, " "), err)
		}
	}
	walk(root, func(cmd *cobra.Command) {
		if path := cmd.CommandPath(); !shown[path] && cmd.Name() != "help" && cmd.Parent().Name() != "completion" {
			t.Errorf("docs/commands.md does not show %s", path)
		}
	})
}
