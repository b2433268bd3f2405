package main

import (
	"fmt"
	"time"

	"kubeone/internal/apply"
	"kubeone/test/e2e/operator"
)

// testCase is one interruption of one installation.
type testCase struct {
	number int
	way    operator.Way
	// moment is at an event, or at this share of the usual duration of an installation.
	moment operator.Moment
	share  float64
}

// String returns the case's number, way and moment.
func (c testCase) String() string {
	when := c.moment.String()
	if c.share > 0 {
		when = fmt.Sprintf("after %.0f %% of an installation", 100*c.share)
	}
	return fmt.Sprintf("%2d  %-4s  %s", c.number, c.way, when)
}

// momentAt returns the moment for an installation of that duration.
func (c testCase) momentAt(installation time.Duration) operator.Moment {
	if c.share > 0 {
		return operator.Moment{After: time.Duration(c.share * float64(installation))}
	}
	return c.moment
}

// allCases returns the same cases at every call: all kills, then all cuts.
func allCases() []testCase {
	var out []testCase
	for _, way := range []operator.Way{operator.Kill, operator.Cut} {
		for _, moment := range stepMoments() {
			out = append(out, testCase{number: len(out) + 1, way: way, moment: moment})
		}
		// Shares without a common divisor, so that they hit steps at odd points.
		for _, share := range []float64{0.07, 0.23, 0.37, 0.53, 0.71, 0.89} {
			out = append(out, testCase{number: len(out) + 1, way: way, share: share})
		}
	}
	return out
}

// stepMoments returns the moments before and after each kind of step.
func stepMoments() []operator.Moment {
	before := func(step string) operator.Moment { return operator.Moment{Event: apply.StepStarted, Step: step} }
	after := func(step string) operator.Moment { return operator.Moment{Event: apply.StepDone, Step: step} }
	return []operator.Moment{
		before("prepare/cp-1"), after("prepare/worker-1"),
		before("images/cp-2"), after("images/cp-3"),
		before("init/cp-1"), after("init/cp-1"),
		before("pki/cp-2"), after("join-prepare/cp-3"),
		before("join-etcd/cp-2"), after("join-etcd/cp-3"),
		before("join-finish/cp-2"),
		before("join-worker/worker-1"), after("join-worker/worker-1"),
		before("record"),
	}
}
