package etcd

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestHowLongAnElectionIsWaitedFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		yesAt int           // index of the answer that is yes
		ends  time.Duration // when ctx ends
		asked int
		took  time.Duration
	}{
		"at once":          {1, time.Hour, 1, electionEvery},
		"after a while":    {4, time.Hour, 4, 4 * electionEvery},
		"never":            {1000, time.Hour, 19, electionWithin},
		"ctx ends earlier": {1000, 2*electionEvery + 1, 2, 2*electionEvery + 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), c.ends)
				defer cancel()
				began, asked := time.Now(), 0
				pollUntil(ctx, electionWithin, electionEvery, func(context.Context) bool {
					asked++
					return asked == c.yesAt
				})
				took := time.Since(began)
				// Pause and limit end at the same moment; either may win.
				if asked != c.asked && asked != c.asked+1 || took != c.took {
					t.Errorf("asked %d times in %s, want %d times in %s", asked, took, c.asked, c.took)
				}
			})
		})
	}
}
