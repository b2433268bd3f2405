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

// HostLocks are the locks of one run on a set of hosts. A host gives its lock up by itself when this process ends or is
// not heard of for some seconds; steps that are running go on, and a later run finds them.
type HostLocks struct {
	hosts       map[string]host.Host // by ID, not changed
	dispensable map[string]bool      // not changed: hosts without whose lock the run goes on, whoever has it
	mu          sync.Mutex
	generations map[string]int64
	denied      map[string]error // hosts that could not be locked, or are not any more, and why
	stop        context.CancelFunc
	keepers     sync.WaitGroup
	lost        chan struct{} // closed when another run has taken the lock of some host
	once        sync.Once     // closes it
	// gone are closed when another run has taken the lock of that dispensable host. The map is not changed.
	gone map[string]chan struct{}
}

// Claim is what a run says when it takes a lock.
type Claim struct {
	Holder string // user@machine
	RunID  string
	Force  bool // also from a living run
	// Dispensable are the IDs of hosts without whose lock the run goes on, and which it then does not touch: workers.
	// Where the run is about more hosts than one, that holds also where another run has their lock, or takes it later:
	// no worker has a say in what is done about others. A run that gets no lock at all is another one's to wait for.
	Dispensable map[string]bool
}

// TakeHosts takes the lock on every host, in parallel, or on none. A live lock of another run is a *HeldError,
// unless it is taken by force. Where a dispensable host is not locked, Denied says why. Callers Release it.
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
	if held := l.heldEverywhere(); held != nil {
		errs = append(errs, held)
	}
	if len(errs) > 0 {
		l.Release()
		sort.Slice(errs, func(i, j int) bool { return errs[i].Error() < errs[j].Error() })
		return nil, errs[0]
	}
	return l, nil
}

// heldEverywhere is who has the hosts, where none was locked and another run is why.
func (l *HostLocks) heldEverywhere() error {
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

// Denied is why a host could not be locked, and so must not be touched; nil for a host that is locked, or was not
// to be.
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

// loseHost notes that another run has taken the lock of a host. A dispensable one is denied from then on, and the run
// has lost its lock when no host is left.
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

// While returns a context for what is done about a host: it ends, because of ErrLost, when another run has taken
// the lock of a dispensable one. Callers call the function when they have done.
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

// Generation is the fencing number of the lock on a host; steps of an older one are refused by the host.
func (l *HostLocks) Generation(id string) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.generations[id]
}

// Lost is closed when some host that is not dispensable has said that another run took its lock, which is known within
// seconds. Nothing may be begun from then on.
func (l *HostLocks) Lost() <-chan struct{} { return l.lost }

// Check asks all hosts that are not dispensable whose lock it is, now. It is ErrLost as soon as one has another
// run's; one that does not answer says nothing. A process that stood still, and does not know it, learns it so before
// it is told.
func (l *HostLocks) Check(ctx context.Context) error {
	answers := make(chan error, len(l.hosts))
	asked := 0
	for id := range l.hosts {
		if l.Denied(id) != nil || l.dispensable[id] {
			continue
		}
		asked++
		go func() {
			_, err := l.confirmHost(ctx, id)
			answers <- err
		}()
	}
	for range asked {
		if err := <-answers; err != nil {
			return err
		}
	}
	return ctx.Err()
}

// CheckDispensable asks a host without whose lock the run goes on whose lock it is, now. If it is another run's, the
// error says so, and from now on Denied: nothing is done about it any more. Of every other host, and of one that does
// not answer, it says nothing.
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
		fmt.Errorf("another run has taken the lock on %s, so nothing more is done about it", l.hosts[id].Name()))
	return l.Denied(id)
}

// Confirmed asks the hosts given whose lock it is, now, and reports whether every one has answered that it is this
// run's.
func (l *HostLocks) Confirmed(ctx context.Context, ids []string) bool {
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

// confirmHost asks one host: true if it says that the lock is ours, ErrLost if another run's, and neither if it
// does not say.
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
		return false, nil //nolint:nilerr // a host that does not say is no answer, and no error
	case latest > ours:
		return false, fmt.Errorf("%s: %w", h.Name(), ErrLost)
	}
	return latest == ours, nil
}

// Release gives the lock up on all hosts and waits until they know.
func (l *HostLocks) Release() {
	l.stop()
	l.keepers.Wait()
}
