package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"kubeone/internal/apply"
	"kubeone/internal/cluster/apicall"
	"kubeone/internal/cluster/drain"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/engine"
	"kubeone/internal/etcd/backup"
	"kubeone/internal/host"
	"kubeone/internal/locks"
	"kubeone/internal/manifest"
	"kubeone/internal/release"
	"kubeone/internal/view"
)

// statusError ends the program with a status but without a message, because the output already explains the status.
type statusError struct{ status int }

// Error is used in logs only.
func (e *statusError) Error() string { return fmt.Sprintf("exit status %d", e.status) }

// classError is a failure with its own exit status.
type classError struct {
	status int
	err    error
}

// Error returns the text of the cause.
func (e *classError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *classError) Unwrap() error { return e.err }

// usageError is a mistake in the command line. Its text names the command whose help to read.
type usageError struct {
	err     error
	command string
}

// Error returns the mistake and the command that prints help.
func (e *usageError) Error() string {
	return fmt.Sprintf("%v; see %s --help", e.err, e.command)
}

// exitStatus returns the documented exit status of a failure.
func exitStatus(err error) int {
	var status *statusError
	var class *classError
	switch {
	case errors.As(err, &status):
		return status.status
	case errors.As(err, &class):
		return class.status
	case errors.Is(err, context.Canceled):
		return view.ExitInterrupted
	case isConfigError(err):
		return view.ExitConfig
	}
	return runtimeStatus(err)
}

func isConfigError(err error) bool {
	var problems *manifest.Problems
	var config *engine.ConfigError
	var usage *usageError
	return errors.As(err, &problems) || errors.As(err, &config) || errors.As(err, &usage)
}

// runtimeStatus returns the exit status of a failure while working with hosts, etcd or the API.
func runtimeStatus(err error) int {
	var kube *apicall.Error
	var unreachable *apicall.UnreachableError
	var held *locks.HeldError
	var taken *locks.TakenError
	var fetch *release.FetchError
	var chart *release.ChartError
	var busy *drain.BlockedError
	var blocked *engine.BlockedError
	var member *engine.EtcdError
	var etcd *apply.EtcdError
	var store *backup.StoreError
	var hook *apply.HookError
	switch {
	case errors.As(err, &blocked) && blocked.Route == fsm.DisasterRecovery:
		return view.ExitEtcd
	case errors.As(err, &held), errors.As(err, &blocked), errors.As(err, &taken), errors.As(err, &busy),
		errors.Is(err, engine.ErrWorldChanged):
		return view.ExitRuntime
	case errors.As(err, &member), errors.As(err, &etcd):
		return view.ExitEtcd
	case errors.As(err, &kube), errors.As(err, &unreachable):
		return view.ExitKube
	case errors.As(err, &fetch), errors.As(err, &chart), errors.As(err, &store):
		return view.ExitConnection
	case errors.As(err, &hook):
		return view.ExitExec
	}
	switch host.ClassOf(err) {
	case host.Unreachable, host.Lost:
		return view.ExitConnection
	case host.Auth, host.HostKey, host.Sudo:
		return view.ExitSSH
	case host.Config:
		return view.ExitConfig
	case host.Exit:
		return view.ExitExec
	}
	var step *apply.StepError
	if errors.As(err, &step) {
		return view.ExitRuntime
	}
	return view.ExitOther
}

// printFailure writes the failure as a document if the output format is JSON or YAML and nothing else was written. The
// document contains the problems in the manifest, or the error.
func printFailure(w *view.Terminal, cmd *cobra.Command, err error) {
	flag := cmd.Flags().Lookup("output")
	if flag == nil || !flag.Changed || w.Written() {
		return
	}
	output, ok := flag.Value.(*formatValue)
	if !ok || output.String() != formatJSON && output.String() != formatYAML {
		return
	}
	var problems *manifest.Problems
	_ = printResult(w, output.String(), func() ([]byte, error) {
		if errors.As(err, &problems) {
			return view.ManifestJSON(problems.List, exitStatus(err))
		}
		return view.FailureJSON(err, exitStatus(err))
	}, nil)
}

// printError prints the failure as text, after "error: ". Problems in a manifest already begin with their severity.
func printError(w io.Writer, err error) {
	var problems *manifest.Problems
	if errors.As(err, &problems) {
		_, _ = fmt.Fprintln(w, err)
		return
	}
	_, _ = fmt.Fprintf(w, "error: %v\n", err)
}
