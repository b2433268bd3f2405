package drive

import (
	"context"
	"errors"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	typed "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"kubeone/internal/cluster"
	"kubeone/internal/cluster/apicall"
	"kubeone/internal/locks"
	"kubeone/internal/locks/leaselock"
	"kubeone/test/sim/world"
)

// The real leaselock works on the simulated API server's Lease.

// clientset is the part of a Kubernetes client that leaselock uses.
type clientset struct {
	kubernetes.Interface
	o *operator
}

// CoordinationV1 returns access to Leases.
func (c clientset) CoordinationV1() typed.CoordinationV1Interface { return coordination{o: c.o} }

type coordination struct {
	typed.CoordinationV1Interface
	o *operator
}

// Leases returns access to the only Lease.
func (c coordination) Leases(string) typed.LeaseInterface { return leases{o: c.o} }

type leases struct {
	typed.LeaseInterface
	o *operator
}

// takeLease takes the Lease for the operator's run.
func (o *operator) takeLease(ctx context.Context, _ cluster.Access, how leaselock.AcquireOptions) (locks.Lease, error) {
	if o.sim.Off == LeaseByForce {
		how.AtOnce = func(context.Context) bool { return true }
	}
	locker := leaselock.Locker{Kubernetes: clientset{o: o}}
	lock, err := locker.Acquire(ctx, o.leaseHolder(), how)
	if err != nil {
		return nil, err // not an interface that holds a nil lock
	}
	o.sim.actAs(o, func() { o.leased = true })
	return lock, nil
}

func (o *operator) leaseHolder() leaselock.Holder { return leaselock.Holder{Name: o.run, RunID: o.run} }

// Get returns the Lease. With a guard off, the answer may be false.
func (l leases) Get(ctx context.Context, _ string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	if err := l.o.takeTime(ctx, "look at the Lease"); err != nil {
		return nil, unansweredError(err)
	}
	var out *coordinationv1.Lease
	err := l.o.askAPI(func(w *world.World) error {
		out = l.o.sim.leaseObject(w.EtcdCluster().Objects.Lease)
		return nil
	})
	if l.o.believesLease() {
		return l.o.sim.leaseObject(world.Lease{Run: l.o.run}), nil
	}
	return out, err
}

// believesLease reports whether a disabled guard would tell the run that it does not hold its Lease.
func (o *operator) believesLease() (mine bool) {
	o.sim.actAs(o, func() {
		mine = o.leased && !o.dead && o.isDeaf() || o.isUnlocked()
	})
	return mine
}

// leaseObject returns the Lease as an object. An empty run means that it has no holder.
func (s *Simulation) leaseObject(of world.Lease) *coordinationv1.Lease {
	out := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Name: leaselock.Name, ResourceVersion: strconv.Itoa(of.Version), Annotations: map[string]string{},
	}}
	if of.Run != "" {
		renewed := metav1.MicroTime{Time: s.began.Add(time.Duration(of.Renewed) * time.Second)}
		seconds := int32(leaselock.Duration / time.Second)
		out.Annotations[apicall.RunIDAnnotation] = of.Run
		out.Spec = coordinationv1.LeaseSpec{
			HolderIdentity: &of.Run, LeaseDurationSeconds: &seconds, AcquireTime: &renewed, RenewTime: &renewed,
		}
	}
	return out
}

// Update writes the Lease, unless it has changed since it was read.
func (l leases) Update(ctx context.Context, lease *coordinationv1.Lease, _ metav1.UpdateOptions) (
	*coordinationv1.Lease, error) {
	if err := l.o.takeTime(ctx, "write the Lease"); err != nil {
		return nil, unansweredError(err)
	}
	if l.o.believesLease() {
		return lease, nil
	}
	return lease, l.o.askAPI(func(w *world.World) error {
		now := &w.EtcdCluster().Objects.Lease
		if lease.ResourceVersion != strconv.Itoa(now.Version) {
			return apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, lease.Name, nil)
		}
		run := lease.Annotations[apicall.RunIDAnnotation]
		switch version := now.Version + 1; {
		case lease.Spec.HolderIdentity == nil:
			*now = world.Lease{Version: version}
		case run != now.Run:
			w.TakeLease(run, l.o.force)
			now.Version = version
		default:
			now.Renewed, now.Version = w.Now, version
		}
		return nil
	})
}

// unansweredError returns the client's error for a request without an answer.
func unansweredError(err error) error {
	if errors.Is(err, errBroken) {
		return apierrors.NewServiceUnavailable(errSilent.Error())
	}
	return err
}

// askAPI makes one request.
func (o *operator) askAPI(do func(w *world.World) error) (err error) {
	o.sim.actAs(o, func() {
		switch w := o.sim.World; {
		case o.dead:
			err = errKilled
		case !w.APIReached():
			err = unansweredError(errBroken)
		default:
			err = do(w)
		}
	})
	return err
}
