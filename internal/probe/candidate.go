package probe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"kubeone/internal/observed"
)

// candidate is a control-plane host through which the cluster can be asked.
type candidate struct {
	target Target
	answer Answer
}

// attempts is how to try candidates: how long each may take, what its host says of the part that is asked, and the try.
type attempts[T any] struct {
	within time.Duration
	health func(observed.Host) observed.Tri
	try    func(context.Context, candidate) (T, error)
}

// firstOf tries candidates as they come until one succeeds. It returns Yes with what that one gave; No with the
// problems of all when every candidate failed; Unknown when there was none.
func (a attempts[T]) firstOf(ctx context.Context, from <-chan candidate) (result T, reached observed.Tri, problem error) {
	var waiting []candidate
	var problems []error
	for {
		waiting = arrived(ctx, from, waiting)
		if len(waiting) == 0 {
			return result, reached, errors.Join(problems...)
		}
		i := a.best(waiting)
		c := waiting[i]
		waiting = slices.Delete(waiting, i, i+1)
		result, err := a.once(ctx, c)
		if err == nil {
			return result, observed.Yes, nil
		}
		reached = observed.No
		problems = append(problems, fmt.Errorf("through %s: %w", c.target.ID, err))
	}
}

func (a attempts[T]) once(ctx context.Context, c candidate) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, a.within)
	defer cancel()
	return a.try(ctx, c)
}

// best is the index of the first candidate that says it is healthy, else of one that does not know, else 0.
func (a attempts[T]) best(of []candidate) int {
	for _, wanted := range []observed.Tri{observed.Yes, observed.Unknown} {
		for i, c := range of {
			if a.health(c.answer.Host) == wanted {
				return i
			}
		}
	}
	return 0
}

// arrived adds the candidates that are there now to those waiting, and if nothing is waiting waits for one. It adds
// nothing once the channel is closed and empty, or ctx has ended.
func arrived(ctx context.Context, from <-chan candidate, waiting []candidate) []candidate {
	if ctx.Err() != nil {
		return nil
	}
	if len(waiting) == 0 {
		select {
		case c, open := <-from:
			if !open {
				return nil
			}
			waiting = append(waiting, c)
		case <-ctx.Done():
			return nil
		}
	}
	for {
		select {
		case c, open := <-from:
			if !open {
				return waiting
			}
			waiting = append(waiting, c)
		default:
			return waiting
		}
	}
}
