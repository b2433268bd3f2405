// Package progress tells whoever waits for something long that it began, that it still goes on, and that it is done.
package progress

import (
	"sync"
	"time"
)

const (
	// Every is how often something that goes on is mentioned.
	Every = 10 * time.Second
	// patience is how long something may take before it is mentioned at all: what is already there takes less.
	patience = 300 * time.Millisecond
)

// Logf receives one line of progress, without a newline. A nil Logf is told nothing.
type Logf func(format string, args ...any)

// During runs work, and meanwhile tells of it: when it turns out not to be done at once, every 10 seconds from then on,
// and when it is done. What is done at once, or has failed, is not mentioned again. All lines are written before During
// returns.
func (log Logf) During(what string, work func() error) error {
	if log == nil {
		return work()
	}
	begun := time.Now()
	stop := log.follow(what, begun)
	err := work()
	if mentioned := stop(); mentioned && err == nil {
		log("%s: done in %s", what, elapsed(begun))
	}
	return err
}

// follow starts to tell of something that began; the function that it returns ends that, and reports whether it was
// mentioned.
func (log Logf) follow(what string, begun time.Time) (stop func() (mentioned bool)) {
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
				log("%s: %s so far", what, elapsed(begun))
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

// elapsed is the time since begun, in seconds, and in tenths of one below ten.
func elapsed(begun time.Time) time.Duration {
	took := time.Since(begun)
	if took < 10*time.Second {
		return took.Round(time.Second / 10)
	}
	return took.Round(time.Second)
}
