package probe

import (
	"context"
	"time"
)

// patient is a context that ends with context.DeadlineExceeded as its cause: after d, or, where underWay says then that
// an answer is coming, as soon as it says so no more. A busy host that has begun to answer is not a dead one.
func patient(parent context.Context, d time.Duration, underWay func() bool) (context.Context, context.CancelFunc) {
	const again = 250 * time.Millisecond
	ctx, cancel := context.WithCancelCause(parent)
	go func() {
		timer := time.NewTimer(d)
		defer timer.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
			}
			if !underWay() {
				cancel(context.DeadlineExceeded)
				return
			}
			timer.Reset(again)
		}
	}()
	return ctx, func() { cancel(context.Canceled) }
}
