package engine

import (
	"context"
	"time"

	"kubeone/internal/decide/fsm"
)

const (
	settleTimeout = time.Minute
	settleEvery   = time.Second
)

// ComingUp returns the names of members that answer, are not healthy, and may become so by themselves.
func (l Look) ComingUp() []string {
	var names []string
	for _, id := range l.Decision().ComingUp {
		names = append(names, l.Plan.Hosts[id])
	}
	return names
}

// LookUntilUp looks until no member is coming up any more. What is still so after a minute is what the returned look says.
func (e *Engine) LookUntilUp(ctx context.Context) (Look, error) {
	return e.lookUntil(ctx, func(l Look) bool { return len(l.ComingUp()) == 0 })
}

// matches reports whether the cluster is as its manifest says.
func matches(l Look) bool { return l.Plan.Empty() && l.Decision().Route != fsm.Error }

// lookUntil looks until ok, for a minute at most: components that have just come up may be slow to answer.
func (e *Engine) lookUntil(ctx context.Context, ok func(Look) bool) (Look, error) {
	deadline := e.opt.Now().Add(settleTimeout)
	for {
		l, err := e.Look(ctx)
		if err != nil || ok(l) || e.opt.Now().After(deadline) {
			return l, err
		}
		again := time.NewTimer(settleEvery)
		select {
		case <-ctx.Done():
			again.Stop()
			return l, ctx.Err()
		case <-again.C:
		}
	}
}
