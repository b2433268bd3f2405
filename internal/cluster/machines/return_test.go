package machines

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"kubeone/internal/cluster/apicall"
)

// yard is a cluster with Machines and fake controllers.
type yard struct {
	Returner
	t   *testing.T
	kub *fake.Clientset
	dyn *dynamicfake.FakeDynamicClient

	mu      sync.Mutex
	deleted []string // in order
}

func object(kind schema.GroupVersionResource, singular, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetAPIVersion(kind.GroupVersion().String())
	o.SetKind(singular)
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetUID(types.UID("uid-" + name))
	return o
}

func hostOf(name, machine string) *unstructured.Unstructured {
	o := object(Hosts(), "Host", "", name)
	status := map[string]any{"state": "Free"}
	if machine != "" {
		status = map[string]any{
			"state": "Joined", "message": "no\x1b[2J\nanswer",
			"claim": map[string]any{"namespace": "kube-system", "name": machine, "uid": "uid-" + machine},
		}
	}
	o.Object["status"] = status
	return o
}

// newYard returns a yard with a deployment, its set, two Machines with hosts, and a free host.
func newYard(t *testing.T) *yard {
	t.Helper()
	holder, now := "ops-1", metav1.NewMicroTime(time.Now())
	y := &yard{
		t: t,
		kub: fake.NewClientset(&coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: Lease},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &now},
		}),
		dyn: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
			map[schema.GroupVersionResource]string{
				Deployments(): "MachineDeploymentList", Sets(): "MachineSetList", Machines(): "MachineList",
				Hosts(): "HostList",
			},
			object(Deployments(), "MachineDeployment", "kube-system", "pool"),
			object(Sets(), "MachineSet", "kube-system", "pool-a"),
			object(Machines(), "Machine", "kube-system", "pool-a-1"),
			object(Machines(), "Machine", "kube-system", "pool-a-2"),
			hostOf("m-1", "pool-a-1"), hostOf("m-2", "pool-a-2"), hostOf("m-3", ""),
		),
	}
	y.Returner = Returner{Kubernetes: y.kub, Dynamic: y.dyn}
	y.dyn.PrependReactor("delete", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		d := a.(clienttesting.DeleteAction)
		y.mu.Lock()
		y.deleted = append(y.deleted, d.GetResource().Resource+"/"+d.GetName())
		y.mu.Unlock()
		if d.GetResource() != Machines() {
			return false, nil, nil
		}
		got, err := y.dyn.Tracker().Get(Machines(), d.GetNamespace(), d.GetName())
		if err != nil {
			return true, nil, err
		}
		o := got.(*unstructured.Unstructured).DeepCopy() // its finalizer keeps it
		at := metav1.Now()
		o.SetDeletionTimestamp(&at)
		return true, nil, y.dyn.Tracker().Update(Machines(), o, d.GetNamespace())
	})
	return y
}

// controllers renew their Lease and return the hosts of deleted Machines, except the silent ones, until the context
// ends.
func (y *yard) controllers(ctx context.Context, silent ...string) {
	for beat := 0; ctx.Err() == nil; beat++ {
		lease, err := y.kub.CoordinationV1().Leases(Namespace).Get(ctx, Lease, metav1.GetOptions{})
		if err != nil {
			return
		}
		now := metav1.NewMicroTime(time.Now())
		lease.Spec.RenewTime = &now
		if _, err := y.kub.CoordinationV1().Leases(Namespace).Update(ctx, lease, metav1.UpdateOptions{}); err != nil {
			return
		}
		if beat > 10 {
			y.give(silent)
		}
		select {
		case <-ctx.Done():
		case <-time.After(2 * time.Second):
		}
	}
}

func (y *yard) give(silent []string) {
	for host, machine := range map[string]string{"m-1": "pool-a-1", "m-2": "pool-a-2"} {
		got, err := y.dyn.Tracker().Get(Machines(), "kube-system", machine)
		if err != nil || got.(*unstructured.Unstructured).GetDeletionTimestamp() == nil {
			continue
		}
		if !slices.Contains(silent, host) {
			if err := y.dyn.Tracker().Update(Hosts(), hostOf(host, ""), ""); err != nil {
				y.t.Error(err)
			}
		}
		if err := y.dyn.Tracker().Delete(Machines(), "kube-system", machine); err != nil {
			y.t.Error(err)
		}
	}
}

func TestMachinesAreDeletedFromTheOwnerToTheOwned(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	for range 2 { // the second time there is nothing to do
		if err := y.DeleteMachines(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"machinedeployments/pool", "machinesets/pool-a", "machines/pool-a-1", "machines/pool-a-2"}
	if !slices.Equal(y.deleted, want) {
		t.Errorf("deleted %v, want %v", y.deleted, want)
	}
}

func TestAClusterWithoutTheKindsHasNoMachines(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	y.dyn.PrependReactor("list", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewNotFound(a.GetResource().GroupResource(), "")
	})
	if err := y.DeleteMachines(t.Context()); err != nil {
		t.Error(err)
	}
	if err := y.WaitHostsFree(t.Context(), time.Minute); err != nil {
		t.Error(err)
	}
}

// wait deletes the Machines and waits for their hosts. The controllers stop after alive.
func (y *yard) wait(alive, within time.Duration, silent ...string) (took time.Duration, err error) {
	y.t.Helper()
	ctx, cancel := context.WithTimeout(y.t.Context(), alive)
	defer cancel()
	go y.controllers(ctx, silent...)
	if err := y.DeleteMachines(y.t.Context()); err != nil {
		y.t.Fatal(err)
	}
	began := time.Now()
	err = y.WaitHostsFree(y.t.Context(), within)
	return time.Since(began), err
}

func TestHostsAreAwaitedUntilTheyAreFree(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		took, err := newYard(t).wait(time.Hour, time.Hour)
		if err != nil || took < 15*time.Second || took > 30*time.Second {
			t.Errorf("%v after %s", err, took)
		}
	})
}

func TestTheWaitForHostsEndsWhereNothingComesOfIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		alive  time.Duration // of the controllers
		within time.Duration
		silent []string
		most   time.Duration
		says   []string
	}{
		{
			"a silent host", time.Hour, time.Hour, []string{"m-2"}, 100 * time.Second,
			[]string{
				"m-2 (Machine kube-system/pool-a-2: no[2J answer)", "these hosts do not respond", "--abandon-machines",
			},
		},
		{
			"no controllers any more", 5 * time.Second, time.Hour, nil, 80 * time.Second,
			[]string{"m-1", "m-2", "the controllers do not respond", "--abandon-machines"},
		},
		{"too slow", time.Hour, 10 * time.Second, nil, 12 * time.Second, []string{"m-1", "m-2", "within 10s"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				took, err := newYard(t).wait(c.alive, c.within, c.silent...)
				if err == nil || apicall.Classify(err) != apicall.Operator || took > c.most {
					t.Fatalf("%v after %s", err, took)
				}
				for _, says := range c.says {
					if !strings.Contains(err.Error(), says) {
						t.Errorf("%q does not say %q", err, says)
					}
				}
				if strings.ContainsAny(err.Error(), "\x1b\n") ||
					c.silent != nil && strings.Contains(err.Error(), "m-1") {
					t.Errorf("%q", err)
				}
			})
		})
	}
}

// A restarting API server does not end the wait.
func TestASilentAPIEndsNoWaitForHosts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y, began := newYard(t), time.Now()
		y.dyn.PrependReactor("list", "hosts", func(clienttesting.Action) (bool, runtime.Object, error) {
			away := time.Since(began) > 5*time.Second && time.Since(began) < 3*time.Minute
			return away, nil, apierrors.NewServiceUnavailable("it restarts")
		})
		if took, err := y.wait(time.Hour, time.Hour); err != nil || took < 3*time.Minute {
			t.Errorf("%v after %s", err, took)
		}
	})
}

func TestAnInterruptedWaitForHostsSaysWhoIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		err := y.WaitHostsFree(ctx, time.Hour)
		if err == nil || !strings.Contains(err.Error(), "m-1") || !strings.Contains(err.Error(), "deadline exceeded") {
			t.Errorf("got %v", err)
		}
	})
}
