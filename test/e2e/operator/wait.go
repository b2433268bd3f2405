package operator

import (
	"context"
	"fmt"
	"time"
)

// pollEvery is the time between two checks of a condition.
const pollEvery = 500 * time.Millisecond

// Until checks a condition until it returns nil. After the limit, it returns an error with the subject and the result
// of the last check.
func Until(ctx context.Context, what string, limit time.Duration, holds func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	var last error
	for {
		err := holds(ctx)
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil {
			last = err // an interrupted check is not a result
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited %s for %s: %w", limit, what, last)
		case <-tick.C:
		}
	}
}
