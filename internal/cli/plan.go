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
	"kubeone/internal/view"
)

// newPlanCommand returns "kubeone plan".
func newPlanCommand(stdio IO) *cobra.Command {
	f := &clusterFlags{}
	var output, out, scripts string
	cmd := &cobra.Command{
		Use:   "plan [MANIFEST]",
		Short: "Show what apply would do; change nothing",
		Long: "Look at every host, the API and etcd, and show what apply would do, in which order and why. Nothing is changed.\n\n" +
			"Exit status: 0 nothing to do, 2 there are changes or something for you to do.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			began := time.Now()
			present := func(e *engine.Engine) error {
				load := time.Since(began)
				look, err := e.Look(cmd.Context())
				if err != nil {
					return err
				}
				if err := save(look, out, scripts); err != nil {
					return err
				}
				if err := show(stdio, look, f.verbose, output); err != nil {
					return err
				}
				if f.verbose {
					view.LookTime(stdio.Err, view.StyleFor(stdio.Err, stdio.Getenv), look.Plan, look.Result.Spans, load, look.Took)
				}
				return planStatus(look)
			}
			for _, f.version = range f.through {
				if err := f.onTheWay(cmd.Context(), stdio, args, present); !errors.Is(err, errNotOnTheWay) {
					return err
				}
			}
			f.version = ""
			e, err := f.open(cmd.Context(), stdio, args, host.PolicyProbe)
			if err != nil {
				return err
			}
			defer e.Close()
			return present(e)
		},
	}
	f.register(cmd)
	f.registerPlan(cmd)
	cmd.Flags().BoolVar(&f.forceUpgrade, "force-upgrade", false, "plan to roll the configuration out although nothing differs")
	outputFlag(cmd, &output, "text or json")
	cmd.Flags().StringVar(&out, "out", "", "save the plan to this file, for apply --plan")
	cmd.Flags().StringVar(&scripts, "scripts", "", "write every host's script into this directory, for review")
	return cmd
}

// show prints a plan, or why there can be none.
func show(stdio IO, look engine.Look, verbose bool, output string) error {
	d := look.Decision()
	if output == "json" {
		text, err := view.PlanJSON(look.Plan, look.Decisions...)
		if err != nil {
			return err
		}
		_, _ = stdio.Out.Write(text)
		if d.Route == fsm.Error {
			view.Problems(stdio.Err, view.StyleFor(stdio.Err, stdio.Getenv), d.Problems, look.Plan.Hosts)
		}
		return nil
	}
	if verbose {
		view.Decision(stdio.Err, view.StyleFor(stdio.Err, stdio.Getenv), d)
	}
	if d.Route == fsm.Error {
		view.Problems(stdio.Err, view.StyleFor(stdio.Err, stdio.Getenv), d.Problems, look.Plan.Hosts)
		return nil
	}
	view.Plan(stdio.Out, view.StyleFor(stdio.Out, stdio.Getenv), look.Plan, verbosity(verbose))
	return nil
}

func verbosity(verbose bool) view.Verbosity {
	if verbose {
		return view.Verbose
	}
	return view.Normal
}

// planStatus is the result of a command that stops at the plan.
func planStatus(look engine.Look) error {
	if status := view.Exit(look.Plan, look.Decisions...); status != 0 {
		return &statusError{status}
	}
	return nil
}

// save writes the plan and the scripts where they were asked for.
func save(look engine.Look, out, scripts string) error {
	if out != "" {
		text, err := json.MarshalIndent(look.Plan, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(out, append(text, '\n'), 0o600); err != nil {
			return &classError{exitConfig, err}
		}
	}
	if scripts == "" {
		return nil
	}
	if err := os.MkdirAll(scripts, 0o755); err != nil { //nolint:gosec // for review by others too; scripts hold no secrets
		return &classError{exitConfig, err}
	}
	for id, text := range look.Scripts {
		if err := os.WriteFile(filepath.Join(scripts, look.Plan.Hosts[id]+".sh"), []byte(text), 0o644); err != nil { //nolint:gosec // as above
			return &classError{exitConfig, err}
		}
	}
	return nil
}

// saved reads a plan that plan --out wrote.
func saved(path string) (plan.Plan, error) {
	var p plan.Plan
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err == nil && p.Format != plan.FormatVersion {
		err = fmt.Errorf("format %d, this version reads %d", p.Format, plan.FormatVersion)
	}
	if err != nil {
		return p, &classError{exitConfig, fmt.Errorf("saved plan %s: %w", path, err)}
	}
	return p, nil
}

// lookSettled looks at a world that stands still: when steps of an earlier run are still running, it waits for their
// end, and a member that is not healthy gets a moment to become so, before a person is called.
func lookSettled(ctx context.Context, stdio IO, e *engine.Engine) (engine.Look, error) {
	look, err := e.Look(ctx)
	if err != nil {
		return look, err
	}
	for id, s := range look.RunningSteps() {
		_, _ = fmt.Fprintf(stdio.Err, "%s: step %s of run %s is still running; waiting for its end\n", look.Plan.Hosts[id], s.Stage, s.RunID)
	}
	if len(look.RunningSteps()) > 0 {
		if err := e.Await(ctx, look); err != nil {
			return look, err
		}
		if look, err = e.Look(ctx); err != nil {
			return look, err
		}
	}
	if coming := look.ComingUp(); len(coming) > 0 {
		_, _ = fmt.Fprintf(stdio.Err, "%s: not healthy, and may be coming up; waiting up to a minute\n", strings.Join(coming, ", "))
		return e.LookUntilUp(ctx)
	}
	return look, nil
}
