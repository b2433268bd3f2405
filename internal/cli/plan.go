package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kubeone/internal/decide/fsm"
	"kubeone/internal/engine"
	"kubeone/internal/host"
	"kubeone/internal/plan"
	"kubeone/internal/text/diff"
	"kubeone/internal/view"
	"kubeone/internal/workspace"
)

// newPlanCommand returns "kubeone plan".
func newPlanCommand(stdio IO) *cobra.Command {
	f := &clusterFlags{}
	var output, out, scripts string
	cmd := &cobra.Command{
		Use:   "plan [MANIFEST]",
		Short: "Show the changes that apply would make",
		Long: "Inspect every host, the API and etcd, and show the steps that apply would carry out, in order and\n" +
			"with reasons. Nothing is changed.\n\n" +
			"Exit status: 0 nothing to do; 2 there are changes or steps for you to complete; 4 nothing to do, but\n" +
			"the cluster differs from the manifest as shown, for example because of unsupported fields.",
		Example: "  kubeone plan\n" +
			"  kubeone plan --diff --out plan.json\n" +
			"  kubeone plan -o 'jsonpath={.steps[*].id}'",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.checkThrough(); err != nil {
				return err
			}
			began := time.Now()
			present := func(w *workspace.Workspace) error {
				to := planOutput{format: output, file: out, scripts: scripts, load: time.Since(began)}
				return runPlan(cmd.Context(), stdio, f, w, to)
			}
			for _, f.version = range f.through {
				if err := f.onTheWay(cmd.Context(), stdio, args, present); !errors.Is(err, errNotOnTheWay) {
					return err
				}
			}
			f.version = ""
			w, err := f.openCluster(cmd.Context(), stdio, args, host.PolicyProbe)
			if err != nil {
				return err
			}
			defer w.Close()
			return present(w)
		},
	}
	f.registerFlags(cmd)
	f.registerPlan(cmd)
	f.registerDiff(cmd)
	cmd.Flags().BoolVar(&f.options.ForceUpgrade, "force-upgrade", false,
		"roll out the configuration again even if nothing has changed")
	f.registerNames(cmd)
	f.registerRotation(cmd)
	f.registerUnsupported(cmd)
	outputFlag(cmd, &output, formatMarkdown)
	cmd.Flags().StringVar(&out, "out", "", "save the plan to `FILE`, for use with apply --plan")
	cmd.Flags().StringVar(&scripts, "scripts", "",
		"write the script for each host to `DIR`, for review or to run manually")
	return cmd
}

// planOutput says how to show a plan and where to save it.
type planOutput struct {
	format, file, scripts string
	load                  time.Duration // duration of loading
}

func runPlan(ctx context.Context, stdio IO, f *clusterFlags, w *workspace.Workspace, to planOutput) error {
	r, err := f.applyRequest(w)
	if err != nil {
		return err
	}
	p, err := w.Engine.Propose(ctx, r)
	p, err = proposeReady(ctx, stdio, w.Engine, p, err, engine.SettleTimeout)
	if err != nil {
		return err
	}
	var unsaved error
	switch err := p.Unresolved(); {
	case p.Decision().Route == fsm.Error:
		to.file, to.scripts = "", "" // no plan: the problems are shown
	case err != nil && to.file != "":
		unsaved = fmt.Errorf("the plan was not saved in %s: %w", to.file, err)
		to.file = ""
	}
	if err := savePlan(p, to.file, to.scripts); err != nil {
		return err
	}
	if err := showProposal(stdio, p, f.proposalView(ctx, w, p, to.format)); err != nil || unsaved != nil {
		return errors.Join(err, unsaved)
	}
	if f.verbose {
		view.PlanTiming(stdio.Err, view.StyleFor(stdio.Err, stdio.Getenv), p.Plan, p.Observed.Spans, to.load, p.Took)
	}
	return f.planStatus(p)
}

// shownAs says how to show a plan.
type shownAs struct {
	format  string
	verbose bool
	diff    bool       // show differing lines
	sets    []diff.Set // the differing lines
}

// proposalView returns how the flags show a proposal. It computes differences only with --diff and if there are steps.
func (f *clusterFlags) proposalView(ctx context.Context, w *workspace.Workspace, p engine.Proposal,
	format string) shownAs {
	as := shownAs{format: format, verbose: f.verbose, diff: f.diff && len(p.Plan.Steps) > 0}
	if as.diff {
		as.sets = w.Engine.Diff(ctx, p)
	}
	return as
}

// showProposal prints a plan, or the problems that prevent one.
func showProposal(stdio IO, p engine.Proposal, as shownAs) error {
	d := p.Decision()
	document := func() ([]byte, error) { return view.PlanJSON(p.Plan, as.sets, p.Decisions...) }
	if as.format == formatMarkdown {
		_, err := stdio.Out.Write(view.PlanMarkdown(p.Plan, as.sets, p.Decisions...))
		return err
	}
	if as.format != formatText {
		if d.Route == fsm.Error {
			view.Problems(stdio.Err, view.StyleFor(stdio.Err, stdio.Getenv), d.Problems, p.Plan.Hosts)
		}
		return printResult(stdio.Out, as.format, document, nil)
	}
	if as.verbose {
		view.Decision(stdio.Err, view.StyleFor(stdio.Err, stdio.Getenv), d)
	}
	if d.Route == fsm.Error {
		view.Problems(stdio.Err, view.StyleFor(stdio.Err, stdio.Getenv), d.Problems, p.Plan.Hosts)
		return nil
	}
	style := view.StyleFor(stdio.Out, stdio.Getenv)
	if as.diff {
		view.Diff(stdio.Out, style, as.sets)
	}
	view.Plan(stdio.Out, style, p.Plan, verbosityOf(as.verbose))
	return nil
}

func verbosityOf(verbose bool) view.Verbosity {
	if verbose {
		return view.Verbose
	}
	return view.Normal
}

// planStatus returns the exit status of a plan that is not carried out. With --allow-unsupported, unsupported fields do
// not count.
func (f *clusterFlags) planStatus(p engine.Proposal) error {
	status := view.Exit(p.Plan, p.Decisions...)
	if status == view.ExitExcept && f.allowUnsupported && len(p.Plan.Unlike) == 0 {
		status = 0
	}
	if status != 0 {
		return &statusError{status}
	}
	return nil
}

// savePlan writes the plan and the scripts to out and scripts; "" skips them.
func savePlan(p engine.Proposal, out, scripts string) error {
	if out != "" {
		saved := p.Plan
		saved.Steps = append([]plan.Step{}, saved.Steps...) // encode an empty list, not null
		text, err := json.MarshalIndent(saved, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(out, append(text, '\n'), 0o600); err != nil {
			return &classError{view.ExitConfig, err}
		}
	}
	if scripts == "" {
		return nil
	}
	// Scripts hold no secrets, and other users may review them.
	if err := os.MkdirAll(scripts, 0o755); err != nil { //nolint:gosec // see above
		return &classError{view.ExitConfig, err}
	}
	names := p.FileNames()
	for id, text := range p.Scripts {
		path := filepath.Join(scripts, names[id]+".sh")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // see above
			return &classError{view.ExitConfig, err}
		}
	}
	return nil
}

// readSavedPlan reads a plan saved by plan --out.
func readSavedPlan(path string) (plan.Plan, error) {
	var p plan.Plan
	text, err := os.ReadFile(path)
	if err == nil {
		p, err = plan.Decode(text)
	}
	if err != nil {
		return p, &classError{view.ExitConfig, fmt.Errorf("saved plan %s: %w", path, err)}
	}
	return p, nil
}

// proposeWhenIdle waits until steps of earlier runs have finished, and then proposes. Unhealthy members get time to
// recover (proposeReady).
func proposeWhenIdle(ctx context.Context, stdio IO, e *engine.Engine, r engine.Request) (engine.Proposal, error) {
	p, err := e.Propose(ctx, r)
	if running := p.RunningSteps(); len(running) > 0 {
		for id, s := range running {
			_, _ = fmt.Fprintf(stdio.Err, "%s: step %s of run %s is still running; waiting for it to finish\n",
				p.NameOf(id), s.Stage, s.RunID)
		}
		if err := e.Await(ctx, p); err != nil {
			return p, err
		}
		p, err = e.Propose(ctx, r)
	}
	return proposeReady(ctx, stdio, e, p, err, engine.SettleTimeout)
}

// proposeReady proposes again while something may only be slow, before it calls the operator or refuses a request. The
// proposal and the error are those of the first attempt.
func proposeReady(ctx context.Context, stdio IO, e *engine.Engine, first engine.Proposal, err error,
	timeout time.Duration) (engine.Proposal, error) {
	return e.ProposeUntilReady(ctx, first, err, timeout, func(pending []engine.Pending, timeout time.Duration) {
		names := make([]string, 0, len(pending))
		for _, o := range pending {
			names = append(names, o.Name)
		}
		_, _ = fmt.Fprintf(stdio.Err, "%s: not in the desired state yet; checking again for up to %.0f s\n",
			strings.Join(names, ", "), timeout.Seconds())
	})
}
