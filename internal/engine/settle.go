package engine

import (
	"context"
	"time"

	"kubeone/internal/retry"
)

// How long members may take to come up, and a cluster to be as a run has made it, and how often it is looked at
// meanwhile.
const (
	SettleTimeout = time.Minute
	SettleEvery   = time.Second
	// HangTimeout is how long hosts may be silent whose Nodes are ready before they count as hanging, and what differs
	// may be what has just come up before it counts as left to do. A look takes seconds where one is silent, so that
	// this is time for two or three of them.
	HangTimeout = 15 * time.Second
)

// ProposeUntilUp proposes for that time, as long as another look may lead to another proposal (Proposal.MayChange).
// What is still so then is what the returned proposal, or the error, says; at least one look is made.
func (e *Engine) ProposeUntilUp(ctx context.Context, r Request, within time.Duration) (Proposal, error) {
	return e.proposeUntil(ctx, r, within, func(p Proposal) bool { return !p.MayChange(nil) }, func(Proposal) {})
}

func isUp(p Proposal) bool { return len(p.ComingUp()) == 0 }

// proposeUntil proposes until ok, for that time at most: components that have just come up may be slow to answer.
// Before each further look, again is told what the last one found.
func (e *Engine) proposeUntil(ctx context.Context, r Request, within time.Duration, ok func(Proposal) bool,
	again func(Proposal)) (Proposal, error) {
	deadline := e.cfg.Now().Add(within)
	for {
		p, err := e.Propose(ctx, r)
		ended := err == nil && ok(p) || err != nil && !p.MayChange(err)
		if ended || e.cfg.Now().After(deadline) {
			return p, err
		}
		again(p)
		if !retry.Pause(ctx, SettleEvery) {
			return p, ctx.Err()
		}
	}
}
