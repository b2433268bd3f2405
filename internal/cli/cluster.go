package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"os"

	"kubeone/internal/engine"
	"kubeone/internal/host"
)

// clusterFlags say which cluster a command is about, and how it is reached.
type clusterFlags struct {
	manifest, terraform string
	bundles             []string
	limit               []string
	parallel            int
	strict              bool
	verbose             bool
	forceUpgrade        bool
	lookOnly            bool // the command installs nothing
	upgradeFlags
}

func (f *clusterFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&f.manifest, "manifest", "m", "./kubeone.yaml", "the manifest; also the first argument")
	flags.StringVarP(&f.terraform, "tfjson", "t", "", "Terraform or OpenTofu output: a file, a directory, or - for standard input")
	flags.BoolVar(&f.strict, "strict-host-keys", false, "refuse hosts whose key is not known")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "say more")
}

func (f *clusterFlags) registerPlan(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&f.bundles, "bundle", nil, "install from this bundle; hosts then need nothing but SSH. Of several, each part comes from whichever has it")
	flags.StringSliceVar(&f.limit, "limit", nil, "act on these hosts only (names or addresses)")
	flags.IntVar(&f.parallel, "parallel", 32, "hosts worked on at a time")
	f.upgradeFlags.register(cmd)
}

// open loads the cluster that the flags and the first argument name.
func (f *clusterFlags) open(ctx context.Context, stdio IO, args []string, unknown host.Policy) (*engine.Engine, error) {
	if len(args) > 0 {
		f.manifest = args[0]
	}
	if f.strict {
		unknown = host.PolicyStrict
	}
	e, err := engine.Open(ctx, engine.Options{
		Manifest: f.manifest, Terraform: f.terraform, Stdin: stdio.In, Bundles: f.bundles, NewHosts: unknown, Limit: f.limit,
		Parallel: f.parallel, ForceUpgrade: f.forceUpgrade, LookOnly: f.lookOnly, Passphrase: passphrase(stdio),
		Selector: f.selector, Version: f.version, Upgrade: f.upgrade(),
		Warn: func(message string) { _, _ = fmt.Fprintf(stdio.Err, "warning: %s\n", message) },
	})
	if err != nil {
		return nil, err
	}
	for _, w := range e.Warnings() {
		_, _ = fmt.Fprintf(stdio.Err, "warning: %v\n", w)
	}
	return e, nil
}

// passphrase asks on the terminal; nil when nobody can be asked.
func passphrase(stdio IO) func(string) ([]byte, error) {
	if !stdio.Interactive() {
		return nil
	}
	return func(keyFile string) ([]byte, error) {
		_, _ = fmt.Fprintf(stdio.Err, "Passphrase of %s: ", keyFile)
		answer, err := term.ReadPassword(int(os.Stdin.Fd()))
		_, _ = fmt.Fprintln(stdio.Err)
		return answer, err
	}
}

// errNobodyToAsk means that a change needs a yes and nobody can say it.
var errNobodyToAsk = errors.New("nobody can confirm this plan: there is no terminal; use --auto-approve (-y) in scripts, or apply a saved plan with --plan")

// confirm asks the question on standard error; only "yes" is yes.
func confirm(stdio IO, question string) (bool, error) {
	if !stdio.Interactive() {
		return false, &classError{exitConfig, errNobodyToAsk}
	}
	_, _ = fmt.Fprintf(stdio.Err, "\n%s Only 'yes' is accepted: ", question)
	var answer strings.Builder
	one := make([]byte, 1)
	for {
		n, err := stdio.In.Read(one)
		if n == 0 && err != nil || one[0] == '\n' {
			break
		}
		answer.WriteByte(one[0])
	}
	return strings.TrimSpace(answer.String()) == "yes", nil //nolint:nilerr // an answer that ends early is no yes
}
