// Package cli is the program's commands, one file each: flags in, a call, a result out. Standard output is the result,
// standard error the progress; the exit status tells the class of a failure (exit.go).
package cli

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// IO is what the program reads and writes, and how it learns about its surroundings.
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
	root := newRoot(stdio)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	var silent *statusError
	if !errors.As(err, &silent) {
		printError(stdio.Err, err)
	}
	return exitStatus(err)
}

func newRoot(stdio IO) *cobra.Command {
	root := &cobra.Command{
		Use:   "kubeone",
		Short: "Bare Linux hosts to a production Kubernetes cluster, kept right for its whole life",
		Long: "kubeone looks at what is, shows a plan, and makes the cluster what its manifest says.\n\n" +
			"Exit status: 0 done or nothing to do; plan: 2 changes; status: 3 not healthy; 10 runtime, 11 etcd, 12 Kubernetes API,\n" +
			"13 SSH, 14 connection, 15 configuration, 16 a command on a host, 130 interrupted, 1 anything else.",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(stdio.In)
	root.SetOut(stdio.Out)
	root.SetErr(stdio.Err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &usageError{err, cmd.CommandPath()}
	})
	root.AddCommand(
		newPlanCommand(stdio), newApplyCommand(stdio, applyFace), newApplyCommand(stdio, installFace), newApplyCommand(stdio, upgradeFace),
		newStatusCommand(stdio), newResetCommand(stdio), newKubeconfigCommand(stdio), newConfigCommand(stdio), newBundleCommand(stdio.Out, stdio.Err),
		newFSMCommand(stdio), newVersionCommand(stdio),
	)
	return root
}
