package ssh

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"kubeone/internal/machines/provider"
)

// runs is what is under way on hosts, one run for each Machine at a time. A process that ends leaves nothing that the
// next one has to know: it looks at the host.
type runs struct {
	end chan struct{} // closed: all runs end, and none begins
	all sync.WaitGroup

	mu sync.Mutex
	of map[types.UID]*run
}

// run is one run about a Machine, or what came of the last one.
type run struct {
	goal   string // what it is to bring about
	cancel context.CancelFunc
	over   bool
	ended  time.Time
	err    error
	last   error // of the run before, for the same goal
	failed int   // in a row, for the same goal
}

// firstPause is after how long a goal is tried again that was not reached; it doubles up to longestPause.
const (
	firstPause   = 5 * time.Second
	longestPause = 2 * time.Minute
)

func (r *run) retryPause() time.Duration { return min(firstPause<<min(r.failed, 8), longestPause) }

// notDoneYet is what came of the last try, while nothing else is known: it is asked about again soon.
func notDoneYet(err error) error {
	if isWaiting(err) || errors.Is(err, errSilent) {
		return err
	}
	return &provider.Waiting{Reason: provider.Retrying, Message: err.Error(), After: poll}
}

// settling is how long what a run has reached may be doubted by a Node that has not become ready yet.
const settling = 30 * time.Second

func newRuns() *runs { return &runs{end: make(chan struct{}), of: map[types.UID]*run{}} }

// stopAll ends all runs, lets none begin any more, and returns when none is under way.
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

// renameGoal has what was reached be another goal, too.
func (r *runs) renameGoal(uid types.UID, goal string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if of := r.of[uid]; of != nil && of.over && of.err == nil {
		of.goal = goal
	}
}

// noteBegun notes that a run has got past what the one before it waited for.
func (r *runs) noteBegun(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if of := r.of[uid]; of != nil && !of.over && isWaiting(of.last) {
		of.last = nil
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

// recheck has what was reached looked at again, if that was not just now.
func (r *runs) recheck(uid types.UID, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if of := r.of[uid]; of != nil && of.over && of.err == nil && now.Sub(of.ended) > settling {
		delete(r.of, uid)
	}
}

// ensureRun sees to it that the Machine's goal is reached: it begins a run for it, or says what came of that. A run for
// another goal is ended first. What was reached is not looked at again as long as the goal is the same.
//
// A run outlives the call that begins it, and ends with the process.
func (r *runs) ensureRun(ctx context.Context, uid types.UID, goal, what string, do func(context.Context) error,
) (done bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.of[uid]
	switch {
	case now != nil && !now.over && now.goal != goal:
		now.cancel()
		return false, workingError("to stop what it did")
	case now != nil && !now.over && now.last != nil:
		return false, notDoneYet(now.last) // it is tried again, and nothing else is known yet
	case now != nil && !now.over:
		return false, workingError(what)
	case now != nil && now.goal == goal && now.err == nil:
		return true, nil
	case now != nil && now.goal == goal && time.Since(now.ended) < now.retryPause():
		return false, notDoneYet(now.err)
	}
	select {
	case <-r.end:
		return false, workingError("none: the process ends")
	default:
	}
	next := &run{goal: goal}
	if now != nil && now.goal == goal {
		next.failed, next.last = now.failed, now.err
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
		if next.over, next.ended, next.err = true, time.Now(), err; err != nil && !isWaiting(err) && ctx.Err() == nil {
			next.failed++
		}
	})
	if next.last != nil {
		return false, notDoneYet(next.last)
	}
	return false, workingError(what)
}

// isWaiting reports whether an error says that nothing was tried: what it is about passes by itself.
func isWaiting(err error) bool {
	_, ok := err.(*provider.Waiting) //nolint:errorlint // it is returned as it is
	return ok
}
