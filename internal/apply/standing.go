package apply

import "time"

// Answer is what the cluster's Lease says when a run asks whether it still has it.
type Answer int

// The answers.
const (
	Silent Answer = iota // the API did not answer
	Ours                 // it is this run's
	Taken                // it is another run's
)

// Standing is what a run about the cluster knows, before it begins a step, of its right to do so.
type Standing struct {
	Lease   Answer
	Renewed time.Duration // how long ago the Lease was last known to be ours
	// Locked says that every control-plane host of the cluster has just said that its lock is ours.
	Locked bool
}

// Verdict is what follows from a Standing.
type Verdict int

// The verdicts.
const (
	AskAgain Verdict = iota // nobody knows whether another run is at work
	MayBegin
	MustEnd
)

// Verdict says whether the next step may begin. A Lease that is not renewed for LeaseDuration may be taken by
// another run, and that one may reach other hosts than this one: so a run whose API is silent goes on only as
// long as its last renewal counts, or while it has the lock of every control-plane host. Whoever takes the
// Lease reaches the API through a control-plane host that it has locked.
func (s Standing) Verdict() Verdict {
	switch {
	case s.Lease == Taken:
		return MustEnd
	case s.Lease == Ours, s.Locked, s.Renewed < LeaseTrust:
		return MayBegin
	}
	return AskAgain
}
