package ssh

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"kubeone/internal/machines/provider"
)

// runs contains the runs on hosts, at most one at a time for each Machine. They are not persisted: a new process probes
// the hosts instead. Its methods may be called concurrently.
type runs struct {
	end chan struct{} // closed by stopAll; then all runs end, and no new run starts
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
	previousErr error // error of the previous run for the same goal
	failed      int   // consecutive failed runs for the same goal
}

// minPause is the delay before the first retry of a goal. It doubles with each failure, up to maxPause.
const (
	minPause = 5 * time.Second
	maxPause = 2 * time.Minute
)

func (r *run) retryPause() time.Duration { return min(minPause<<min(r.failed, 8), maxPause) }

// asWaiting returns the error of the last run as a *provider.Waiting, to report it until the next run has a result. It
// returns errUnresponsive unchanged.
func asWaiting(err error) error {
	if isWaiting(err) || errors.Is(err, errUnresponsive) {
		return err
	}
	return &provider.Waiting{Reason: provider.Retrying, Message: err.Error(), After: poll}
}

// recheckDelay is how long after a successful run a Node that is not ready does not cause another run.
const recheckDelay = 30 * time.Second

func newRuns() *runs { return &runs{end: make(chan struct{}), of: map[types.UID]*run{}} }

// stopAll cancels all runs and prevents new ones. It returns when all have ended. It must be called only once.
func (r *runs) stopAll() {
	r.mu.Lock()
	close(r.end)
	r.mu.Unlock()
	r.all.Wait()
}

func (r *runs) forgetRun(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if current := r.of[uid]; current != nil && current.cancel != nil {
		current.cancel()
	}
	delete(r.of, uid)
}

// renameGoal records that a goal that has been reached also counts as this goal.
func (r *runs) renameGoal(uid types.UID, goal string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if current := r.of[uid]; current != nil && current.finished && current.err == nil {
		current.goal = goal
	}
}

// noteBegun records that the current run has overcome the reason for which the previous run had to wait.
func (r *runs) noteBegun(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if current := r.of[uid]; current != nil && !current.finished && isWaiting(current.previousErr) {
		current.previousErr = nil
	}
}

func (r *runs) failureCount(uid types.UID) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if current := r.of[uid]; current != nil {
		return current.failed
	}
	return 0
}

// recheck forgets a goal that has been reached, so that the next call starts a new run. It does nothing if the goal was
// reached within recheckDelay.
func (r *runs) recheck(uid types.UID, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if current := r.of[uid]; current != nil && current.finished && current.err == nil &&
		now.Sub(current.ended) > recheckDelay {
		delete(r.of, uid)
	}
}

// ensureRun starts a run for the goal of the Machine, or reports the run in progress or the result of the last one. If
// a run for another goal is in progress, it cancels that run first. A goal that has been reached is not run again.
// Until the goal is reached, it returns false and an error.
//
// A run does not end with the call or its context. It ends with the process at the latest.
func (r *runs) ensureRun(ctx context.Context, uid types.UID, goal, what string, do func(context.Context) error,
) (done bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	current := r.of[uid]
	switch {
	case current != nil && !current.finished && current.goal != goal:
		current.cancel()
		return false, workingError("stop the previous run")
	case current != nil && !current.finished && current.previousErr != nil:
		return false, asWaiting(current.previousErr) // a retry has no result yet
	case current != nil && !current.finished:
		return false, workingError(what)
	case current != nil && current.goal == goal && current.err == nil:
		return true, nil
	case current != nil && current.goal == goal && time.Since(current.ended) < current.retryPause():
		return false, asWaiting(current.err)
	}
	select {
	case <-r.end:
		return false, &provider.Waiting{
			Reason: provider.Working, Message: "the controllers are shutting down", After: poll,
		}
	default:
	}
	next := &run{goal: goal}
	if current != nil && current.goal == goal {
		next.failed, next.previousErr = current.failed, current.err
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
		if next.finished, next.ended, next.err = true, time.Now(), err; err != nil && !isWaiting(err) &&
			ctx.Err() == nil {
			next.failed++
		}
	})
	if next.previousErr != nil {
		return false, asWaiting(next.previousErr)
	}
	return false, workingError(what)
}

// isWaiting reports whether err itself is a *provider.Waiting. A run with this result has not failed.
func isWaiting(err error) bool {
	_, ok := err.(*provider.Waiting) //nolint:errorlint // it is never wrapped
	return ok
}
