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
			"Exit status: 0 if there is nothing to do; 2 if kubeone would make changes, or there are steps for you\n" +
			"to complete; 4 if there is nothing to do, but the cluster differs from the manifest as shown, for\n" +
			"example because of unsupported fields.",
		Example: "  kubeone plan\n" +
			"  kubeone plan --diff --out plan.json\n" +
			"  kubeone plan -o 'jsonpath={.steps[*].id}'",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.checkThrough(); err != nil {
				return err
			}
			began := time.Now()
			show := func(w *workspace.Workspace) error {
				to := planOutput{format: output, file: out, scripts: scripts, loadTime: time.Since(began)}
				return runPlan(cmd.Context(), stdio, f, w, to)
			}
			for _, f.version = range f.through {
				if err := f.withIntermediateVersion(cmd.Context(), stdio, args, show); !errors.Is(err, errNoUpgrade) {
					return err
				}
			}
			f.version = ""
			w, err := f.openCluster(cmd.Context(), stdio, args, host.PolicyProbe)
			if err != nil {
				return err
			}
			defer w.Close()
			return show(w)
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

// planOutput holds the output format of a plan and the places to save it.
type planOutput struct {
	format, file, scripts string        // file and scripts: "" means not to save
	loadTime              time.Duration // for loading the manifest, addons and bundles
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
	var saveErr error
	switch err := p.Unresolved(); {
	case p.Decision().Route == fsm.Error:
		to.file, to.scripts = "", "" // there is no plan to save; the problems are shown below
	case err != nil && to.file != "":
		saveErr = fmt.Errorf("the plan was not saved in %s: %w", to.file, err)
		to.file = ""
	}
	if err := savePlan(p, to.file, to.scripts); err != nil {
		return err
	}
	if err := showProposal(stdio, p, f.newDisplayOptions(ctx, w, p, to.format)); err != nil || saveErr != nil {
		return errors.Join(err, saveErr)
	}
	if f.verbose {
		view.PlanTiming(stdio.Err, view.StyleFor(stdio.Err, stdio.Getenv), p.Plan, p.Observed.Spans, to.loadTime, p.Took)
	}
	return f.planStatus(p)
}

// displayOptions holds the settings for showing a plan.
type displayOptions struct {
	format  string
	verbose bool
	diff    bool       // show sets
	sets    []diff.Set // differing lines in files and objects
}

// newDisplayOptions returns the settings from the flags. With --diff, it also computes the differing lines if the plan
// contains steps.
func (f *clusterFlags) newDisplayOptions(ctx context.Context, w *workspace.Workspace, p engine.Proposal,
	format string) displayOptions {
	as := displayOptions{format: format, verbose: f.verbose, diff: f.diff && len(p.Plan.Steps) > 0}
	if as.diff {
		as.sets = w.Engine.Diff(ctx, p)
	}
	return as
}

// showProposal prints a plan, or the problems that prevent one. With a format for programs, it prints the problems to
// standard error as well.
func showProposal(stdio IO, p engine.Proposal, as displayOptions) error {
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

// planStatus returns the exit status of a plan that is not carried out, as an error, or nil for status 0. With
// --allow-unsupported, it ignores unsupported fields.
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

// savePlan writes the plan to the file out and the scripts to the directory scripts. If a path is "", it skips that
// part.
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
	// Other users can read the scripts to review them. Scripts contain no secrets.
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

// readSavedPlan reads a plan that was saved with plan --out.
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

// proposeWhenIdle makes a proposal. If steps of earlier runs are still running, it waits for them and makes a new
// proposal. Like proposeReady, it gives unhealthy members time to recover.
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

// proposeReady gives slow components and members time to become ready before the operator must act or the request is
// refused. It takes the first proposal and its error, and makes new proposals until the cluster is ready or the timeout
// ends. It returns the last proposal and its error.
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
