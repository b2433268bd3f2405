package ssh

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"kubeone/api/cluster/v1alpha1"
	kubeone "kubeone/api/kubeone/v1alpha1"
	"kubeone/internal/cluster"
)

// unsteady is a pool whose controllers have a clock that jumps. Its hosts have markers.
type unsteady struct {
	*Provider
	t        *testing.T
	client   client.Client
	now      time.Time
	machines map[string]*v1alpha1.Machine
	made     int

	mu     sync.Mutex
	owner  map[types.UID]kubeone.HostClaim // each host's marker, by its Host's UID
	breaks func() bool                     // whether the next run on a host fails
}

func newUnsteady(t *testing.T, access cluster.Access, random *rand.Rand) *unsteady {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme, kubeone.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	u := &unsteady{
		t: t, now: time.Unix(1e9, 0), machines: map[string]*v1alpha1.Machine{},
		owner:  map[types.UID]kubeone.HostClaim{},
		breaks: func() bool { return random.IntN(3) > 0 },
	}
	b := clientfake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&kubeone.Host{}, &v1alpha1.Machine{})
	for _, name := range []string{"w-1", "w-2"} {
		b = b.WithObjects(&kubeone.Host{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("host " + name)},
			Spec:       kubeone.HostSpec{Address: "192.0.2.9"},
		})
	}
	u.client = b.Build()
	u.Provider = New(u.client, u.client, &Site{Access: access, Now: func() time.Time { return u.now }})
	u.work = u.carryOut
	u.settings.read = func(context.Context) (desiredSettings, error) { return desiredSettings{}, nil }
	return u
}

func claimOf(m *v1alpha1.Machine) kubeone.HostClaim {
	return kubeone.HostClaim{Namespace: m.Namespace, Name: m.Name, UID: m.UID}
}

// carryOut is a run on a host. It fails the test if another Machine has the host.
func (u *unsteady) carryOut(_ context.Context, m *v1alpha1.Machine, h *kubeone.Host, a aim, _ bool) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if is := u.owner[h.UID]; is.UID != "" && is.UID != m.UID {
		u.t.Errorf("a run of %s on %s, which is %s's", m.Name, h.Name, is.Name)
	}
	if !a.reset {
		u.owner[h.UID] = claimOf(m) // the first step writes the marker
	}
	switch {
	case u.breaks():
		return errors.New("broken")
	case a.reset:
		delete(u.owner, h.UID)
	}
	return nil
}

// look reconciles everything once, without retry delays.
func (u *unsteady) look() {
	u.t.Helper()
	ctx := u.t.Context()
	for _, name := range u.names() {
		m := u.machines[name]
		if m.DeletionTimestamp != nil {
			if u.Delete(ctx, m) == nil {
				u.must(u.client.Delete(ctx, m.DeepCopy()))
				delete(u.machines, name)
			}
		} else if is, found, err := u.Exists(ctx, m); err != nil {
			u.t.Fatal(err)
		} else if !found || !is.Complete {
			_, _ = u.Create(ctx, m) // its error is for the Machine's status
		}
		u.settle()
	}
	for _, name := range []string{"w-1", "w-2"} {
		_, err := hosts{u.Provider}.Reconcile(ctx, reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
		u.must(err)
		u.settle()
	}
	u.claimedOnce()
}

func (u *unsteady) names() []string { return slices.Sorted(maps.Keys(u.machines)) }

// settle waits for runs to end and records the owner of each host.
func (u *unsteady) settle() {
	u.runs.all.Wait()
	u.runs.mu.Lock()
	for _, r := range u.runs.of {
		r.ended = r.ended.Add(-time.Hour)
	}
	u.runs.mu.Unlock()
	for _, name := range []string{"w-1", "w-2"} {
		uid := types.UID("host " + name)
		u.mu.Lock()
		u.owners.noteOwner(uid, u.owner[uid])
		u.mu.Unlock()
	}
}

func (u *unsteady) must(err error) {
	u.t.Helper()
	if err != nil {
		u.t.Fatal(err)
	}
}

func (u *unsteady) hosts() []kubeone.Host {
	u.t.Helper()
	var all kubeone.HostList
	u.must(u.client.List(u.t.Context(), &all))
	return all.Items
}

// claimedOnce compares Hosts with the hosts' markers: no Machine has two hosts, and no host with an owner is free.
func (u *unsteady) claimedOnce() {
	u.t.Helper()
	has := map[types.UID]string{}
	for _, h := range u.hosts() {
		is := u.owner[h.UID]
		switch c := h.Status.Claim; {
		case c == nil && is.UID != "":
			u.t.Fatalf("%s is %s, and has %s", h.Name, h.Status.State, is.Name)
		case c == nil:
			continue
		case is.UID != "" && is.UID != c.UID:
			u.t.Fatalf("%s is claimed by %s, and has %s", h.Name, c.Name, is.Name)
		case has[c.UID] != "":
			u.t.Fatalf("%s has %s and %s", c.Name, has[c.UID], h.Name)
		default:
			has[c.UID] = h.Name
		}
	}
}

// TestAClockThatJumps creates and deletes Machines and fails runs while the clock jumps by up to two days, forward and
// back. No host is ever claimed by two Machines. With a steady clock and without failures, both hosts become Nodes.
func TestAClockThatJumps(t *testing.T) {
	t.Parallel()
	access, random := recordOf(t), rand.New(rand.NewPCG(3, 4)) // deterministic
	for range 6 {
		u := newUnsteady(t, access, random)
		for range 30 {
			u.now = u.now.Add(time.Duration(random.Int64N(int64(96*time.Hour))) - 48*time.Hour)
			switch what := random.IntN(6); {
			case what < 2 && len(u.machines) < 3:
				u.add()
			case what == 2:
				if names := u.names(); len(names) > 0 {
					u.machines[names[random.IntN(len(names))]].DeletionTimestamp = &metav1.Time{Time: u.now}
				}
			}
			u.look()
		}
		u.breaks = func() bool { return false }
		for len(u.machines) < 3 {
			u.add()
		}
		for range 12 {
			u.now = u.now.Add(time.Minute)
			u.look()
			for len(u.machines) < 3 {
				u.add()
			}
		}
		for _, h := range u.hosts() {
			if h.Status.State != kubeone.HostJoined {
				t.Errorf("%s is %s (%s) until %v, and it is %v", h.Name, h.Status.State, h.Status.Message,
					h.Status.RetryAfter, u.now)
			}
		}
	}
}

func (u *unsteady) add() {
	u.t.Helper()
	u.made++
	m := &v1alpha1.Machine{Spec: specOf("")}
	m.Namespace, m.Name = "ns", fmt.Sprint("m-", u.made)
	m.UID = types.UID("uid of " + m.Name)
	u.must(u.client.Create(u.t.Context(), m.DeepCopy()))
	u.machines[m.Name] = m
}
