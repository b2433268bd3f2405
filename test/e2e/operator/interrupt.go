package operator

import (
	"context"
	"time"

	"kubeone/internal/apply"
)

// Way is how an installation is interrupted.
type Way string

// The ways.
const (
	// Kill ends the operator's process at once.
	Kill Way = "kill"
	// Cut ends every SSH connection at once; the process sees it.
	Cut Way = "cut"
)

// Moment is when: at an event about a step, or some time after the first event where After is not zero.
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

// Failure is an interruption to come.
type Failure struct {
	Way    Way
	Moment Moment
}

// String names way and moment.
func (f Failure) String() string { return string(f.Way) + " at " + f.Moment.String() }

// Interruption is how one interrupted apply went.
type Interruption struct {
	Result
	// At are the times from the command's start to each failure, of those whose moment came.
	At []time.Duration
}

// ApplyInterrupted starts apply and lets failures happen to it, one after the other. It returns when the process has
// ended; one that was only cut off may have come to its end by itself.
func (o *Operator) ApplyInterrupted(ctx context.Context, failures ...Failure) (Interruption, error) {
	run, err := o.Start(ctx, "apply", "-y")
	if err != nil {
		return Interruption{}, err
	}
	var i Interruption
	for _, failure := range failures {
		if !run.reach(ctx, failure.Moment) {
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

// ApplyKilled starts apply and ends its process at the first event that matches. It returns that event, and false when
// none matched before the command ended by itself.
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

// reach returns when the moment has come, or false when the command ended before.
func (r *Running) reach(ctx context.Context, moment Moment) bool {
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
