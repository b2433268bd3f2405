package leaselock

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"kubeone/internal/cluster/apicall"
)

var (
	alice = Holder{Name: "alice@laptop", RunID: "run-a"}
	bob   = Holder{Name: "bob@desk", RunID: "run-b"}
)

// leaseOf returns a lease whose holder renewed it that long ago.
func leaseOf(h Holder, age time.Duration) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: Name, Namespace: "kube-system", ResourceVersion: "1"},
	}
	setHolder(lease, h)
	lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Now().Add(-age)}
	return lease
}

// holderNow returns the holder of the lease.
func holderNow(t *testing.T, c Locker) Holder {
	t.Helper()
	lease, err := c.leaseClient().Get(t.Context(), Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	holder, _, _ := State(lease, time.Now())
	return holder
}

func acquired(t *testing.T, c Locker, me Holder, force bool) *Lock {
	t.Helper()
	lock, err := c.Acquire(t.Context(), me, AcquireOptions{Force: force})
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

func TestSecondOperatorLearnsHolder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := faked(t)
		since := time.Now()
		first := acquired(t, c, alice, false)
		time.Sleep(time.Hour) //nolint:forbidigo // in synctest: no time passes; renewed all the time
		_, err := c.Acquire(t.Context(), bob, AcquireOptions{})
		var held *HeldError
		if !errors.As(err, &held) || apicall.Classify(err) != apicall.Operator {
			t.Fatalf("got %v, want a HeldError", err)
		}
		until := time.Until(held.Until)
		if held.Holder != alice.Name || held.RunID != alice.RunID || !held.Since.Equal(since) || until <= 0 ||
			until > Duration {
			t.Errorf("got %+v", held)
		}
		release(t, first)
		release(t, first) // the second call does nothing
		release(t, acquired(t, c, bob, false))
		if got := holderNow(t, c); got != (Holder{}) {
			t.Errorf("after all releases it is held by %v", got)
		}
	})
}

// The times in the lease come from another machine's clock and decide nothing.
func TestALockWhoseRunWasKilledIsTakenOverAfterItsTimeByOurClock(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		me  Holder
		age time.Duration
	}{
		"by the same operator":          {Holder{Name: alice.Name, RunID: "run-later"}, 4 * time.Second},
		"by another":                    {bob, 3 * time.Second},
		"by another, once expired":      {bob, 30 * time.Second},
		"by another, after a long time": {bob, time.Hour},
		"renewed in the future":         {bob, -time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			client, _ := faked(t, leaseOf(alice, c.age))
			began, told := time.Now(), []Holder(nil)
			lock, err := client.Acquire(t.Context(), c.me,
				AcquireOptions{Waiting: func(by Holder, atMost time.Duration) {
					if told = append(told, by); atMost != Duration {
						t.Errorf("%s: it may last %s", name, atMost)
					}
				}})
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took != Duration || holderNow(t, client) != c.me {
				t.Errorf("%s: held by %v after %s, want %v after %s", name, holderNow(t, client), took, c.me,
					Duration)
			}
			if diff := cmp.Diff([]Holder{alice}, told); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
			release(t, lock)
		})
	}
}

func TestAFreeLockIsTakenAtOnce(t *testing.T) {
	t.Parallel()
	for name, lease := range map[string]*coordinationv1.Lease{
		"free":          leaseOf(Holder{}, 0),
		"our own run's": leaseOf(bob, time.Second),
	} {
		synctest.Test(t, func(t *testing.T) {
			client, _ := faked(t, lease)
			began := time.Now()
			lock := acquired(t, client, bob, false)
			if took := time.Since(began); took > 0 {
				t.Errorf("%s: it took %s", name, took)
			}
			release(t, lock)
		})
	}
}

func TestALockIsTakenAtOnceFromARunThatIsCertainlyNotAtWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := faked(t, leaseOf(alice, time.Second))
		began := time.Now()
		lock, err := c.Acquire(t.Context(), bob, AcquireOptions{AtOnce: func(context.Context) bool { return true }})
		if err != nil || time.Since(began) > 0 {
			t.Fatalf("got %v after %s", err, time.Since(began))
		}
		release(t, lock)
	})
}

func TestALockThatIsGivenUpMeanwhileIsTakenAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := faked(t)
		first := acquired(t, c, alice, false)
		began := time.Now()
		time.AfterFunc(3*time.Second, func() { release(t, first) })
		second := acquired(t, c, bob, false)
		if took := time.Since(began); took > 3*time.Second+leaseRetryEvery {
			t.Errorf("it took %s", took)
		}
		release(t, second)
	})
}

// While the API was away, no holder could renew the lock.
func TestSilenceCountsOnlyWhileTheAPIAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, api := faked(t, leaseOf(alice, 0))
		began := time.Now()
		const back = 17 * time.Second
		api.PrependReactor("get", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			if since := time.Since(began); since > 15*time.Second && since < back {
				return true, nil, apierrors.NewServiceUnavailable("restarting")
			}
			return false, nil, nil
		})
		lock := acquired(t, c, bob, false)
		if took := time.Since(began); took < back+Duration {
			t.Errorf("it was taken after %s, and the API was back after %s", took, back)
		}
		release(t, lock)
	})
}

func TestALockSaysForHowLongItWasNotRenewed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, api := faked(t)
		var away atomic.Bool
		api.PrependReactor("*", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			return away.Load(), nil, apierrors.NewServiceUnavailable("restarting")
		})
		lock := acquired(t, c, alice, false)
		time.Sleep(time.Minute) //nolint:forbidigo // in synctest: no time passes
		if got := lock.Unrenewed(); got > leaseRenew {
			t.Errorf("renewed %s ago", got)
		}
		if err := lock.Check(t.Context()); err != nil {
			t.Errorf("asked for: %v", err)
		}
		away.Store(true)
		time.Sleep(time.Minute) //nolint:forbidigo // in synctest: no time passes
		if got := lock.Unrenewed(); got < time.Minute-leaseRenew {
			t.Errorf("renewed %s ago, and the API was away", got)
		}
		if err := lock.Check(t.Context()); err == nil || errors.Is(err, ErrLost) {
			t.Errorf("asked for while the API is away: %v", err)
		}
		away.Store(false)
		release(t, lock)
	})
}

func TestALivingRunOfTheSameOperatorKeepsItsLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := faked(t)
		lock := acquired(t, c, alice, false)
		began := time.Now()
		_, err := c.Acquire(t.Context(), Holder{Name: alice.Name, RunID: "run-later"}, AcquireOptions{})
		var held *HeldError
		if !errors.As(err, &held) || time.Since(began) > leaseRenew+leaseRetryEvery {
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
		time.Sleep(3 * time.Minute) //nolint:forbidigo // in synctest: no time passes
		select {
		case <-lock.Lost():
			t.Error("the lock was given up")
		default:
		}
		lease, err := c.leaseClient().Get(t.Context(), Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		holder, _, live := State(lease, time.Now())
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
				lock, err := c.Acquire(t.Context(), Holder{Name: string(rune('a' + i)), RunID: "r"}, AcquireOptions{})
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
		if _, err := c.Acquire(ctx, alice, AcquireOptions{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want that the deadline passed", err)
		}
	})
}
