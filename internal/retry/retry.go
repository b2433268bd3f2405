// Package retry repeats calls that may succeed if tried again.
package retry

import (
	"context"
	"time"
)

// Policy says which errors to retry, how often, and with what pauses. The zero value tries once.
type Policy struct {
	// Transient reports whether the same call may succeed a moment later; nil: never.
	Transient func(error) bool
	// Attempts is the maximum number of calls; 0 is no limit, and the context ends them.
	Attempts int
	// First is the pause after the first failure. Each later pause is Factor times as long (below 1 counts as 1), at
	// most Max (0: no limit).
	First, Max time.Duration
	Factor     int
}

// Do repeats the call until it succeeds, returns an error that is not transient, has failed Attempts times, or ctx
// ends. It returns the last error of the call, even if ctx ended.
func (p Policy) Do(ctx context.Context, call func(context.Context) error) error {
	pause := p.First
	for n := 1; ; n++ {
		err := call(ctx)
		if err == nil || p.Transient == nil || !p.Transient(err) || n == p.Attempts || !Pause(ctx, pause) {
			return err
		}
		pause *= time.Duration(max(1, p.Factor))
		if p.Max > 0 {
			pause = min(pause, p.Max)
		}
	}
}

// Pause waits for d. It returns false if ctx ends first, and true otherwise.
func Pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}
