package leaselock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typed "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"kubeone/internal/cluster/apicall"
	"kubeone/internal/retry"
)

// Lock is the cluster lock, held and renewed by this process. It is lost only when another run takes it, not when a
// renewal fails; see Unrenewed.
type Lock struct {
	client Locker
	me     Holder
	lost   chan struct{}
	taker  Holder // its holder now; set before lost is closed
	stop   context.CancelFunc
	ended  chan struct{}
	once   sync.Once

	mu      sync.Mutex
	renewed time.Time // start of the last request that showed that we hold it
}

// ErrLost means that another run holds the lock now.
var ErrLost = errors.New("another run took the lock")

// Lost returns a channel that is closed when another run has taken the lock. No change may start after that.
func (l *Lock) Lost() <-chan struct{} { return l.lost }

// Taker returns the new holder of a lost lock, or the zero Holder if it was only released. Call it once Lost is
// closed.
func (l *Lock) Taker() Holder { return l.taker }

// Release releases the lock, so that the next run does not have to wait. Repeated calls do nothing. It does not change
// a lock that another run has taken.
func (l *Lock) Release(ctx context.Context) error {
	var err error
	l.once.Do(func() {
		l.stop()
		<-l.ended
		err = apicall.Retry(ctx, "unlock the cluster", "", l.clearLease)
	})
	return err
}

// startRenewal starts renewing a lock that was just taken.
func (c Locker) startRenewal(ctx context.Context, me Holder, began time.Time) *Lock {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	l := &Lock{client: c, me: me, lost: make(chan struct{}), stop: stop, ended: make(chan struct{}), renewed: began}
	go l.keepRenewing(ctx)
	return l
}

func (l *Lock) keepRenewing(ctx context.Context) {
	defer close(l.ended)
	for delay := leaseRenew; retry.Pause(ctx, delay); {
		one, cancel := context.WithTimeout(ctx, leaseRenew)
		began := time.Now()
		err := l.renewLease(one)
		cancel()
		switch {
		case errors.Is(err, ErrLost):
			close(l.lost)
			return
		case err != nil:
			delay = leaseRetryEvery
		default:
			l.noteHeld(began)
			delay = leaseRenew
		}
	}
}

// noteHeld records that a request that started at that time showed that we hold the lock.
func (l *Lock) noteHeld(began time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if began.After(l.renewed) {
		l.renewed = began
	}
}

// Unrenewed returns the time since it was last known that we hold the lock. Another run can take the lock when that
// time reaches Duration. Time during which the machine was suspended counts.
func (l *Lock) Unrenewed() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(time.Since(l.renewed), time.Now().Round(0).Sub(l.renewed.Round(0)))
}

// Check returns nil if we still hold the lock. The error wraps ErrLost if another run holds it. Any other error means
// that the API did not answer and the state is unknown.
func (l *Lock) Check(ctx context.Context) error {
	one, cancel := context.WithTimeout(ctx, leaseRenew)
	defer cancel()
	lease, err := l.client.leaseClient().Get(one, Name, metav1.GetOptions{})
	if err != nil {
		return apicall.Wrap("check the cluster lock", "", err)
	}
	if holder, _, _ := State(lease, time.Now()); holder.Name != "" && holder != l.me {
		return fmt.Errorf("%w: %s (run %s) holds it", ErrLost, holder.Name, holder.RunID)
	}
	// Do not update renewed: this only read the Lease, and other runs can see only actual renewals.
	return nil
}

func (l *Lock) renewLease(ctx context.Context) error {
	lease, err := l.client.leaseClient().Get(ctx, Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return l.client.createLease(ctx, l.me)
	}
	if err != nil {
		return err
	}
	if holder, _, _ := State(lease, time.Now()); holder != l.me {
		l.taker = holder
		return ErrLost
	}
	lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
	_, err = l.client.leaseClient().Update(ctx, lease, metav1.UpdateOptions{FieldManager: apicall.FieldManager})
	return err
}

// clearLease removes the holder from the Lease if we still hold it.
func (l *Lock) clearLease(ctx context.Context) error {
	lease, err := l.client.leaseClient().Get(ctx, Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if holder, _, _ := State(lease, time.Now()); holder != l.me {
		return nil
	}
	lease.Spec.HolderIdentity, lease.Spec.AcquireTime, lease.Spec.RenewTime = nil, nil, nil
	delete(lease.Annotations, apicall.RunIDAnnotation)
	_, err = l.client.leaseClient().Update(ctx, lease, metav1.UpdateOptions{FieldManager: apicall.FieldManager})
	return err
}

func (c Locker) leaseClient() typed.LeaseInterface {
	return c.Kubernetes.CoordinationV1().Leases(metav1.NamespaceSystem)
}

func (c Locker) createLease(ctx context.Context, me Holder) error {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: Name, Namespace: metav1.NamespaceSystem}}
	setHolder(lease, me)
	_, err := c.leaseClient().Create(ctx, lease, metav1.CreateOptions{FieldManager: apicall.FieldManager})
	if apierrors.IsAlreadyExists(err) { // another run created it first: check again
		return &apicall.Error{Op: "create the lock", Class: apicall.Transient, Err: err}
	}
	return err
}

// writeLease makes us the holder of the Lease. It fails with a conflict if the Lease has changed since it was read.
func (c Locker) writeLease(ctx context.Context, lease *coordinationv1.Lease, me Holder) error {
	setHolder(lease, me)
	_, err := c.leaseClient().Update(ctx, lease, metav1.UpdateOptions{FieldManager: apicall.FieldManager})
	return err
}

func setHolder(lease *coordinationv1.Lease, me Holder) {
	now, seconds := metav1.MicroTime{Time: time.Now()}, int32(Duration/time.Second)
	if lease.Annotations == nil {
		lease.Annotations = map[string]string{}
	}
	lease.Annotations[apicall.RunIDAnnotation] = me.RunID
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = &me.Name, &seconds
	lease.Spec.AcquireTime, lease.Spec.RenewTime = &now, &now
}
