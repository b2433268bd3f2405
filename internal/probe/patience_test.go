package probe

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"kubeone/internal/host"
	"kubeone/internal/model/observed"
)

// pausesAfterItsFirstWord is a host that begins its answer at once and prints the rest after the pause.
func pausesAfterItsFirstWord(pause time.Duration) *fakeHost {
	return &fakeHost{run: func(ctx context.Context, c host.Cmd) (host.Result, error) {
		if err := answer(c, []string{"kubeone-probe 1", "uid 0"}); err != nil {
			return host.Result{}, err
		}
		select {
		case <-time.After(pause):
			return host.Result{}, answer(c, []string{"hostname busy", "end 1"})
		case <-ctx.Done():
			return host.Result{ExitCode: -1}, context.Cause(ctx)
		}
	}}
}

// pausesBeforeItsFirstWord is a host that is silent for the pause, then prints everything.
func pausesBeforeItsFirstWord(pause time.Duration) *fakeHost {
	return &fakeHost{run: func(ctx context.Context, c host.Cmd) (host.Result, error) {
		select {
		case <-time.After(pause):
			return says(nil).run(ctx, c)
		case <-ctx.Done():
			return host.Result{ExitCode: -1}, context.Cause(ctx)
		}
	}}
}

// A probe waits for a busy host that has begun to answer, but not for a paused one, neither with other hosts nor
// alone.
func TestAnAnswerUnderWayIsWaitedFor(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		pause time.Duration
		took  time.Duration
		reach observed.Reach
	}{
		{name: "a quick host beside a paused one", pause: 0, took: 8 * time.Second, reach: observed.Reached},
		{name: "a busy host", pause: 20 * time.Second, took: 20 * time.Second, reach: observed.Reached},
		{name: "a host that never ends", pause: time.Hour, took: 30 * time.Second, reach: observed.Unreachable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				r, err := Run(t.Context(), Request{Targets: []Target{
					{ID: "busy", Host: pausesAfterItsFirstWord(tt.pause)},
					{ID: "paused", Host: hangs(nil)},
				}})
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(start); took < tt.took || took > tt.took+time.Second {
					t.Errorf("took %v, want %v", took, tt.took)
				}
				if got := r.World.Hosts["busy"]; got.Reach != tt.reach {
					t.Errorf("the busy host: %+v, want %v", got, tt.reach)
				}
				if got := r.World.Hosts["paused"]; got.Reach != observed.Unreachable {
					t.Errorf("the paused host: %+v", got)
				}
			})
		})
	}
}
