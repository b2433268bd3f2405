package locks

import (
	"errors"
	"fmt"
	"time"

	"kubeone/internal/locks/leaselock"
	"kubeone/internal/script"
)

// ErrLost means that another run has taken a lock of this run. It is also the cause of the contexts that Guard and
// While end.
var ErrLost = errors.New("the lock on this host was taken over by another run")

// HeldError means that another operator works on the cluster.
type HeldError struct {
	Host, Holder, RunID string
	Since               time.Time
}

// Error says who holds the lock, where, since when, and what to do.
func (e *HeldError) Error() string {
	return fmt.Sprintf("%s works on this cluster (run %s, lock on %s since %s): wait for that run to end, or take the "+
		"lock over with --force-unlock",
		e.Holder, e.RunID, e.Host, e.Since.Format(time.RFC3339))
}

// UnwritableError means that a host cannot be locked, because nothing can be written there.
type UnwritableError struct {
	Host   string
	Reason string // as the host reports it: "No space left on device"
}

// Error returns the host, the reason and what to do.
func (e *UnwritableError) Error() string {
	return fmt.Sprintf("%s cannot be locked, so nothing is done there: %s is not writable (%s); free "+
		"space there or repair its disk, then apply again",
		e.Host, script.LockDir, e.Reason)
}

// TakenError means that this run ended early because another run took the cluster lock.
type TakenError struct {
	By  leaselock.Holder
	Err error // another error of the run; nil if there is none
}

// Error says who has the lock, and what to do.
func (e *TakenError) Error() string {
	by := "another run"
	if e.By.Name != "" {
		by = fmt.Sprintf("%s (run %s)", e.By.Name, e.By.RunID)
	}
	text := by + " took the cluster lock: running steps continue on their hosts, and no others were started; run " +
		"kubeone history to see that run, and kubeone apply again when it has ended"
	if e.Err != nil {
		text += "\n" + e.Err.Error()
	}
	return text
}

// Unwrap returns ErrLost and the run's other error.
func (e *TakenError) Unwrap() []error { return []error{ErrLost, e.Err} }

// removeError returns a joined error without one of its parts, or nil if there are no others.
func removeError(err, part error) error {
	joined, ok := err.(interface{ Unwrap() []error }) // nested joined errors are not changed
	if !ok {
		return nil
	}
	var left []error
	for _, one := range joined.Unwrap() {
		if !errors.Is(one, part) {
			left = append(left, one)
		}
	}
	return errors.Join(left...)
}
