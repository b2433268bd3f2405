package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kubeone/test/e2e/operator"
	"kubeone/test/lab/fleet"
)

// tortureInstall runs the remaining cases, or a single one, until the first failure.
func (s settings) tortureInstall(ctx context.Context) error {
	path, err := s.stateFile("install")
	if err != nil {
		return err
	}
	done, err := readProgress(path)
	if err != nil {
		return err
	}
	o, end, err := onLab(ctx, fleet.Options{ControlPlanes: 3, Workers: 1})
	if err != nil {
		return err
	}
	defer end()
	t := &torturer{Operator: o, progress: done}
	return t.runCases(ctx, s.only)
}

// torturer interrupts the installations of one lab.
type torturer struct {
	*operator.Operator
	*progress
}

func (t *torturer) runCases(ctx context.Context, only int) error {
	if err := t.measureInstallation(ctx); err != nil {
		return err
	}
	for _, c := range allCases() {
		if _, passed := t.Passed[c.number]; only != 0 && c.number != only || only == 0 && passed {
			continue
		}
		if err := t.runCase(ctx, c); err != nil {
			return fmt.Errorf("case %s: %w", c, err)
		}
	}
	printLine("%d of %d cases have passed", len(t.Passed), len(allCases()))
	return nil
}

// measureInstallation measures the duration of an installation once.
func (t *torturer) measureInstallation(ctx context.Context) error {
	if t.Installation != 0 {
		return nil
	}
	r := t.Run(ctx, "apply", "-y")
	if r.Status != 0 {
		return fmt.Errorf("an uninterrupted installation failed\n%s", r)
	}
	t.Installation = r.Took
	printLine("an installation takes %.1f s", r.Took.Seconds())
	return errors.Join(t.runSuccessfully(ctx, "reset", "-y"), t.saveFile())
}

// runCase runs one case, from bare hosts to bare hosts.
func (t *torturer) runCase(ctx context.Context, c testCase) error {
	i, err := t.interruptInstallation(ctx, c)
	if err != nil {
		return err
	}
	if i.Status == 0 && c.way == operator.Kill {
		return fmt.Errorf("the run was not interrupted\n%s", i.Result)
	}
	started := time.Now()
	if err := t.checkConverges(ctx); err != nil {
		return fmt.Errorf("%w\n--- the interrupted run, status %d, its last events\n%s", err, i.Status,
			lastLines(i.Stdout, 5))
	}
	carriedOn := time.Since(started)
	started = time.Now()
	if err := t.runSuccessfully(ctx, "reset", "-y"); err != nil {
		return err
	}
	printLine("%s: came after %.1f s; that run ended with status %d after %.1f s; carried on to the end in %.1f "+
		"s; reset in %.1f s",
		c, i.At[0].Seconds(), i.Status, i.Took.Seconds(), carriedOn.Seconds(), time.Since(started).Seconds())
	t.Passed[c.number] = carriedOn.Seconds()
	return t.saveFile()
}

// interruptInstallation starts an installation and interrupts it. An installation that ends before its share of the
// usual time sets a new usual time, because the machine is less busy now.
func (t *torturer) interruptInstallation(ctx context.Context, c testCase) (operator.Interruption, error) {
	for {
		i, err := t.ApplyInterrupted(ctx, operator.Failure{Way: c.way, Moment: c.momentAt(t.Installation)})
		if err != nil || len(i.At) > 0 {
			return i, err
		}
		if c.share == 0 || i.Status != 0 || i.Took >= t.Installation {
			return i, fmt.Errorf("the moment never came\n%s", i.Result)
		}
		printLine("%s: never came; an installation takes %.1f s by now", c, i.Took.Seconds())
		t.Installation = i.Took
		if err := errors.Join(t.runSuccessfully(ctx, "reset", "-y"), t.saveFile()); err != nil {
			return i, err
		}
	}
}

// checkConverges applies once more. Then nothing may be left to do, and the cluster must be healthy by independent
// checks.
func (t *torturer) checkConverges(ctx context.Context) error {
	for _, command := range [][]string{{"apply", "-y"}, {"plan"}, {"status"}} {
		if err := t.runSuccessfully(ctx, command...); err != nil {
			return err
		}
	}
	return checkHealthy(ctx, t.Operator)
}

func (t *torturer) runSuccessfully(ctx context.Context, args ...string) error {
	return runSuccessfully(ctx, t.Operator, args...)
}
