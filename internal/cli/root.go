// Package cli implements the commands of kubeone, each in a file of the same name. A command parses flags, makes a
// call, and prints the result. It prints results to standard output and progress to standard error. The exit status
// depends on the class of the failure (exit.go).
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"kubeone/internal/view"
)

// IO is the environment of the program: its streams, environment variables and signals.
type IO struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
	// Interactive reports whether the program can ask the operator questions.
	Interactive func() bool
	// Interrupts delivers a value for each Ctrl-C. If nil, the program handles the signals of its process.
	Interrupts <-chan os.Signal
}

// OS returns the IO of this process.
func OS() IO {
	return IO{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv,
		Interactive: func() bool {
			return term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stderr.Fd()))
		},
	}
}

// Main runs the program with the command-line arguments args, without the program name, and returns its exit status.
func Main(ctx context.Context, args []string, stdio IO) int {
	out := view.NewTerminal(stdio.Out)
	stdio.Out, stdio.Err = out, view.NewTerminal(stdio.Err)
	root := newRoot(stdio)
	begun := false
	markBegun(root, &begun)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	if !begun {
		err = &usageError{err, cmd.CommandPath()}
	}
	var explained *statusError
	if !errors.As(err, &explained) {
		printError(stdio.Err, err)
		printFailure(out, cmd, err)
	}
	return exitStatus(err)
}

func newRoot(stdio IO) *cobra.Command {
	root := &cobra.Command{
		Use:   "kubeone",
		Short: "Install and maintain Kubernetes clusters on Linux hosts",
		Long: "kubeone turns Linux hosts into a production Kubernetes cluster and maintains it. It compares the\n" +
			"hosts with a manifest, shows a plan, and carries it out.\n\n" +
			"Quick start:\n" +
			"  kubeone config print > kubeone.yaml     # an example manifest: enter the addresses of your hosts\n" +
			"  kubeone plan                            # shows what would change; changes nothing\n" +
			"  kubeone apply                           # shows the same plan, asks, and carries it out\n\n" +
			"Exit status: 0 if everything is done or there is nothing to do; 2 if there are changes (plan); 3 if\n" +
			"something is not healthy (status); 4 if there is nothing to do, but the cluster differs from the\n" +
			"manifest. Errors: 10 runtime, 11 etcd, 12 Kubernetes API, 13 SSH, 14 connection, 15 configuration,\n" +
			"16 a command on a host failed, 130 interrupted, 1 other.",
		Version:       Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          refuseUnknownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SuggestionsMinimumDistance = 2
	root.SetIn(stdio.In)
	root.SetOut(stdio.Out)
	root.SetErr(stdio.Err)
	addGroup(root, "cluster", "Cluster lifecycle",
		newPlanCommand(stdio), newApplyCommand(stdio, applyVariant), newApplyCommand(stdio, installVariant),
		newApplyCommand(stdio, upgradeVariant), newStatusCommand(stdio), newHistoryCommand(stdio),
		newAddonsCommand(stdio), newCertificatesCommand(stdio), newKubeconfigCommand(stdio), newAdoptCommand(stdio),
		newResetCommand(stdio))
	addGroup(root, "disaster", "Hosts, backups and recovery",
		newNodeCommand(stdio), newBackupCommand(stdio), newEtcdCommand(stdio), newRecoverCommand(stdio),
		newSupportCommand(stdio))
	addGroup(root, "machines", "Machines", newHostCommand(stdio), newControllerCommand(stdio))
	addGroup(root, "tools", "Tools",
		newConfigCommand(stdio), newExportCommand(stdio), newDiffCommand(stdio),
		newBundleCommand(stdio.In, stdio.Out, stdio.Err), newFSMCommand(stdio), newVersionCommand(stdio))
	root.SetHelpCommandGroupID("tools")
	root.SetCompletionCommandGroupID("tools")
	root.SetUsageFunc(writeUsage)
	root.Flags().Bool("version", false, "print the version")
	root.SetVersionTemplate(newVersionInfo().String() + "\n")
	root.SetGlobalNormalizationFunc(normalizeFlag)
	root.SetFlagErrorFunc(explainUpstreamFlag)
	refuseUpstreamCommands(root)
	return root
}

// addGroup adds commands under a heading.
func addGroup(root *cobra.Command, id, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: id, Title: title})
	for _, cmd := range commands {
		cmd.GroupID = id
	}
	root.AddCommand(commands...)
}

// normalizeFlag makes --limit an alias for --host.
func normalizeFlag(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if name == "limit" {
		name = "host"
	}
	return pflag.NormalizedName(name)
}

// markBegun makes the command and its subcommands set begun when they start to run. If a command fails before that, the
// failure is a mistake in the command line.
func markBegun(cmd *cobra.Command, begun *bool) {
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			*begun = true
			return run(cmd, args)
		}
	}
	for _, sub := range cmd.Commands() {
		markBegun(sub, begun)
	}
}

// refuseUnknownCommand returns an error if there is an argument, because it is not a subcommand. The error suggests
// similar subcommands.
func refuseUnknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("unknown command %q", cmd.CommandPath()+" "+args[0])
	if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
		err = fmt.Errorf("%w (did you mean %s?)", err, strings.Join(similar, " or "))
	}
	return err
}
