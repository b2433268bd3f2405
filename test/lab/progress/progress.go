// Package progress logs the start, the continuation and the end of long operations.
package progress

import (
	"sync"
	"time"
)

const (
	// Every is the interval of messages about a running operation.
	Every = 10 * time.Second
	// patience is the delay of the first message. Cached results take less.
	patience = 300 * time.Millisecond
)

// Logf receives one line of progress, without a newline. A nil Logf discards it.
type Logf func(format string, args ...any)

// During runs work and logs its progress: once it takes longer than a moment, every 10 seconds after that, and at its
// end. It logs nothing more for work that was quick or has failed. It writes all lines before it returns.
func (log Logf) During(what string, work func() error) error {
	if log == nil {
		return work()
	}
	begun := time.Now()
	stop := log.followWork(what, begun)
	err := work()
	if mentioned := stop(); mentioned && err == nil {
		log("%s: done in %s", what, elapsedSince(begun))
	}
	return err
}

// followWork starts messages about an operation. stop ends them, and reports whether there were any.
func (log Logf) followWork(what string, begun time.Time) (stop func() (mentioned bool)) {
	var wait sync.WaitGroup
	ended, mentioned := make(chan struct{}), false
	wait.Go(func() {
		next := time.NewTimer(patience)
		defer next.Stop()
		for {
			select {
			case <-ended:
				return
			case <-next.C:
			}
			if mentioned {
				log("%s: %s so far", what, elapsedSince(begun))
			} else {
				log("%s", what)
			}
			mentioned = true
			next.Reset(Every)
		}
	})
	return func() bool {
		close(ended)
		wait.Wait()
		return mentioned
	}
}

// elapsedSince returns the time since begun in seconds, or in tenths of a second below ten.
func elapsedSince(begun time.Time) time.Duration {
	took := time.Since(begun)
	if took < 10*time.Second {
		return took.Round(time.Second / 10)
	}
	return took.Round(time.Second)
}
