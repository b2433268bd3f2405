// Package retry tries again what may succeed a moment later.
package retry

import (
	"context"
	"time"
)

// Policy says what is tried again, how often, and with which pauses. The zero value tries once.
type Policy struct {
	// Transient reports whether the same call may succeed a moment later; nil: never.
	Transient func(error) bool
	// Attempts is how often the call is made at most; 0 is without limit: the context ends it.
	Attempts int
	// First is the pause after the first failure. Each later one is Factor times as long (below 1 counts as 1), at most
	// Max (0 is without limit).
	First, Max time.Duration
	Factor     int
}

// Do calls until the call succeeds, fails for good or Attempts times, or ctx ends. The error is always the last that
// the call returned, never ctx's own.
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

// Pause waits for d, or returns false when ctx ends first.
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
