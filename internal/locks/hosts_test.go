package locks

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kubeone/internal/host"
	"kubeone/internal/testutil/hosttest"

	"github.com/google/go-cmp/cmp"
)

// patience returns a context that ends before the test's own.
func patience(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func take(t *testing.T, m *hosttest.Host, run string, force bool) (*HostLocks, error) {
	t.Helper()
	return TakeHosts(patience(t), map[string]host.Host{"1": m}, Claim{Holder: "you@there", RunID: run, Force: force})
}

// mustTake takes a host's lock for a run until the test ends.
func mustTake(t *testing.T, m *hosttest.Host, run string, force bool) *HostLocks {
	t.Helper()
	l, err := TakeHosts(patience(t), map[string]host.Host{"1": m}, Claim{Holder: "me@here", RunID: run, Force: force})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Release)
	return l
}

func TestALiveLockIsNotTaken(t *testing.T) {
	t.Parallel()
	m := hosttest.New(t, "node-1")
	before := time.Now()
	first := mustTake(t, m, "run-1", false)
	_, err := take(t, m, "run-2", false)
	var held *HeldError
	if !errors.As(err, &held) {
		t.Fatalf("got %v", err)
	}
	// The host reports whole seconds.
	if held.Since.Before(before.Truncate(time.Second)) || held.Since.After(time.Now()) {
		t.Errorf("since %v", held.Since)
	}
	held.Since = time.Time{}
	if diff := cmp.Diff(&HeldError{Host: "node-1", Holder: "me@here", RunID: "run-1"}, held); diff != "" {
		t.Error(diff)
	}
	if text := err.Error(); !strings.Contains(text, "me@here") || !strings.Contains(text, "--force-unlock") {
		t.Errorf("the error is %q", text)
	}
	if n := first.Generation("1"); n < before.Unix() || n > time.Now().Unix() {
		t.Errorf("generation %d does not begin at the clock", n)
	}
}

func TestALockIsTakenOverByForce(t *testing.T) {
	t.Parallel()
	m := hosttest.New(t, "node-1")
	first := mustTake(t, m, "run-1", false)
	second, err := take(t, m, "run-2", true)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Release()
	if second.Generation("1") <= first.Generation("1") {
		t.Errorf("generations %d and %d", first.Generation("1"), second.Generation("1"))
	}
	select {
	case <-first.Lost():
	case <-patience(t).Done():
		t.Error("the first run does not learn that its lock is another's")
	}
	first.Release() // must not end the other lock
	if _, err := take(t, m, "run-3", false); err == nil {
		t.Error("the end of the first run has ended the second's lock")
	}
}

func TestALockSaysWhetherItIsStillOurs(t *testing.T) {
	t.Parallel()
	m := hosttest.New(t, "node-1")
	first := mustTake(t, m, "run-1", false)
	if err := first.Check(patience(t)); err != nil {
		t.Fatal(err)
	}
	second, err := take(t, m, "run-2", true)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Release()
	if err := first.Check(patience(t)); !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "node-1") {
		t.Errorf("of the first: %v", err)
	}
	if err := second.Check(patience(t)); err != nil {
		t.Errorf("of the second: %v", err)
	}
}

func TestALockWhoseHolderIsSilentIsTakenOver(t *testing.T) {
	t.Parallel()
	m := hosttest.New(t, "node-1")
	m.Write("var/lib/kubeone/lock/generation", "7\n", 0o600)
	m.Write("var/lib/kubeone/lock/owner", "holder=me@here\nrun=run-1\ngeneration=7\nsince=1\n", 0o600)
	m.Write("var/lib/kubeone/lock/beat", "", 0o600)
	m.Write("run/kubeone/secrets/token", "left by a killed run", 0o600)
	long := time.Now().Add(-2 * StaleAfter)
	if err := os.Chtimes(m.Path("var/lib/kubeone/lock/beat"), long, long); err != nil {
		t.Fatal(err)
	}
	if l := mustTake(t, m, "run-2", false); l.Generation("1") <= 7 {
		t.Errorf("generation %d", l.Generation("1"))
	}
	if m.Read("run/kubeone/secrets/token") != "" {
		t.Error("the killed run's secret is still there")
	}
}

func TestAReleasedLockIsFree(t *testing.T) {
	t.Parallel()
	m := hosttest.New(t, "node-1")
	mustTake(t, m, "run-1", false).Release()
	if _, err := os.Stat(m.Path("var/lib/kubeone/lock/beat")); !os.IsNotExist(err) {
		t.Errorf("the host does not know: %v", err)
	}
	mustTake(t, m, "run-2", false)
}

func TestALockEndsWithItsHoldersConnection(t *testing.T) {
	t.Parallel()
	m := hosttest.New(t, "node-1")
	mustTake(t, m, "run-1", false).stop() // a dead holder starts no new keeper
	m.Server.DropAll()
	for { // until the host notices; patience bounds it
		l, err := take(t, m, "run-2", false)
		var held *HeldError
		switch {
		case err == nil:
			l.Release()
			return
		case !errors.As(err, &held) && !host.Transient(err), t.Context().Err() != nil:
			t.Fatal(err)
		}
	}
}

func TestALockIsKeptOnWhenItsConnectionIsLost(t *testing.T) {
	t.Parallel()
	m := hosttest.New(t, "node-1")
	first := mustTake(t, m, "run-1", false)
	before := m.Read("var/lib/kubeone/lock/owner")
	m.Write("run/kubeone/secrets/token", "of the step that is about to start", 0o600)
	m.Server.DropAll()
	for ctx := patience(t); ; runtime.Gosched() { // until a new keeper runs
		if now := m.Read("var/lib/kubeone/lock/owner"); now != "" && now != before {
			break
		}
		if ctx.Err() != nil {
			t.Fatal("no other keeper was started")
		}
	}
	if _, err := take(t, m, "run-2", false); err == nil {
		t.Error("a second operator was let in")
	}
	if got := strings.TrimSpace(m.Read("var/lib/kubeone/lock/generation")); got !=
		strconv.FormatInt(first.Generation("1"), 10) {
		t.Errorf("generation %s on the host, %d here: steps that run were started under that", got,
			first.Generation("1"))
	}
	if m.Read("run/kubeone/secrets/token") == "" {
		t.Error("the next step's secret is gone")
	}
}

func TestLocksAreTakenOnAllHostsOrOnNone(t *testing.T) {
	t.Parallel()
	free, held := hosttest.New(t, "node-1"), hosttest.New(t, "node-2")
	mustTake(t, held, "run-1", false)
	if _, err := TakeHosts(patience(t), map[string]host.Host{"1": free, "2": held}, Claim{
		Holder: "you@there",
		RunID:  "run-2",
	}); err == nil {
		t.Fatal("no error")
	}
	l, err := take(t, free, "run-3", false)
	if err != nil {
		t.Fatalf("the lock on the free host was kept: %v", err)
	}
	l.Release()
}

func TestALockOnAHostThatCannotBeReachedIsAnError(t *testing.T) {
	t.Parallel()
	m := hosttest.New(t, "node-1")
	m.OnRun = func(host.Cmd) error {
		return &host.Error{Class: host.Unreachable, Host: "node-1", Err: errors.New("no route")}
	}
	_, err := take(t, m, "run-1", false)
	if host.ClassOf(err) != host.Unreachable || !strings.Contains(err.Error(), "take the lock") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := TakeHosts(ctx, map[string]host.Host{"1": hosttest.New(t, "node-1")}, Claim{
		Holder: "you@there",
		RunID:  "run-1",
	}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// broken returns ways to make a disk unwritable.
func broken() map[string]func(*hosttest.Host) {
	return map[string]func(*hosttest.Host){
		"full": func(m *hosttest.Host) {
			m.Write("bin/cat", "#!/bin/sh\necho 'cat: write error: No space left on device' >&2\nexit 1\n", 0o700)
		},
		"no directory of ours": func(m *hosttest.Host) { m.Write("var/lib/kubeone", "a file in its place", 0o600) },
		"no lock in it":        func(m *hosttest.Host) { m.Write("var/lib/kubeone/lock/flock/in-the-way", "", 0o600) },
		"no sign of life":      func(m *hosttest.Host) { m.Write("var/lib/kubeone/lock/beat/in-the-way", "", 0o600) },
	}
}

func TestALockThatCannotBeWrittenIsNotGranted(t *testing.T) {
	t.Parallel()
	for name, breaks := range broken() {
		m := hosttest.New(t, "node-1")
		breaks(m)
		_, err := take(t, m, "run-1", true)
		var unwritable *UnwritableError
		if !errors.As(err, &unwritable) || unwritable.Host != "node-1" || unwritable.Reason == "" {
			t.Errorf("%s: got %v", name, err)
		}
		if name == "full" && !strings.Contains(err.Error(), "(No space left on device); free space") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// A full disk must neither look like a lock nor destroy the present one.
func TestAFullDiskLeavesTheLockAsItWas(t *testing.T) {
	t.Parallel()
	m := hosttest.New(t, "node-1")
	first := mustTake(t, m, "run-1", false)
	owner := m.Read("var/lib/kubeone/lock/owner")
	broken()["full"](m)
	if _, err := take(t, m, "run-2", true); err == nil {
		t.Error("granted")
	}
	if got := strings.TrimSpace(m.Read("var/lib/kubeone/lock/generation")); got !=
		strconv.FormatInt(first.Generation("1"), 10) {
		t.Errorf("generation %q, was %d", got, first.Generation("1"))
	}
	if got := m.Read("var/lib/kubeone/lock/owner"); got != owner {
		t.Errorf("owner %q, was %q", got, owner)
	}
}

func TestAWorkerThatCannotBeLockedStopsNothingElse(t *testing.T) {
	t.Parallel()
	well, ill := hosttest.New(t, "node-1"), hosttest.New(t, "node-2")
	broken()["no lock in it"](ill)
	hosts := map[string]host.Host{"1": well, "2": ill}
	if _, err := TakeHosts(patience(t), hosts, Claim{Holder: "you@there", RunID: "run-1"}); err == nil {
		t.Error("a host that is not dispensable was dispensed with")
	}
	l, err := TakeHosts(patience(t), hosts,
		Claim{Holder: "you@there", RunID: "run-2", Dispensable: map[string]bool{"2": true}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Release()
	var unwritable *UnwritableError
	if !errors.As(l.Denied("2"), &unwritable) || l.Denied("1") != nil {
		t.Errorf("denied: %v and %v", l.Denied("1"), l.Denied("2"))
	}
	if err := l.Check(patience(t)); err != nil {
		t.Errorf("it is asked whose lock it is: %v", err)
	}
}

// A worker's lock never decides which run has the cluster.
func TestAWorkerThatAnotherRunHasStopsNoRunAboutTheCluster(t *testing.T) {
	t.Parallel()
	first, held, later := hosttest.New(t, "cp-1"), hosttest.New(t, "worker-1"), hosttest.New(t, "worker-2")
	mustTake(t, held, "run-1", false)
	l, err := TakeHosts(patience(t), map[string]host.Host{"1": first, "2": held, "3": later},
		Claim{Holder: "you@there", RunID: "run-2", Dispensable: map[string]bool{"2": true, "3": true}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Release()
	var by *HeldError
	if !errors.As(l.Denied("2"), &by) || by.RunID != "run-1" || l.Denied("1") != nil || l.Denied("3") != nil {
		t.Errorf("denied: %v, %v, %v", l.Denied("1"), l.Denied("2"), l.Denied("3"))
	}
	if err := l.CheckDispensable(patience(t), "3"); err != nil {
		t.Errorf("its lock is this run's: %v", err)
	}
	mustTake(t, later, "run-3", true)
	if err := l.CheckDispensable(patience(t), "3"); err == nil || l.Denied("3") == nil {
		t.Errorf("got %v, denied %v", err, l.Denied("3"))
	}
	select {
	case <-l.Lost():
		t.Error("a worker has ended the run")
	default:
	}
	if err := l.CheckDispensable(patience(t), "1"); err != nil {
		t.Errorf("the control plane's lock is not asked about here: %v", err)
	}
}

// In a run about workers alone, other workers do not depend on it either, unless none is left.
func TestAWorkerThatAnotherRunHasStopsNoWorkOnOthers(t *testing.T) {
	t.Parallel()
	held, free := hosttest.New(t, "worker-1"), hosttest.New(t, "worker-2")
	mustTake(t, held, "run-1", false)
	hosts := map[string]host.Host{"1": held, "2": free}
	claim := Claim{Holder: "you@there", RunID: "run-2", Dispensable: map[string]bool{"1": true, "2": true}}
	l, err := TakeHosts(patience(t), hosts, claim)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Release()
	var by *HeldError
	if !errors.As(l.Denied("1"), &by) || by.RunID != "run-1" || l.Denied("2") != nil {
		t.Errorf("denied: %v, %v", l.Denied("1"), l.Denied("2"))
	}
	if err := l.Check(patience(t)); err != nil {
		t.Errorf("it ends because of a worker: %v", err)
	}
	claim.RunID = "run-3"
	if _, err := TakeHosts(patience(t), hosts, claim); !errors.As(err, &by) {
		t.Errorf("other runs have all of them, and the lock is taken: %v", err)
	}
}

// Work on a worker ends when another run takes its lock; the run ends when it has no lock left.
func TestARunAboutWorkersEndsWithTheLastLock(t *testing.T) {
	t.Parallel()
	one, two := hosttest.New(t, "worker-1"), hosttest.New(t, "worker-2")
	l, err := TakeHosts(patience(t), map[string]host.Host{"1": one, "2": two},
		Claim{Holder: "you@there", RunID: "run-1", Dispensable: map[string]bool{"1": true, "2": true}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Release()
	work, done := l.While(patience(t), "1")
	defer done()
	mustTake(t, one, "run-2", true)
	if l.CheckDispensable(patience(t), "1") == nil {
		t.Fatal("the lock is another run's, and it is not said")
	}
	<-work.Done()
	if cause := context.Cause(work); !errors.Is(cause, ErrLost) {
		t.Errorf("it ended because of %v", cause)
	}
	select {
	case <-l.Lost():
		t.Error("one of two workers has ended the run")
	default:
	}
	mustTake(t, two, "run-2", true)
	if l.CheckDispensable(patience(t), "2") == nil {
		t.Fatal("the lock is another run's, and it is not said")
	}
	<-l.Lost()
}

func TestAWorkerThatAnotherRunHasIsNotDispensable(t *testing.T) {
	t.Parallel()
	m := hosttest.New(t, "node-1")
	mustTake(t, m, "run-1", false)
	_, err := TakeHosts(patience(t), map[string]host.Host{"1": m},
		Claim{Holder: "you@there", RunID: "run-2", Dispensable: map[string]bool{"1": true}})
	var held *HeldError
	if !errors.As(err, &held) {
		t.Errorf("got %v", err)
	}
}

func TestALockIsConfirmedOnlyIfEveryHostSaysSo(t *testing.T) {
	t.Parallel()
	one, two := hosttest.New(t, "node-1"), hosttest.New(t, "node-2")
	l, err := TakeHosts(patience(t), map[string]host.Host{"1": one, "2": two},
		Claim{Holder: "you@there", RunID: "run-1"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Release()
	if !l.AllConfirm(patience(t), []string{"1", "2"}) || l.AllConfirm(patience(t), []string{"1", "3"}) {
		t.Error("hosts that are locked were not confirmed, or one was that is not")
	}
	mustTake(t, two, "run-2", true)
	if l.AllConfirm(patience(t), []string{"1", "2"}) || !l.AllConfirm(patience(t), []string{"1"}) {
		t.Error("a host was confirmed whose lock another run has")
	}
	one.OnRun = func(host.Cmd) error {
		return &host.Error{Class: host.Unreachable, Host: "node-1", Err: errors.New("no route")}
	}
	if l.AllConfirm(patience(t), []string{"1"}) {
		t.Error("a host was confirmed that does not answer")
	}
}

// talker is a host with a chosen answer about its lock. It runs until its command is abandoned.
type talker struct {
	host.Host
	says  string
	again bool // endlessly
	quits chan struct{}
}

func (t *talker) Name() string { return "w-9" }

func (t *talker) Run(ctx context.Context, c host.Cmd) (host.Result, error) {
	defer close(t.quits)
	go func() { _, _ = io.Copy(io.Discard, c.Stdin) }()
	for first := true; first || t.again; first = false {
		if _, err := io.WriteString(c.Stdout, t.says); err != nil {
			return host.Result{ExitCode: -1}, err
		}
	}
	<-ctx.Done()
	return host.Result{ExitCode: -1}, ctx.Err()
}

// A worker whose keeper is silent, talks without end or does not end stops no run.
func TestNoHostKeepsARunByItsLock(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		says    string
		again   bool
		granted bool
		holder  string
	}{
		"says nothing":          {},
		"a line without an end": {says: strings.Repeat("x", 1000), again: true},
		"held, and no end": {
			says: "held\nholder=\x1b[2Jyou@desk\nrun=r\nsince=9223372036854775807\n", holder: "[2Jyou@desk",
		},
		"held, again and again":             {says: "held\nholder=you@desk\n", again: true, holder: "you@desk"},
		"granted a generation that is none": {says: "granted -5\n"},
		"granted a generation above all":    {says: "granted 9223372036854775808\n"},
		"granted, and it does not end":      {says: "granted 7\n", granted: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := &talker{says: c.says, again: c.again, quits: make(chan struct{})}
				l, err := TakeHosts(t.Context(), map[string]host.Host{"9": m},
					Claim{Holder: "me@here", RunID: "run-1", Dispensable: map[string]bool{"9": true}})
				held := (*HeldError)(nil)
				if errors.As(err, &held) && c.holder != "" && held.Holder == c.holder {
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if granted := l.Denied("9") == nil; granted != c.granted {
					t.Errorf("granted %v: %v", granted, l.Denied("9"))
				}
				l.Release()
				<-m.quits
			})
		})
	}
}
