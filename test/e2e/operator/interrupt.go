package operator

import (
	"context"
	"time"

	"kubeone/internal/apply"
)

// Way is a way to interrupt an installation.
type Way string

// The ways.
const (
	// Kill ends the operator's process at once.
	Kill Way = "kill"
	// Cut ends every SSH connection at once; the process sees it.
	Cut Way = "cut"
)

// Moment is the time of an interruption: at an event about a step or, if After is not zero, that long after the first
// event.
type Moment struct {
	Event apply.EventType
	Step  string
	After time.Duration
}

// String names the moment.
func (m Moment) String() string {
	if m.After > 0 {
		return "after " + m.After.Round(100*time.Millisecond).String()
	}
	return string(m.Event) + " " + m.Step
}

// Failure is a planned interruption.
type Failure struct {
	Way    Way
	Moment Moment
}

// String names way and moment.
func (f Failure) String() string { return string(f.Way) + " at " + f.Moment.String() }

// Interruption is the outcome of an interrupted apply.
type Interruption struct {
	Result
	// At are the times from the command's start to each failure that happened.
	At []time.Duration
}

// ApplyInterrupted starts apply and causes the failures one after the other. It returns when the process has ended. A
// process that only lost its connections may have finished its work.
func (o *Operator) ApplyInterrupted(ctx context.Context, failures ...Failure) (Interruption, error) {
	run, err := o.Start(ctx, "apply", "-y")
	if err != nil {
		return Interruption{}, err
	}
	var i Interruption
	for _, failure := range failures {
		if !run.awaitMoment(ctx, failure.Moment) {
			break
		}
		i.At = append(i.At, time.Since(run.started))
		if failure.Way == Kill {
			err = run.Kill()
		} else {
			err = CutConnections(ctx, o.Members())
		}
		if err != nil {
			break
		}
	}
	i.Result = run.Wait()
	return i, err
}

// ApplyKilled starts apply and kills its process at the first event that matches. It returns that event, or false when
// the command ended before any match.
func (o *Operator) ApplyKilled(ctx context.Context, match func(apply.Event) bool) (Result, apply.Event, bool, error) {
	run, err := o.Start(ctx, "apply", "-y")
	if err != nil {
		return Result{}, apply.Event{}, false, err
	}
	event, came := run.Await(match)
	if came {
		err = run.Kill()
	}
	return run.Wait(), event, came, err
}

// awaitMoment waits for the moment. It returns false when the command ends before.
func (r *Running) awaitMoment(ctx context.Context, moment Moment) bool {
	if moment.After == 0 {
		_, ok := r.Await(Step(moment.Event, moment.Step))
		return ok
	}
	if _, ok := r.Await(Step(apply.RunStarted, "")); !ok {
		return false
	}
	timer := time.NewTimer(moment.After)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return true
		case <-ctx.Done():
			return false
		case _, ok := <-r.Events:
			if !ok {
				return false
			}
		}
	}
}
