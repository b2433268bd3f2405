package cli

import (
	"context"
	"errors"
	"fmt"
	"kubeone/internal/view"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/version"

	"kubeone/internal/decide"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/host"
	"kubeone/internal/workspace"
)

// upgradeFlags holds the flags that override the upgrade section in the manifest for one run, and those for
// intermediate versions.
type upgradeFlags struct {
	selector       string
	through        []string
	options        decide.Options
	version        string // intermediate version; "" means the version in the manifest
	maxUnavailable string
	maxParallel    int
	noCanary       bool
	drainTimeout   time.Duration
	onTimeout      string
	changed        func(flag string) bool // reports whether a flag was given; nil means that none was
}

func (f *upgradeFlags) registerFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.changed = flags.Changed
	flags.StringVarP(&f.selector, "selector", "l", "",
		"act only on hosts whose Node labels match `SELECTOR`; without a Node, the labels in the manifest are used")
	flags.StringArrayVar(&f.through, "through", nil,
		"intermediate `VERSION` to upgrade to first; repeat the flag for each minor version in between")
	flags.BoolVar(&f.options.DiscardEdits, "discard-edits", false,
		"overwrite manual edits of static pod manifests on control-plane hosts")
	flags.StringVar(&f.maxUnavailable, "max-unavailable", "",
		"maximum `NUMBER` or percentage of unavailable workers (default: upgrade.maxUnavailable)")
	flags.IntVar(&f.maxParallel, "max-parallel", 0,
		"maximum `NUMBER` of workers to upgrade at a time (default: upgrade.maxParallel)")
	flags.BoolVar(&f.noCanary, "no-canary", false, "do not upgrade a single worker first (overrides upgrade.canary)")
	flags.DurationVar(&f.drainTimeout, "drain-timeout", 0,
		"maximum `DURATION` for draining a node, such as 5m (default: upgrade.drain.timeout)")
	flags.StringVar(&f.onTimeout, "on-drain-timeout", "",
		"`ACTION` if draining times out: stop, skip or force (default: upgrade.drain.onTimeout)")
	completeFlag(cmd, "on-drain-timeout", "stop", "skip", "force")
}

// upgradeOptions returns the settings given on the command line. The manifest decides the other settings.
func (f *upgradeFlags) upgradeOptions() workspace.UpgradeOptions {
	o := workspace.UpgradeOptions{MaxUnavailable: f.maxUnavailable, OnTimeout: f.onTimeout}
	if f.changed == nil {
		return o
	}
	if f.changed("max-parallel") {
		o.MaxParallel = &f.maxParallel
	}
	if f.changed("no-canary") {
		canary := !f.noCanary
		o.Canary = &canary
	}
	if f.changed("drain-timeout") {
		o.DrainTimeout = &f.drainTimeout
	}
	return o
}

// errNoUpgrade means that the plan does not include an upgrade to an intermediate version: the cluster is already past
// that version, or is not ready for an upgrade.
var errNoUpgrade = errors.New("no upgrade to the intermediate version")

// upgradeThrough upgrades to each version in --through that the cluster has not reached yet, each with its own plan. If
// ended is true, the command must end with err: an upgrade failed or stopped, or a dry run has shown the first plan.
func (f *applyFlags) upgradeThrough(
	ctx context.Context, stdio IO, as variant, args []string,
) (ended bool, err error) {
	if len(f.through) > 0 && f.plan != "" {
		return true, &classError{view.ExitConfig,
			errors.New("--plan and --through cannot be combined: each version of --through has its own plan")}
	}
	if err := f.checkThrough(); err != nil {
		return true, err
	}
	for _, version := range f.through {
		stage := *f
		stage.version, stage.through = version, nil
		err := stage.withIntermediateVersion(ctx, stdio, args, func(w *workspace.Workspace) error {
			return stage.runUntilStable(stdio, func() error { return stage.proposeAndCarryOut(ctx, stdio, w, as) })
		})
		var status *statusError
		switch {
		case errors.As(err, &status) && !f.dryRun:
			_, _ = fmt.Fprintf(stdio.Err,
				"The upgrade stopped at %s. Fix the problems listed above and run the command again.\n", version)
			return true, err
		case err != nil && !errors.Is(err, errNoUpgrade):
			return true, err
		case err == nil && f.dryRun:
			return true, nil
		}
	}
	return false, nil
}

// checkThrough returns an error if a value of --through is not a version.
func (f *upgradeFlags) checkThrough() error {
	for _, v := range f.through {
		if _, err := version.ParseSemantic(v); err != nil {
			return &classError{view.ExitConfig,
				fmt.Errorf("--through %q is not a version: use a patch release, such as 1.35.4", v)}
		}
	}
	return nil
}

// withIntermediateVersion opens the cluster and calls run if the plan includes an upgrade to f.version, possibly after
// a repair. Otherwise it returns errNoUpgrade.
func (f *clusterFlags) withIntermediateVersion(ctx context.Context, stdio IO, args []string,
	run func(*workspace.Workspace) error) error {
	w, err := f.openCluster(ctx, stdio, args, host.PolicyProbe)
	if err != nil {
		return err
	}
	defer w.Close()
	r, err := f.applyRequest(w)
	if err != nil {
		return err
	}
	p, err := w.Engine.Propose(ctx, r)
	if err != nil {
		return err
	}
	if !slices.Contains(p.Plan.Routes, string(fsm.Upgrade)) {
		return errNoUpgrade
	}
	_, _ = fmt.Fprintf(stdio.Err, "Intermediate version: Kubernetes %s.\n", f.version)
	return run(w)
}
