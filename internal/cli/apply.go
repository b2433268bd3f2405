package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"kubeone/internal/decide/fsm"
	"kubeone/internal/engine"
	"kubeone/internal/host"
	"kubeone/internal/view"
	"kubeone/internal/workspace"
)

// applyFlags holds the flags of commands that carry out a plan.
type applyFlags struct {
	clusterFlags
	approve, dryRun, forceUnlock bool
	plan, output                 string
	logFile                      string
}

// variant describes one of the commands that run Apply.
type variant struct {
	use, short string
	aliases    []string
	routes     []fsm.Route // the routes that the command accepts; nil means all
	about      string
	example    string
}

var (
	applyVariant = variant{ //nolint:gochecknoglobals // constants
		use: "apply [MANIFEST]", short: "Install, repair or upgrade the cluster", aliases: []string{"up"},
		about: "Install, join, repair or upgrade hosts until the cluster matches its manifest. The command inspects\n" +
			"every host, the API and etcd, shows a plan, asks for confirmation, and carries the plan out. Hosts\n" +
			"that already match are not changed. To resume an interrupted run, run the command again.",
		example: "  kubeone apply -m kubeone.yaml\n" +
			"  kubeone apply -m kubeone.yaml -t tf.json --bundle kubernetes-1.36.3.tar --auto-approve\n" +
			"  kubeone apply --plan plan.json",
	}
	installVariant = variant{ //nolint:gochecknoglobals // constants
		use: "install [MANIFEST]", short: "Install a new cluster",
		routes: []fsm.Route{fsm.Install, fsm.Nothing, fsm.Error},
		about: "Do the same as apply, but only install a new cluster. If the cluster needs other changes, the\n" +
			"command fails and changes nothing. In most cases, use apply instead.",
		example: "  kubeone install -m kubeone.yaml\n" +
			"  kubeone install -m kubeone.yaml --bundle kubernetes-1.36.3.tar --auto-approve",
	}
	upgradeVariant = variant{ //nolint:gochecknoglobals // constants
		use: "upgrade [MANIFEST]", short: "Upgrade the Kubernetes version of the cluster",
		routes: []fsm.Route{fsm.Upgrade, fsm.Nothing, fsm.Error},
		about: "Do the same as apply, but only upgrade an existing cluster. If the cluster needs other changes, the\n" +
			"command fails and changes nothing. In most cases, use apply instead.",
		example: "  kubeone upgrade -m kubeone.yaml\n" +
			"  kubeone upgrade -m kubeone.yaml --max-unavailable 25% --on-drain-timeout skip",
	}
)

// newApplyCommand returns "kubeone apply", "install" or "upgrade".
func newApplyCommand(stdio IO, as variant) *cobra.Command {
	f := &applyFlags{}
	cmd := &cobra.Command{
		Use: as.use, Short: as.short, Aliases: as.aliases, Long: as.about,
		Example: as.example,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.applyCluster(cmd.Context(), stdio, as, args)
		},
	}
	f.registerFlags(cmd)
	f.registerPlan(cmd)
	f.registerDiff(cmd)
	flags := cmd.Flags()
	f.registerRun(cmd)
	f.registerUnsupported(cmd)
	flags.StringVar(&f.plan, "plan", "",
		"carry out the plan saved in `FILE` without confirmation, if it is still current")
	flags.BoolVar(&f.options.ForceUpgrade, "force-upgrade", false,
		"roll out the configuration again even if nothing has changed")
	f.registerNames(cmd)
	f.registerRotation(cmd)
	if as.use == upgradeVariant.use {
		flags.BoolVar(&f.options.ForceUpgrade, "force", false, "same as --force-upgrade")
	}
	return cmd
}

// applyCluster runs the upgrades of --through and then applies the manifest.
func (f *applyFlags) applyCluster(ctx context.Context, stdio IO, as variant, args []string) error {
	if ended, err := f.upgradeThrough(ctx, stdio, as, args); ended {
		return err
	}
	f.version = ""
	w, err := f.openCluster(ctx, stdio, args, f.unknownKeysPolicy())
	if err != nil {
		return err
	}
	defer w.Close()
	return f.runUntilStable(stdio, func() error { return f.proposeAndCarryOut(ctx, stdio, w, as) })
}

// unknownKeysPolicy returns what to do with unknown SSH host keys.
func (f *applyFlags) unknownKeysPolicy() host.Policy {
	if f.approve {
		return host.PolicyAcceptNew
	}
	return host.PolicyProbe
}

// runUntilStable calls run, and repeats it if the cluster changed under a plan that --auto-approve approved.
func (f *applyFlags) runUntilStable(stdio IO, run func() error) error {
	for attempt := 1; ; attempt++ {
		err := run()
		// --auto-approve also approves the plan for the changed cluster.
		if !errors.Is(err, engine.ErrWorldChanged) || !f.approve || f.plan != "" || attempt == maxPlans {
			return err
		}
		_, _ = fmt.Fprintln(stdio.Err, "The cluster changed after it was inspected; planning again.")
		// --force-unlock has already taken over the lock of a dead run. Any other lock belongs to a live run.
		f.forceUnlock = false
	}
}

// maxPlans is the maximum number of plans in one run with --auto-approve if the cluster keeps changing.
const maxPlans = 3

// proposeAndCarryOut shows a plan, asks for approval, and carries the plan out.
func (f *applyFlags) proposeAndCarryOut(ctx context.Context, stdio IO, w *workspace.Workspace, as variant) error {
	r, err := f.applyRequest(w)
	if err != nil {
		return err
	}
	r.Routes = as.routes
	p, err := proposeWhenIdle(ctx, stdio, w.Engine, r)
	if err != nil {
		return err
	}
	if err := f.showPlan(stdio, p, f.newDisplayOptions(ctx, w, p, formatText)); err != nil {
		return err
	}
	if f.onlyRecordsKeys(p) {
		return f.recordKeys(stdio, w, p)
	}
	if done, err := f.nothingToDo(p); done {
		if f.output == "json" && p.Matches() {
			return errors.Join(f.reportEnd(stdio, "No changes. "+view.Matched(p.Plan), nil), err)
		}
		return err
	}
	if yes, err := f.askApproval(stdio, p); err != nil || !yes {
		return err
	}
	after, err := f.carryOut(ctx, stdio, w, p)
	if err != nil {
		return err
	}
	return f.verifyResult(stdio, after)
}

// onlyRecordsKeys reports whether carrying out the plan would only record SSH host keys given with --accept-host-key.
func (f *applyFlags) onlyRecordsKeys(p engine.Proposal) bool {
	return len(f.acceptHostKeys) > 0 && len(p.Plan.FirstContacts) > 0 && p.Plan.Empty() && p.Refusal() == nil &&
		p.Decision().Route != fsm.Error && !f.dryRun
}

// recordKeys asks for approval of host keys and records them.
func (f *applyFlags) recordKeys(stdio IO, w *workspace.Workspace, p engine.Proposal) error {
	if yes, err := f.askApproval(stdio, p); err != nil || !yes {
		return err
	}
	if err := w.Engine.ApproveKeys(p); err != nil {
		return err
	}
	return f.planStatus(p)
}

// showPlan prints the plan to standard output, or to standard error if standard output carries the event stream.
func (f *applyFlags) showPlan(stdio IO, p engine.Proposal, as displayOptions) error {
	if f.output == "json" {
		stdio.Out = stdio.Err
	}
	return showProposal(stdio, p, as)
}

// nothingToDo reports whether there is nothing to carry out. If so, the error is the result of the command; nil means
// success.
func (f *applyFlags) nothingToDo(p engine.Proposal) (bool, error) {
	if p.Decision().Route == fsm.Error {
		return true, f.planStatus(p) // showPlan has already printed the problems
	}
	var unresolved *engine.UnresolvedError
	switch err := p.Refusal(); {
	case errors.As(err, &unresolved) && f.dryRun: // the plan command accepts this, too
	case err != nil:
		return true, err
	}
	switch {
	case p.Plan.Empty():
		return true, f.planStatus(p)
	case len(p.Plan.Steps) == 0:
		return true,
			&classError{view.ExitRuntime, errors.New("nothing to apply until you complete the steps listed above")}
	case f.dryRun:
		return true, &statusError{view.ExitChanges}
	}
	return false, nil
}

// askApproval asks for approval of the plan and returns the answer. With --plan, it does not ask: it returns true if
// the saved plan is still current, and an error if not.
func (f *applyFlags) askApproval(stdio IO, p engine.Proposal) (bool, error) {
	if f.plan != "" {
		saved, err := readSavedPlan(f.plan)
		if err != nil {
			return false, err
		}
		if saved.Digest() != p.Plan.Digest() {
			return false, &classError{view.ExitRuntime, fmt.Errorf("the plan saved in %s is out of date: the "+
				"manifest, the hosts or kubeone have changed; save a new plan. Nothing was changed",
				f.plan)}
		}
		return true, nil
	}
	return f.askQuestion(stdio, "Carry out this plan?")
}

// askQuestion asks the question and returns the answer. With --auto-approve, it returns true without asking.
func (f *applyFlags) askQuestion(stdio IO, question string) (bool, error) {
	if f.approve {
		return true, nil
	}
	yes, err := askYes(stdio, question)
	if err == nil && !yes {
		_, _ = fmt.Fprintln(stdio.Err, "Not confirmed. Nothing was changed.")
	}
	return yes, err
}

// verifyResult checks the proposal made after the run. If the cluster matches the manifest, it prints the result and
// returns the exit status of the plan. Otherwise it shows the remaining plan and returns an error.
func (f *applyFlags) verifyResult(stdio IO, after engine.Proposal) error {
	if after.Matches() {
		if err := f.reportEnd(stdio, "Done. "+view.Matched(after.Plan), nil); err != nil {
			return err
		}
		return f.planStatus(after)
	}
	if err := f.showPlan(stdio, after, displayOptions{format: formatText, verbose: f.verbose}); err != nil {
		return err
	}
	if len(after.Plan.Operator) > 0 {
		return &classError{view.ExitRuntime, errors.New("all possible steps are done; complete the steps listed above")}
	}
	return &classError{view.ExitRuntime, errors.New(
		"all steps succeeded, but the cluster still differs from the manifest; see above, and run kubeone apply again")}
}

// withInterrupt handles Ctrl-C and SIGTERM. The first signal closes the returned channel, the second one cancels the
// returned context. The caller must call the returned function to release the handler.
func withInterrupt(ctx context.Context, stdio IO) (context.Context, <-chan struct{}, func()) {
	ctx, cancel := context.WithCancel(ctx)
	stop := make(chan struct{})
	signals := stdio.Interrupts
	restore := func() {}
	if signals == nil {
		received := make(chan os.Signal, 2)
		signal.Notify(received, os.Interrupt, syscall.SIGTERM)
		signals, restore = received, func() { signal.Stop(received) }
	}
	go func() {
		for count := 1; ; count++ {
			select {
			case <-ctx.Done():
				return
			case <-signals:
			}
			if count > 1 {
				cancel()
				return
			}
			_, _ = fmt.Fprintln(stdio.Err,
				"\nWaiting for running steps to finish; no new steps start. Press Ctrl-C again to abort.")
			close(stop)
		}
	}()
	return ctx, stop, func() {
		restore()
		cancel()
	}
}
