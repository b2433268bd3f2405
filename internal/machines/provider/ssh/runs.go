package ssh

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"kubeone/internal/machines/provider"
)

// runs has the runs on hosts, at most one at a time for each Machine. They are not persisted: a new process probes the
// hosts instead. Its methods may be called concurrently.
type runs struct {
	end chan struct{} // closed by stopAll: all runs end, and none begins
	all sync.WaitGroup

	mu sync.Mutex
	of map[types.UID]*run
}

// run is the current run for a Machine, or the result of the last one.
type run struct {
	goal        string
	cancel      context.CancelFunc
	finished    bool
	ended       time.Time
	err         error
	previousErr error // of the previous run for the same goal
	failed      int   // failed runs in a row for the same goal
}

// firstPause is the delay before the first retry of a goal. It doubles up to longestPause.
const (
	minPause = 5 * time.Second
	maxPause = 2 * time.Minute
)

func (r *run) retryPause() time.Duration { return min(minPause<<min(r.failed, 8), maxPause) }

// asWaiting returns the last run's error as a *provider.Waiting, until the next run has a result.
func asWaiting(err error) error {
	if isWaiting(err) || errors.Is(err, errUnresponsive) {
		return err
	}
	return &provider.Waiting{Reason: provider.Retrying, Message: err.Error(), After: poll}
}

// recheckDelay is the time after a successful run in which a Node that is not ready does not cause another run.
const recheckDelay = 30 * time.Second

func newRuns() *runs { return &runs{end: make(chan struct{}), of: map[types.UID]*run{}} }

// stopAll cancels all runs, prevents new ones, and returns when all have ended. It must be called once only.
func (r *runs) stopAll() {
	r.mu.Lock()
	close(r.end)
	r.mu.Unlock()
	r.all.Wait()
}

func (r *runs) forgetRun(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if of := r.of[uid]; of != nil && of.cancel != nil {
		of.cancel()
	}
	delete(r.of, uid)
}

// renameGoal makes a reached goal count as another one.
func (r *runs) renameGoal(uid types.UID, goal string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if of := r.of[uid]; of != nil && of.finished && of.err == nil {
		of.goal = goal
	}
}

// noteBegun records that the current run has got past the previous run's Waiting error.
func (r *runs) noteBegun(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if of := r.of[uid]; of != nil && !of.finished && isWaiting(of.previousErr) {
		of.previousErr = nil
	}
}

func (r *runs) failureCount(uid types.UID) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if of := r.of[uid]; of != nil {
		return of.failed
	}
	return 0
}

// recheck forgets a reached goal, so that the next call starts a run, unless it was reached within recheckDelay.
func (r *runs) recheck(uid types.UID, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if of := r.of[uid]; of != nil && of.finished && of.err == nil && now.Sub(of.ended) > recheckDelay {
		delete(r.of, uid)
	}
}

// ensureRun starts a run for the Machine's goal, or returns the state or result of one. A run for another goal is
// canceled first. A reached goal is not run again. It returns false with an error until the goal is reached.
//
// A run outlives the call and its context. It ends with the process.
func (r *runs) ensureRun(ctx context.Context, uid types.UID, goal, what string, do func(context.Context) error,
) (done bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.of[uid]
	switch {
	case now != nil && !now.finished && now.goal != goal:
		now.cancel()
		return false, workingError("stop the previous run")
	case now != nil && !now.finished && now.previousErr != nil:
		return false, asWaiting(now.previousErr) // a retry has no result yet
	case now != nil && !now.finished:
		return false, workingError(what)
	case now != nil && now.goal == goal && now.err == nil:
		return true, nil
	case now != nil && now.goal == goal && time.Since(now.ended) < now.retryPause():
		return false, asWaiting(now.err)
	}
	select {
	case <-r.end:
		return false, &provider.Waiting{
			Reason: provider.Working, Message: "the controllers are shutting down", After: poll,
		}
	default:
	}
	next := &run{goal: goal}
	if now != nil && now.goal == goal {
		next.failed, next.previousErr = now.failed, now.err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	next.cancel = cancel
	r.of[uid] = next
	over := make(chan struct{})
	r.all.Go(func() {
		select {
		case <-r.end:
			cancel()
		case <-over:
		}
	})
	r.all.Go(func() {
		defer close(over)
		defer cancel()
		err := do(ctx)
		r.mu.Lock()
		defer r.mu.Unlock()
		if next.finished, next.ended, next.err = true, time.Now(), err; err != nil && !isWaiting(err) && ctx.Err() == nil {
			next.failed++
		}
	})
	if next.previousErr != nil {
		return false, asWaiting(next.previousErr)
	}
	return false, workingError(what)
}

// isWaiting reports whether err itself is a *provider.Waiting. Such a run has not failed.
func isWaiting(err error) bool {
	_, ok := err.(*provider.Waiting) //nolint:errorlint // it is never wrapped
	return ok
}
