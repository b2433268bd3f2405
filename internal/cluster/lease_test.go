package cluster

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

var (
	alice = Holder{Name: "alice@laptop", RunID: "run-a"}
	bob   = Holder{Name: "bob@desk", RunID: "run-b"}
)

// leaseOf is a lease as its holder renewed it so long ago.
func leaseOf(h Holder, age time.Duration) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: LeaseName, Namespace: "kube-system", ResourceVersion: "1"}}
	occupy(lease, h)
	lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Now().Add(-age)}
	return lease
}

func TestHowLongALeaseMustBeSilent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		again := Holder{Name: alice.Name, RunID: "run-later"}
		for name, c := range map[string]struct {
			lease *coordinationv1.Lease
			me    Holder
			wait  time.Duration
			held  bool
		}{
			"nobody's":                   {leaseOf(Holder{}, 0), bob, 0, false},
			"our own run's":              {leaseOf(bob, 0), bob, 0, false},
			"another's, alive":           {leaseOf(alice, 3*time.Second), bob, 0, true},
			"another's, from the future": {leaseOf(alice, -time.Hour), bob, 0, true},
			"another's, just expired":    {leaseOf(alice, 21*time.Second), bob, 7 * time.Second, false},
			"another's, long dead":       {leaseOf(alice, 90*time.Second), bob, 0, false},
			"an earlier run of ours":     {leaseOf(alice, 3*time.Second), again, 17 * time.Second, false},
			"an earlier run, expired":    {leaseOf(alice, 25*time.Second), again, 0, false},
		} {
			wait, held := watchFor(c.lease, c.me, time.Now())
			if wait != c.wait || held != c.held {
				t.Errorf("%s: got %s, %v; want %s, %v", name, wait, held, c.wait, c.held)
			}
		}
	})
}

// holderNow is who holds the lease.
func holderNow(t *testing.T, c *Client) Holder {
	t.Helper()
	lease, err := c.leases().Get(t.Context(), LeaseName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	holder, _, _ := LeaseState(lease, time.Now())
	return holder
}

func acquired(t *testing.T, c *Client, me Holder, force bool) *Lock {
	t.Helper()
	lock, err := c.Acquire(t.Context(), me, force)
	if err != nil {
		t.Fatal(err)
	}
	return lock
}

func release(t *testing.T, l *Lock) {
	t.Helper()
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestASecondOperatorIsToldWhoHoldsTheLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := faked(t)
		since := time.Now()
		first := acquired(t, c, alice, false)
		time.Sleep(time.Hour) //nolint:forbidigo // of synctest: no time passes; renewed all the time
		_, err := c.Acquire(t.Context(), bob, false)
		var held *HeldError
		if !errors.As(err, &held) || Classify(err) != Operator {
			t.Fatalf("got %v, want a HeldError", err)
		}
		until := time.Until(held.Until)
		if held.Holder != alice.Name || held.RunID != alice.RunID || !held.Since.Equal(since) || until <= 0 || until > leaseDuration {
			t.Errorf("got %+v", held)
		}
		release(t, first)
		release(t, first) // the second time nothing happens
		release(t, acquired(t, c, bob, false))
		if got := holderNow(t, c); got != (Holder{}) {
			t.Errorf("after all releases it is held by %v", got)
		}
	})
}

func TestALockWhoseRunWasKilledIsTakenOver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		me   Holder
		age  time.Duration
		want time.Duration // how long it takes
	}{
		"by the same operator":          {Holder{Name: alice.Name, RunID: "run-later"}, 4 * time.Second, 16 * time.Second},
		"by another, once expired":      {bob, 30 * time.Second, 7 * time.Second},
		"by another, after a long time": {bob, time.Hour, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			client, _ := faked(t, leaseOf(alice, c.age))
			began := time.Now()
			lock := acquired(t, client, c.me, false)
			if took := time.Since(began); took != c.want || holderNow(t, client) != c.me {
				t.Errorf("%s: held by %v after %s, want %v after %s", name, holderNow(t, client), took, c.me, c.want)
			}
			release(t, lock)
		})
	}
}

func TestALivingRunOfTheSameOperatorKeepsItsLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := faked(t)
		lock := acquired(t, c, alice, false)
		began := time.Now()
		_, err := c.Acquire(t.Context(), Holder{Name: alice.Name, RunID: "run-later"}, false)
		var held *HeldError
		if !errors.As(err, &held) || time.Since(began) > leaseRenew+leaseAgain {
			t.Errorf("got %v after %s, want a HeldError with the next renewal", err, time.Since(began))
		}
		release(t, lock)
	})
}

func TestForceTakesTheLockAndTheLoserLearnsOfIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := faked(t)
		loser := acquired(t, c, alice, false)
		winner := acquired(t, c, bob, true)
		began := time.Now()
		<-loser.Lost()
		if took := time.Since(began); took > leaseRenew {
			t.Errorf("the loser learnt of it after %s", took)
		}
		if loser.Taker() != bob {
			t.Errorf("the loser says that %v took it", loser.Taker())
		}
		release(t, loser)
		if got := holderNow(t, c); got != bob {
			t.Errorf("the loser's release left the lock with %v", got)
		}
		release(t, winner)
	})
}

func TestTheLockSurvivesAnOutageOfTheAPI(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, api := faked(t)
		began := time.Now()
		api.PrependReactor("*", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			if since := time.Since(began); since > time.Second && since < 2*time.Minute {
				return true, nil, apierrors.NewServiceUnavailable("restarting")
			}
			return false, nil, nil
		})
		lock := acquired(t, c, alice, false)
		time.Sleep(3 * time.Minute) //nolint:forbidigo // of synctest: no time passes
		select {
		case <-lock.Lost():
			t.Error("the lock was given up")
		default:
		}
		lease, err := c.leases().Get(t.Context(), LeaseName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		holder, _, live := LeaseState(lease, time.Now())
		if diff := cmp.Diff(alice, holder); diff != "" || !live {
			t.Errorf("live is %v after the outage; %s", live, diff)
		}
		release(t, lock)
	})
}

func TestOnlyOneOfManyGetsAFreeLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := faked(t)
		results := make(chan error)
		locks := make(chan *Lock, 8)
		for i := range 8 {
			go func() {
				lock, err := c.Acquire(t.Context(), Holder{Name: string(rune('a' + i)), RunID: "r"}, false)
				if err == nil {
					locks <- lock
				}
				results <- err
			}()
		}
		got := 0
		for range 8 {
			var held *HeldError
			if err := <-results; err == nil {
				got++
			} else if !errors.As(err, &held) {
				t.Error(err)
			}
		}
		if got != 1 {
			t.Errorf("%d hold the lock, want 1", got)
		}
		release(t, <-locks)
	})
}

func TestAcquireEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, api := faked(t)
		api.PrependReactor("*", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewServiceUnavailable("restarting")
		})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := c.Acquire(ctx, alice, false); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want that the deadline passed", err)
		}
	})
}
