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

// HostLocks are the locks of one run on a set of hosts. When this process ends, hosts release their locks at once; if
// it hangs, other runs can take the locks after StaleAfter. Running steps continue, and a later run waits for them.
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
	// taken are closed when another run has taken the lock of that dispensable host. The map is not changed.
	taken map[string]chan struct{}
}

// Claim describes the run that takes a lock.
type Claim struct {
	Holder string // user@machine
	RunID  string
	Force  bool // also from a living run
	// Dispensable are the IDs of workers that the run skips if it cannot lock them. If the run is for several hosts, it
	// also skips workers that another run has locked or locks later, so that one worker does not stop the work on
	// others. A run that gets no lock at all, because another run holds them, fails.
	Dispensable map[string]bool
}

// TakeHosts takes the locks on all hosts in parallel, or none. If another run holds a live lock, the error is a
// *HeldError, unless Force is set. Dispensable hosts may stay unlocked; Denied returns the reason. The caller must call
// Release.
func TakeHosts(ctx context.Context, hosts map[string]host.Host, c Claim) (*HostLocks, error) {
	keep, stop := context.WithCancel(context.WithoutCancel(ctx))
	l := &HostLocks{
		hosts: hosts, generations: map[string]int64{}, denied: map[string]error{}, stop: stop,
		lost: make(chan struct{}), taken: map[string]chan struct{}{},
	}
	if len(hosts) > 1 {
		l.dispensable = c.Dispensable
	}
	for id := range l.dispensable {
		l.taken[id] = make(chan struct{})
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

// errorIfAllHeld returns a *HeldError if no host could be locked because another run holds the locks, and nil
// otherwise.
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

// Denied returns why a host is not locked and must not be changed. It returns nil for hosts that are locked or not in
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

// loseHost records that another run has taken the lock of a host. A dispensable host is denied from then on. If the
// host is not dispensable, or all hosts are denied, it closes Lost.
func (l *HostLocks) loseHost(id string, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dispensable[id] && l.denied[id] == nil {
		l.denied[id] = why
		close(l.taken[id])
	}
	if !l.dispensable[id] || len(l.denied) == len(l.hosts) {
		l.once.Do(func() { close(l.lost) })
	}
}

// While returns a context for work on a host. If the host is dispensable, the context ends with cause ErrLost when
// another run takes its lock. The caller must call the returned function when the work is done.
func (l *HostLocks) While(ctx context.Context, id string) (context.Context, func()) {
	if l == nil || l.taken[id] == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-l.taken[id]:
			cancel(ErrLost)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// Generation returns the generation of the lock on a host. The host refuses steps of older generations.
func (l *HostLocks) Generation(id string) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.generations[id]
}

// Lost returns a channel that is closed when another run has taken the lock of a host that is not dispensable. The host
// reports that within seconds. No step may start after that.
func (l *HostLocks) Lost() <-chan struct{} { return l.lost }

// Check asks all hosts that are not dispensable who holds their lock. It returns an error that wraps ErrLost as soon as
// one names another run. Hosts that do not answer are ignored. After the process was suspended, Check notices a lost
// lock before Lost does.
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

// CheckDispensable asks a dispensable host who holds its lock. If that is another run, it returns an error, and Denied
// returns the same error from then on. It returns nil for hosts that are not dispensable and for hosts that do not
// answer.
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

// AllConfirm reports whether all given hosts confirm that this run holds their lock.
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

// confirmHost asks one host who holds its lock. It returns true if this run does, an error that wraps ErrLost if
// another run does, and false if the host does not answer.
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

// Release releases the locks on all hosts and waits until the hosts have confirmed it.
func (l *HostLocks) Release() {
	l.stop()
	l.keepers.Wait()
}
