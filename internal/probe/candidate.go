package probe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"kubeone/internal/model/observed"
)

// candidate is a control-plane host through which the cluster can be asked.
type candidate struct {
	target Target
	answer Answer
}

// patience is how long one attempt may go on alone: then the next candidate is tried beside it.
const patience = time.Second

// attempts is how to try candidates: how long each may take, what its host says of the part that is asked, and the try.
type attempts[T any] struct {
	within time.Duration
	health func(candidate) observed.Tri
	try    func(context.Context, candidate) (T, error)
	// final reports whether a success ends the search; one that is not final counts if no other one is. Nil: all are.
	final func(T) bool
}

// outcome is what one attempt came to.
type outcome[T any] struct {
	result T
	err    error
}

// firstOf tries candidates as they come until one succeeds: the next one when one has failed, or is slow, or has not
// given what is final. It returns Yes with what the first success gave; No with the problems of all when every
// candidate failed; Unknown when there was none. No attempt goes on when it returns.
func (a attempts[T]) firstOf(ctx context.Context,
	from <-chan candidate) (result T, reached observed.Tri, problem error) {
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	outcomes := make(chan outcome[T], cap(from)) // no more candidates come than that
	start := func(c candidate) { running.Go(func() { outcomes <- a.once(ctx, c) }) }
	late := time.NewTimer(patience)
	defer late.Stop()
	var waiting []candidate
	var problems []error
	ended := ctx.Done()
	trying, due := 0, false
	for {
		waiting, from = arrived(from, waiting)
		if len(waiting) > 0 && (trying == 0 || due) {
			waiting = a.startBest(waiting, start)
			trying, due = trying+1, false
			late.Reset(patience)
		}
		if trying == 0 && from == nil {
			if reached == observed.Yes {
				problems = nil
			}
			return result, reached, errors.Join(problems...)
		}
		select {
		case c, open := <-from:
			waiting, from = taken(c, open, from, waiting)
		case o := <-outcomes:
			trying--
			switch {
			case o.err == nil && (a.final == nil || a.final(o.result)):
				return o.result, observed.Yes, nil
			case o.err == nil && reached != observed.Yes:
				result, reached = o.result, observed.Yes
			case o.err != nil && reached != observed.Yes:
				reached, problems = observed.No, append(problems, o.err)
			}
		case <-late.C:
			due = true
		case <-ended: // and with it all attempts
			ended, from, waiting = nil, nil, nil
		}
	}
}

// startBest starts the attempt that promises most, and returns the candidates that go on waiting.
func (a attempts[T]) startBest(waiting []candidate, start func(candidate)) []candidate {
	i := a.best(waiting)
	start(waiting[i])
	return slices.Delete(waiting, i, i+1)
}

func (a attempts[T]) once(ctx context.Context, c candidate) outcome[T] {
	ctx, cancel := context.WithTimeout(ctx, a.within)
	defer cancel()
	result, err := a.try(ctx, c)
	if err != nil {
		err = fmt.Errorf("through %s: %w", c.target.ID, err)
	}
	return outcome[T]{result, err}
}

// best is the index of the first candidate that says it is healthy, else of one that does not know, else 0.
func (a attempts[T]) best(of []candidate) int {
	for _, wanted := range []observed.Tri{observed.Yes, observed.Unknown} {
		for i, c := range of {
			if a.health(c) == wanted {
				return i
			}
		}
	}
	return 0
}

// arrived adds the candidates that are there now to those waiting. The channel is nil once it is closed and empty.
func arrived(from <-chan candidate, waiting []candidate) ([]candidate, <-chan candidate) {
	for from != nil {
		select {
		case c, open := <-from:
			waiting, from = taken(c, open, from, waiting)
		default:
			return waiting, from
		}
	}
	return waiting, nil
}

// taken is what is waiting, and the channel, after one receive from it.
func taken(c candidate, open bool, from <-chan candidate, waiting []candidate) ([]candidate, <-chan candidate) {
	if !open {
		return waiting, nil
	}
	return append(waiting, c), from
}
