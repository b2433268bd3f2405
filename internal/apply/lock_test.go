package apply

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"kubeone/internal/desired"
	"kubeone/internal/host"

	"github.com/google/go-cmp/cmp"
)

func wanted(controlPlane ...string) desired.Cluster {
	c := desired.Cluster{Name: "alpha", Digest: "manifest-1"}
	for _, id := range controlPlane {
		c.ControlPlane = append(c.ControlPlane, desired.Host{ID: id, Role: desired.ControlPlane, Hostname: "node-" + id, PrivateAddress: "10.0.0." + id})
	}
	return c
}

func take(t *testing.T, m *machine, run string, force bool) (*Lock, error) {
	t.Helper()
	return TakeLock(patience(t), map[string]host.Host{"1": m}, "you@there", run, force)
}

func TestALiveLockIsNotTaken(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "node-1")
	first := m.lock("run-1", false)
	_, err := take(t, m, "run-2", false)
	var held *HeldError
	if !errors.As(err, &held) {
		t.Fatalf("got %v", err)
	}
	if time.Since(held.Since) > time.Minute {
		t.Errorf("since %v", held.Since)
	}
	held.Since = time.Time{}
	if diff := cmp.Diff(&HeldError{Host: "node-1", Holder: "me@here", RunID: "run-1"}, held); diff != "" {
		t.Error(diff)
	}
	if text := err.Error(); !strings.Contains(text, "me@here") || !strings.Contains(text, "--force-unlock") {
		t.Errorf("the error is %q", text)
	}
	if age := time.Now().Unix() - first.Generation("1"); age < 0 || age > 60 {
		t.Errorf("generation %d does not begin at the clock", first.Generation("1"))
	}
}

func TestALockIsTakenOverByForce(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "node-1")
	first := m.lock("run-1", false)
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
	case <-time.After(30 * time.Second):
		t.Error("the first run does not learn that its lock is another's")
	}
	first.Release() // must not end the other's
	if _, err := take(t, m, "run-3", false); err == nil {
		t.Error("the end of the first run has ended the second's lock")
	}
}

func TestALockSaysWhetherItIsStillOurs(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "node-1")
	first := m.lock("run-1", false)
	if err := first.Check(patience(t)); err != nil {
		t.Fatal(err)
	}
	second, err := take(t, m, "run-2", true)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Release()
	if err := first.Check(patience(t)); !errors.Is(err, ErrLockLost) || !strings.Contains(err.Error(), "node-1") {
		t.Errorf("of the first: %v", err)
	}
	if err := second.Check(patience(t)); err != nil {
		t.Errorf("of the second: %v", err)
	}
}

func TestALockWhoseHolderIsSilentIsTakenOver(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "node-1")
	m.write("var/lib/kubeone/lock/generation", "7\n", 0o600)
	m.write("var/lib/kubeone/lock/owner", "holder=me@here\nrun=run-1\ngeneration=7\nsince=1\n", 0o600)
	m.write("var/lib/kubeone/lock/beat", "", 0o600)
	m.write("run/kubeone/secrets/token", "left by a killed run", 0o600)
	long := time.Now().Add(-2 * staleAfter)
	if err := os.Chtimes(m.path("var/lib/kubeone/lock/beat"), long, long); err != nil {
		t.Fatal(err)
	}
	if l := m.lock("run-2", false); l.Generation("1") <= 7 {
		t.Errorf("generation %d", l.Generation("1"))
	}
	if m.read("run/kubeone/secrets/token") != "" {
		t.Error("the killed run's secret is still there")
	}
}

func TestAReleasedLockIsFree(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "node-1")
	m.lock("run-1", false).Release()
	if _, err := os.Stat(m.path("var/lib/kubeone/lock/beat")); !os.IsNotExist(err) {
		t.Errorf("the host does not know: %v", err)
	}
	m.lock("run-2", false)
}

func TestALockEndsWithItsHoldersConnection(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "node-1")
	m.lock("run-1", false).stop() // a holder that is gone starts no other keeper
	m.server.DropAll()
	for { // until the host has seen it; patience bounds it
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
	m := newMachine(t, "node-1")
	first := m.lock("run-1", false)
	before := m.read("var/lib/kubeone/lock/owner")
	m.write("run/kubeone/secrets/token", "of the step that is about to start", 0o600)
	m.server.DropAll()
	for end := time.Now().Add(30 * time.Second); ; { // until another keeper has taken its place
		if now := m.read("var/lib/kubeone/lock/owner"); now != "" && now != before {
			break
		}
		if time.Now().After(end) {
			t.Fatal("no other keeper was started")
		}
	}
	if _, err := take(t, m, "run-2", false); err == nil {
		t.Error("a second operator was let in")
	}
	if got := strings.TrimSpace(m.read("var/lib/kubeone/lock/generation")); got != strconv.FormatInt(first.Generation("1"), 10) {
		t.Errorf("generation %s on the host, %d here: steps that run were started under that", got, first.Generation("1"))
	}
	if m.read("run/kubeone/secrets/token") == "" {
		t.Error("the next step's secret is gone")
	}
}

func TestLocksAreTakenOnAllHostsOrOnNone(t *testing.T) {
	t.Parallel()
	free, held := newMachine(t, "node-1"), newMachine(t, "node-2")
	held.lock("run-1", false)
	if _, err := TakeLock(patience(t), map[string]host.Host{"1": free, "2": held}, "you@there", "run-2", false); err == nil {
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
	m := newMachine(t, "node-1")
	m.onRun = func(host.Cmd) error {
		return &host.Error{Class: host.Unreachable, Host: "node-1", Err: errors.New("no route")}
	}
	_, err := take(t, m, "run-1", false)
	if host.ClassOf(err) != host.Unreachable || !strings.Contains(err.Error(), "take the lock") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := TakeLock(ctx, map[string]host.Host{"1": newMachine(t, "node-1")}, "you@there", "run-1", false); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// A full disk must not look like a lock.
func TestALockThatCannotBeWrittenIsNotGranted(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "node-1")
	m.write("var/lib/kubeone/lock/generation/in-the-way", "", 0o600)
	if _, err := take(t, m, "run-1", false); err == nil {
		t.Error("granted")
	}
}
