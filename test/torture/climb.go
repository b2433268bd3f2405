package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"kubeone/test/e2e/operator"
)

// climb kills one operation of kubeone at every boundary of its steps. One climb kills the run at the first untried
// boundary, resumes, kills it at the next, and so on, until it may finish. A killed run's step may continue by itself
// and skip boundaries. They are left for the next climb.
type climb struct {
	*operator.Operator
	*boundaries
	kills int // per climb
	// begin prepares the cluster for a climb.
	begin func(context.Context) error
}

// climbAll climbs until no boundary is left.
func (c *climb) climbAll(ctx context.Context) error {
	for n := 1; ; n++ {
		if err := c.begin(ctx); err != nil {
			return fmt.Errorf("begin climb %d: %w", n, err)
		}
		p, err := c.Plan(ctx)
		if err != nil {
			return err
		}
		if len(p.Steps) == 0 {
			return errors.New("the plan has no steps")
		}
		c.learnPlan(p)
		before := len(c.Passed)
		if err := c.climbOnce(ctx); err != nil {
			return fmt.Errorf("climb %d, killed at %s: %w", n, strings.Join(c.tried, ", "), err)
		}
		if err := c.passTried(); err != nil {
			return err
		}
		left := c.listLeft()
		printLine("climb %d has come to its end, killed at %d boundaries; %d of %d have passed", n,
			len(c.Passed)-before,
			len(c.Passed), len(c.Known))
		if len(left) == 0 {
			return nil
		}
		if len(c.Passed) == before {
			return fmt.Errorf("boundaries that never came: %s", strings.Join(left, ", "))
		}
	}
}

// climbOnce kills runs until no boundary is left or this climb has reached its limit. Then it lets a run finish.
func (c *climb) climbOnce(ctx context.Context) error {
	for len(c.tried) < c.kills && len(c.listLeft()) > 0 {
		killed, err := c.killRun(ctx)
		if err != nil {
			return err
		}
		if !killed {
			break
		}
	}
	started := time.Now()
	for _, command := range [][]string{{"apply", "-y"}, {"plan"}, {"status"}} {
		if err := runSuccessfully(ctx, c.Operator, command...); err != nil {
			return err
		}
	}
	printLine("came to its end in %.1f s", time.Since(started).Seconds())
	return checkHealthy(ctx, c.Operator)
}

// killRun kills one run at the next untried boundary. It returns false when the run finishes before.
func (c *climb) killRun(ctx context.Context) (bool, error) {
	result, event, came, err := c.ApplyKilled(ctx, c.wantsKill)
	if err != nil {
		return false, err
	}
	if came {
		c.tried = append(c.tried, boundaryOf(event))
		printLine("%5.1f s  killed at %s", result.Took.Seconds(), boundaryOf(event))
		return true, ctx.Err()
	}
	if result.Status != 0 {
		return false, fmt.Errorf("the run was not killed and failed\n%s\n--- its last events\n%s", result.Stderr,
			lastLines(result.Stdout, 5))
	}
	return false, ctx.Err()
}
