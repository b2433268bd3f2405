// Package cli is the program's commands, each in a file of its name, and beside them what several share: flags in, a
// call, a result out. Standard output is the result, standard error the progress; the exit status tells the class of a
// failure (exit.go).
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

// IO is what the program reads and writes, and how it learns about its environment.
type IO struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
	// Interactive reports whether somebody can answer a question.
	Interactive func() bool
	// Interrupts delivers the operator's Ctrl-C; nil means the process's signals.
	Interrupts <-chan os.Signal
}

// OS is the IO of this process.
func OS() IO {
	return IO{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv,
		Interactive: func() bool {
			return term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stderr.Fd()))
		},
	}
}

// Main runs the program and returns its exit status.
func Main(ctx context.Context, args []string, stdio IO) int {
	stdio.Out, stdio.Err = view.NewTerminal(stdio.Out), view.NewTerminal(stdio.Err)
	root := newRoot(stdio)
	begun := false
	notice(root, &begun)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	if !begun {
		err = &usageError{err, cmd.CommandPath()}
	}
	var silent *statusError
	if !errors.As(err, &silent) {
		printError(stdio.Err, err)
		printProblems(stdio.Out, cmd, err)
	}
	return exitStatus(err)
}

func newRoot(stdio IO) *cobra.Command {
	root := &cobra.Command{
		Use:   "kubeone",
		Short: "Bare Linux hosts to a production Kubernetes cluster, kept right for its whole life",
		Long: "kubeone looks at what is, shows a plan, and makes the cluster what its manifest says.\n\n" +
			"Exit status: 0 done or nothing to do; plan: 2 changes; status: 3 not healthy; 10 runtime, 11 etcd,\n" +
			"12 Kubernetes API, 13 SSH, 14 connection, 15 configuration, 16 a command on a host, 130 interrupted,\n" +
			"1 anything else.",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          subcommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SuggestionsMinimumDistance = 2
	root.SetIn(stdio.In)
	root.SetOut(stdio.Out)
	root.SetErr(stdio.Err)
	root.AddCommand(
		newPlanCommand(stdio), newApplyCommand(stdio, applyVariant), newApplyCommand(stdio, installVariant),
		newApplyCommand(stdio, upgradeVariant),
		newStatusCommand(stdio), newHistoryCommand(stdio), newSupportCommand(stdio), newResetCommand(stdio),
		newRecoverCommand(stdio), newNodeCommand(stdio), newHostCommand(stdio), newControllerCommand(stdio),
		newEtcdCommand(stdio), newCertificatesCommand(stdio), newBackupCommand(stdio),
		newKubeconfigCommand(stdio), newConfigCommand(stdio), newBundleCommand(stdio.Out, stdio.Err),
		newFSMCommand(stdio), newVersionCommand(stdio),
	)
	root.SetGlobalNormalizationFunc(normalFlag)
	return root
}

// normalFlag has every command that knows --host know it as --limit too.
func normalFlag(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if name == "limit" {
		name = "host"
	}
	return pflag.NormalizedName(name)
}

// notice sets begun when a command's own work begins; whatever fails before that is a mistake in the command line.
func notice(cmd *cobra.Command, begun *bool) {
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			*begun = true
			return run(cmd, args)
		}
	}
	for _, sub := range cmd.Commands() {
		notice(sub, begun)
	}
}

// subcommand refuses the name of a command that does not exist, with those that may have been meant.
func subcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("there is no command %q", cmd.CommandPath()+" "+args[0])
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		err = fmt.Errorf("%w (did you mean %s?)", err, strings.Join(near, " or "))
	}
	return err
}
