package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kubeone/test/e2e/operator"
	"kubeone/test/lab/fleet"
)

// install runs the remaining cases, or a single one, until the first failure.
func (s settings) install(ctx context.Context) error {
	path, err := s.file("install")
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
	return t.all(ctx, s.only)
}

// torturer interrupts the installations of one lab.
type torturer struct {
	*operator.Operator
	*progress
}

func (t *torturer) all(ctx context.Context, only int) error {
	if err := t.measure(ctx); err != nil {
		return err
	}
	for _, c := range cases() {
		if _, passed := t.Passed[c.number]; only != 0 && c.number != only || only == 0 && passed {
			continue
		}
		if err := t.run(ctx, c); err != nil {
			return fmt.Errorf("case %s: %w", c, err)
		}
	}
	say("%d of %d cases have passed", len(t.Passed), len(cases()))
	return nil
}

// measure measures the duration of an installation once.
func (t *torturer) measure(ctx context.Context) error {
	if t.Installation != 0 {
		return nil
	}
	r := t.Run(ctx, "apply", "-y")
	if r.Status != 0 {
		return fmt.Errorf("an uninterrupted installation failed\n%s", r)
	}
	t.Installation = r.Took
	say("an installation takes %.1f s", r.Took.Seconds())
	return errors.Join(t.succeeds(ctx, "reset", "-y"), t.save())
}

// run runs one case, from bare hosts to bare hosts.
func (t *torturer) run(ctx context.Context, c testCase) error {
	i, err := t.interrupt(ctx, c)
	if err != nil {
		return err
	}
	if i.Status == 0 && c.way == operator.Kill {
		return fmt.Errorf("the run was not interrupted\n%s", i.Result)
	}
	started := time.Now()
	if err := t.converges(ctx); err != nil {
		return fmt.Errorf("%w\n--- the interrupted run, status %d, its last events\n%s", err, i.Status,
			lastLines(i.Stdout, 5))
	}
	carriedOn := time.Since(started)
	started = time.Now()
	if err := t.succeeds(ctx, "reset", "-y"); err != nil {
		return err
	}
	say("%s: came after %.1f s; that run ended with status %d after %.1f s; carried on to the end in %.1f "+
		"s; reset in %.1f s",
		c, i.At[0].Seconds(), i.Status, i.Took.Seconds(), carriedOn.Seconds(), time.Since(started).Seconds())
	t.Passed[c.number] = carriedOn.Seconds()
	return t.save()
}

// interrupt starts an installation and interrupts it. An installation that ends before its share of the usual time sets
// a new usual time, because the machine is less busy now.
func (t *torturer) interrupt(ctx context.Context, c testCase) (operator.Interruption, error) {
	for {
		i, err := t.ApplyInterrupted(ctx, operator.Failure{Way: c.way, Moment: c.at(t.Installation)})
		if err != nil || len(i.At) > 0 {
			return i, err
		}
		if c.share == 0 || i.Status != 0 || i.Took >= t.Installation {
			return i, fmt.Errorf("the moment never came\n%s", i.Result)
		}
		say("%s: never came; an installation takes %.1f s by now", c, i.Took.Seconds())
		t.Installation = i.Took
		if err := errors.Join(t.succeeds(ctx, "reset", "-y"), t.save()); err != nil {
			return i, err
		}
	}
}

// converges applies once more. Then nothing may be left to do, and the cluster must be healthy by independent checks.
func (t *torturer) converges(ctx context.Context) error {
	for _, command := range [][]string{{"apply", "-y"}, {"plan"}, {"status"}} {
		if err := t.succeeds(ctx, command...); err != nil {
			return err
		}
	}
	return healthy(ctx, t.Operator)
}

func (t *torturer) succeeds(ctx context.Context, args ...string) error {
	return succeeds(ctx, t.Operator, args...)
}
