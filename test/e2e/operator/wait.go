package operator

import (
	"context"
	"fmt"
	"time"
)

// pollEvery is the time between two looks at a condition.
const pollEvery = 500 * time.Millisecond

// Until looks at a condition until it holds (nil). When it does not within the limit, the error says what was waited
// for and what the last look said.
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
			last = err // a look that was cut short says nothing
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited %s for %s: %w", limit, what, last)
		case <-tick.C:
		}
	}
}
