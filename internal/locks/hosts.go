package locks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"

	"kubeone/internal/host"
	"kubeone/internal/script"
)

// HostLocks are one run's locks on a set of hosts. A host releases its lock by itself when this process ends or has
// been silent for some seconds. Running steps continue, and a later run finds them.
type HostLocks struct {
	hosts       map[string]host.Host // by ID, not changed
	dispensable map[string]bool      // not changed: hosts whose lock the run can do without
	mu          sync.Mutex
	generations map[string]int64
	denied      map[string]error // why hosts are not locked, or not any more
	stop        context.CancelFunc
	keepers     sync.WaitGroup
	lost        chan struct{} // closed when another run has taken the lock of some host
	once        sync.Once     // closes it
	// gone are closed when another run has taken the lock of that dispensable host. The map is not changed.
	gone map[string]chan struct{}
}

// Claim describes the run that takes a lock.
type Claim struct {
	Holder string // user@machine
	RunID  string
	Force  bool // also from a living run
	// Dispensable are the IDs of hosts, workers, that the run leaves alone if it cannot lock them. If the run is
	// about several hosts, this includes hosts that another run has locked or locks later: no worker decides about
	// others. A run that gets no lock at all fails, as another run has them.
	Dispensable map[string]bool
}

// TakeHosts takes the lock on every host, in parallel, or on none. A live lock of another run is a *HeldError, unless
// taken by force. If a dispensable host is not locked, Denied says why. The caller must call Release.
func TakeHosts(ctx context.Context, hosts map[string]host.Host, c Claim) (*HostLocks, error) {
	keep, stop := context.WithCancel(context.WithoutCancel(ctx))
	l := &HostLocks{
		hosts: hosts, generations: map[string]int64{}, denied: map[string]error{}, stop: stop,
		lost: make(chan struct{}), gone: map[string]chan struct{}{},
	}
	if len(hosts) > 1 {
		l.dispensable = c.Dispensable
	}
	for id := range l.dispensable {
		l.gone[id] = make(chan struct{})
	}
	type answer struct {
		id  string
		err error
	}
	answers := make(chan answer, len(hosts))
	for id := range hosts {
		go func() {
			generation, err := l.takeHost(ctx, keep, id, c)
			l.mu.Lock()
			l.generations[id] = generation
			l.mu.Unlock()
			answers <- answer{id, err}
		}()
	}
	var errs []error
	for range hosts {
		a := <-answers
		held := (*HeldError)(nil)
		switch {
		case a.err == nil:
		case c.Dispensable[a.id] && (l.dispensable[a.id] || !errors.As(a.err, &held)) && ctx.Err() == nil:
			l.denyHost(a.id, a.err)
		default:
			errs = append(errs, a.err)
		}
	}
	if held := l.errorIfAllHeld(); held != nil {
		errs = append(errs, held)
	}
	if len(errs) > 0 {
		l.Release()
		sort.Slice(errs, func(i, j int) bool { return errs[i].Error() < errs[j].Error() })
		return nil, errs[0]
	}
	return l, nil
}

// errorIfAllHeld returns the *HeldError if no host was locked because of another run.
func (l *HostLocks) errorIfAllHeld() error {
	for id := range l.hosts {
		if l.Generation(id) != 0 {
			return nil
		}
	}
	var held error
	for _, id := range slices.Sorted(maps.Keys(l.hosts)) {
		if by := (*HeldError)(nil); held == nil && errors.As(l.Denied(id), &by) {
			held = by
		}
	}
	return held
}

// Denied returns why a host could not be locked and must not be changed; nil for a host that is locked, or is not in
// the set.
func (l *HostLocks) Denied(id string) error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.denied[id]
}

func (l *HostLocks) denyHost(id string, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.denied[id] = why
}

// loseHost records that another run has taken the lock of a host. A dispensable host is denied from then on. Without
// any host left, the run has lost its lock.
func (l *HostLocks) loseHost(id string, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dispensable[id] && l.denied[id] == nil {
		l.denied[id] = why
		close(l.gone[id])
	}
	if !l.dispensable[id] || len(l.denied) == len(l.hosts) {
		l.once.Do(func() { close(l.lost) })
	}
}

// While returns a context for work on a host. It ends, with cause ErrLost, when another run has taken the lock of a
// dispensable host. The caller must call the function when done.
func (l *HostLocks) While(ctx context.Context, id string) (context.Context, func()) {
	if l == nil || l.gone[id] == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-l.gone[id]:
			cancel(ErrLost)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// Generation returns the fencing number of the lock on a host; the host refuses steps of older ones.
func (l *HostLocks) Generation(id string) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.generations[id]
}

// Lost is closed when a host that is not dispensable has reported, within seconds, that another run took its lock.
// Nothing may begin after that.
func (l *HostLocks) Lost() <-chan struct{} { return l.lost }

// Check asks all hosts that are not dispensable for the holder of their lock. It returns ErrLost as soon as one names
// another run; a host without an answer does not count. A process that stood still learns of a loss here first.
func (l *HostLocks) Check(ctx context.Context) error {
	answers := make(chan error, len(l.hosts))
	requests := 0
	for id := range l.hosts {
		if l.Denied(id) != nil || l.dispensable[id] {
			continue
		}
		requests++
		go func() {
			_, err := l.confirmHost(ctx, id)
			answers <- err
		}()
	}
	for range requests {
		if err := <-answers; err != nil {
			return err
		}
	}
	return ctx.Err()
}

// CheckDispensable asks a dispensable host for the holder of its lock. If that is another run, it returns an error,
// the same as Denied from then on, and the run leaves the host alone. It returns nil for all other hosts and for one
// that does not answer.
func (l *HostLocks) CheckDispensable(ctx context.Context, id string) error {
	if l == nil || !l.dispensable[id] {
		return nil
	}
	if denied := l.Denied(id); denied != nil {
		return denied
	}
	if _, err := l.confirmHost(ctx, id); err == nil {
		return nil
	}
	l.loseHost(id,
		fmt.Errorf("another run has taken the lock on %s, so this run leaves it alone", l.hosts[id].Name()))
	return l.Denied(id)
}

// AllConfirm asks the given hosts for the holder of their lock, and reports whether all of them named this run.
func (l *HostLocks) AllConfirm(ctx context.Context, ids []string) bool {
	answers := make(chan bool, len(ids))
	for _, id := range ids {
		go func() {
			ours, err := l.confirmHost(ctx, id)
			answers <- ours && err == nil
		}()
	}
	all := true
	for range ids {
		all = <-answers && all
	}
	return all
}

// confirmHost asks one host: true if the lock is ours, ErrLost if it is another run's, false if there is no answer.
func (l *HostLocks) confirmHost(ctx context.Context, id string) (bool, error) {
	h, ok := l.hosts[id]
	if !ok {
		return false, nil
	}
	res, err := h.Run(ctx, host.Cmd{
		Name:    "look at the lock",
		Script:  `cat "$1/generation"`,
		Args:    []string{script.LockDir},
		Timeout: CheckTimeout,
	})
	latest, wrong := strconv.ParseInt(strings.TrimSpace(string(res.Stdout)), 10, 64)
	ours := l.Generation(id)
	switch {
	case err != nil, wrong != nil, ours == 0:
		return false, nil //nolint:nilerr // silence is neither an answer nor an error
	case latest > ours:
		return false, fmt.Errorf("%s: %w", h.Name(), ErrLost)
	}
	return latest == ours, nil
}

// Release releases the lock on all hosts and waits until they have noticed.
func (l *HostLocks) Release() {
	l.stop()
	l.keepers.Wait()
}
