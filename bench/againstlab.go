package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"kubeone/test/lab/components"
	"kubeone/test/lab/fleet"
)

// command is a command of a side's program.
func (s side) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.kubeone, args...)
	cmd.Env = append(os.Environ(), "KUBEONE_STATE="+s.state)
	return cmd
}

// bundle is the bundle that the side's own program has made of the version that the lab wants.
func (b *bench) bundleOf(ctx context.Context, s side) (string, error) {
	if s.commit == "" {
		return b.lab.Bundle, nil
	}
	cache, err := components.DefaultCache()
	if err != nil {
		return "", err
	}
	return fleet.BundleAt(ctx, cache, s.commit, b.lab.KubernetesVersion, b.log)
}

// timedPlan runs a plan in which there is nothing to do.
func timedPlan(cmd *exec.Cmd) (float64, error) {
	var printed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &printed, &printed
	start := time.Now()
	status, err := exitStatus(cmd.Run())
	took := time.Since(start).Seconds()
	if err == nil && status != 0 {
		err = fmt.Errorf("exit status %d", status)
	}
	if err != nil {
		return 0, failure(fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err), printed.String())
	}
	return took, nil
}

// applyWith makes the lab what its manifest says, and measures it.
func (b *bench) applyWith(ctx context.Context, s side) (cost, error) {
	bundle, err := b.bundleOf(ctx, s)
	if err != nil {
		return cost{}, err
	}
	if err := settle(bundle); err != nil {
		return cost{}, err
	}
	cmd := s.command(ctx, "apply", "-m", b.lab.Path("kubeone.yaml"), "--bundle", bundle, "--auto-approve")
	var printed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &printed, &printed
	took, err := timed(cmd.Run)
	if err != nil {
		return took, failure(fmt.Errorf("apply: %w", err), printed.String())
	}
	return took, nil
}

// contestOfNoop measures the plan of a cluster that is as its manifest says, the median of 10 runs. The old program
// makes the cluster; the present one takes it over, and leaves nothing in it that the old one would change.
func (b *bench) contestOfNoop(ctx context.Context, sides [2]side) (contest, func() error, error) {
	if err := b.bareLab(ctx); err != nil {
		return nil, nil, err
	}
	for _, s := range sides {
		if _, err := b.applyWith(ctx, s); err != nil {
			return nil, nil, err
		}
	}
	return func(ctx context.Context, s side) ([]sample, error) {
		bundle, err := b.bundleOf(ctx, s)
		if err != nil {
			return nil, err
		}
		var took []float64
		for range noopRuns {
			seconds, err := timedPlan(s.command(ctx, "plan", "-m", b.lab.Path("kubeone.yaml"), "--bundle", bundle))
			if err != nil {
				return nil, err
			}
			took = append(took, seconds)
		}
		return []sample{{"noop", "s", median(took)}}, nil
	}, nothing, nil
}

// contestOfInstall measures an installation on hosts that were just booted.
func (b *bench) contestOfInstall(context.Context, [2]side) (contest, func() error, error) {
	return func(ctx context.Context, s side) ([]sample, error) {
		if err := b.bareLab(ctx); err != nil {
			return nil, err
		}
		took, err := b.applyWith(ctx, s)
		return costSamples("install", took), err
	}, nothing, nil
}

// contestOfUpgrade measures the upgrade of a cluster that the same program has just made, with the usual load on it.
func (b *bench) contestOfUpgrade(context.Context, [2]side) (contest, func() error, error) {
	return func(ctx context.Context, s side) ([]sample, error) {
		var took cost
		_, err := b.upgradeOnce(ctx,
			func(ctx context.Context) (installation, error) {
				_, err := b.applyWith(ctx, s)
				return installation{}, err
			},
			func(ctx context.Context) (upgraded, error) {
				var err error
				took, err = b.applyWith(ctx, s)
				return upgraded{}, err
			})
		return costSamples("upgrade", took), err
	}, nothing, nil
}

func costSamples(name string, c cost) []sample {
	return []sample{{name, "s", c.Seconds}, {name + ", processors", "s", c.CPUSeconds}}
}
