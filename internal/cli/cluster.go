package cli

import (
	"context"
	"errors"
	"fmt"
	"kubeone/internal/view"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/labels"

	"kubeone/internal/engine"
	"kubeone/internal/host"
	"kubeone/internal/workspace"
)

// clusterFlags holds the flags that select a cluster and the connection to it.
type clusterFlags struct {
	manifest, terraform string
	credentials         string
	caFile              string
	artifacts           artifactFlags
	limit               []string
	acceptHostKeys      []string
	parallel            int
	strict              bool
	verbose             bool
	diff                bool
	allowUnsupported    bool
	withMachines        bool
	upgradeFlags
}

// registerManifest adds the flags of commands that read a manifest, whether or not they connect to hosts.
func (f *clusterFlags) registerManifest(cmd *cobra.Command) {
	groupFlags(cmd, clusterGroup, func() {
		flags := cmd.Flags()
		usage := "manifest `FILE`, or - for standard input"
		if strings.Contains(cmd.Use, "[MANIFEST]") {
			usage += "; can also be given as the MANIFEST argument"
		}
		flags.StringVarP(&f.manifest, "manifest", "m", "./kubeone.yaml", usage)
		flags.StringVarP(&f.terraform, "tfjson", "t", "",
			"`PATH` of Terraform or OpenTofu output: a file, a directory, or - for standard input")
		flags.StringVarP(&f.credentials, "credentials", "c", "",
			"YAML `FILE` with registry credentials, readable only by its owner; pass it in every run with the "+
				"same manifest")
		flags.BoolVarP(&f.verbose, "verbose", "v", false, "print more details")
	})
}

// registerFlags adds the flags of commands that connect to a cluster.
func (f *clusterFlags) registerFlags(cmd *cobra.Command) {
	f.registerManifest(cmd)
	groupFlags(cmd, clusterGroup, func() {
		flags := cmd.Flags()
		flags.StringVar(&f.caFile, "ca-file", "",
			"PEM `FILE` with the cluster CA to trust on the first connection from this machine")
		flags.BoolVar(&f.strict, "strict-host-keys", false, "do not connect to hosts with unknown SSH host keys")
		flags.StringArrayVar(&f.acceptHostKeys, strings.TrimPrefix(host.AcceptFlag, "--"), nil,
			"trust the changed SSH host key of `HOST`; HOST=SHA256:... trusts only that key; can be repeated")
	})
}

// registerPlan adds the flags that affect what a plan contains.
func (f *clusterFlags) registerPlan(cmd *cobra.Command) {
	f.artifacts.registerFlags(cmd)
	flags := cmd.Flags()
	flags.StringSliceVar(&f.limit, "host", nil,
		"`HOST` to act on, by name or address; can be repeated (default: all hosts)")
	f.completeHostFlag(cmd, "host")
	parallelFlag(cmd, &f.parallel)
	flags.BoolVar(&f.withMachines, "with-machines", false,
		"run the Machine controllers in the cluster, as machineController.deploy in the manifest does")
	flags.BoolVar(&f.options.UpgradeMachines, "upgrade-machine-deployments", false,
		"after the control plane, upgrade all MachineDeployments to the version in the manifest")
	groupFlags(cmd, upgradeGroup, func() { f.upgradeFlags.registerFlags(cmd) })
}

func (f *clusterFlags) registerDiff(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.diff, "diff", false,
		"also show the lines that will change in files and objects")
}

func (f *clusterFlags) registerNames(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.options.DropNames, "drop-old-names", false,
		"drop names from the API server certificates that are unused and not in the manifest")
}

func (f *clusterFlags) registerRotation(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.options.RotateKey, "rotate-encryption-key", false,
		"encrypt Secrets with a new key, or continue an unfinished key rotation")
}

func (f *clusterFlags) registerUnsupported(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.allowUnsupported, "allow-unsupported", false,
		"exit with status 0 instead of 4 if the manifest sets unsupported fields")
}

// openCluster opens the cluster in the manifest that the first argument or the flags name, and prints warnings. unknown
// is the policy for unknown SSH host keys; --strict-host-keys overrides it. The caller must close the workspace.
func (f *clusterFlags) openCluster(ctx context.Context, stdio IO, args []string,
	unknown host.Policy) (*workspace.Workspace, error) {
	if len(args) > 0 {
		f.manifest = args[0]
	}
	if f.strict {
		unknown = host.PolicyStrict
	}
	w, err := workspace.Open(ctx, workspace.Options{
		Manifest: f.manifest, Terraform: f.terraform, Stdin: stdio.In, NewHosts: unknown,
		Bundles: f.artifacts.bundles, BundleSHA256: f.artifacts.sums, Digests: f.artifacts.digests,
		TrustSource: f.artifacts.trust, InsecureMirror: f.artifacts.insecure,
		Parallel: f.parallel, Passphrase: askPassphrase(stdio), Version: f.version, Upgrade: f.upgradeOptions(),
		Credentials: f.credentials, CAFile: f.caFile, AcceptHostKeys: f.acceptHostKeys, WithMachines: f.withMachines,
		Warn: func(message string) { _, _ = fmt.Fprintf(stdio.Err, "warning: %s\n", message) },
	})
	if err != nil {
		return nil, err
	}
	for _, warning := range w.Warnings() {
		_, _ = fmt.Fprintf(stdio.Err, "warning: %v\n", warning)
	}
	return w, nil
}

// applyRequest returns the request to the engine with the options, hosts and selector from the flags.
func (f *clusterFlags) applyRequest(w *workspace.Workspace) (engine.Apply, error) {
	r := engine.Apply{Options: f.options}
	if r.RotateKey && !w.Engine.Want().EncryptSecrets {
		return r, &classError{view.ExitConfig,
			errors.New("--rotate-encryption-key: Secrets are not encrypted; enable features.encryptionProviders " +
				"in the manifest")}
	}
	ids, err := w.HostIDs("--host", f.limit...)
	if err != nil {
		return r, err
	}
	if len(ids) > 0 {
		r.Limit = map[string]bool{}
	}
	for _, id := range ids {
		r.Limit[id] = true
	}
	if f.selector == "" {
		return r, nil
	}
	if r.Selector, err = labels.Parse(f.selector); err != nil {
		return r, &classError{view.ExitConfig, fmt.Errorf("--selector: %w", err)}
	}
	return r, nil
}

// askPassphrase returns a function that asks for the passphrase of a key file, or nil without a terminal.
func askPassphrase(stdio IO) func(string) ([]byte, error) {
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

// errNoTerminal means that a change needs confirmation and there is no terminal.
var errNoTerminal = errors.New("cannot ask for confirmation without a terminal; use --auto-approve (-y) in " +
	"scripts, or apply a saved plan with --plan")

// askYes asks the question on standard error and reports whether the answer is "yes". Without a terminal, it returns
// errNoTerminal.
func askYes(stdio IO, question string) (bool, error) {
	if !stdio.Interactive() {
		return false, &classError{view.ExitConfig, errNoTerminal}
	}
	_, _ = fmt.Fprintf(stdio.Err, "\n%s Only 'yes' is accepted: ", question)
	var answer strings.Builder
	one := make([]byte, 1) // do not read past the line: the input may hold further answers
	for {
		n, err := stdio.In.Read(one)
		if n == 0 && err != nil || one[0] == '\n' {
			break
		}
		answer.WriteByte(one[0])
	}
	return strings.TrimSpace(answer.String()) == "yes", nil //nolint:nilerr // if reading fails, the answer is not yes
}
