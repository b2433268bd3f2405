package drain

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"kubeone/internal/cluster/apicall"
	"kubeone/internal/cluster/nodes"
	"kubeone/internal/model/observed"
	"kubeone/internal/testutil/clustertest"
)

func pod(name, owner string) *corev1.Pod {
	controls := true
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:      name,
			Namespace: "default",
			UID:       "1",
			Labels:    map[string]string{"app": name},
		},
		Spec: corev1.PodSpec{NodeName: "cp-1"}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	if owner != "" {
		p.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: owner, Name: "owner", Controller: &controls},
		}
	}
	return p
}

// evicting makes the fake API evict the pods that allow returns true for. It refuses others like a disruption budget.
func evicting(api *fake.Clientset, allow func(pod string) bool) {
	api.Resources = []*metav1.APIResourceList{{GroupVersion: "v1", APIResources: []metav1.APIResource{
		{Name: "pods/eviction", Kind: "Eviction", Group: "policy", Version: "v1"},
	}}}
	api.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetSubresource() != "eviction" {
			return false, nil, nil
		}
		name := action.(clienttesting.CreateAction).GetObject().(*policyv1.Eviction).Name
		if !allow(name) {
			return true, nil, apierrors.NewTooManyRequests("disruption budget", 0)
		}
		return true, nil, api.Tracker().Delete(action.GetResource(), action.GetNamespace(), name)
	})
}

func cordoned(t *testing.T, c Drainer) bool {
	t.Helper()
	n, err := c.Kubernetes.CoreV1().Nodes().Get(context.Background(), "cp-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return n.Spec.Unschedulable
}

func TestDrainEvictsAllButDaemonSetsAndStaticPods(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		static := pod("static", "")
		static.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
		c, api := faked(t, node(nil), pod("web", "ReplicaSet"), pod("bare", ""), static)
		later := time.Now().Add(time.Minute)
		evicting(api, func(string) bool { return time.Now().After(later) }) // the budget allows it after a minute
		var lock sync.Mutex
		evicted := map[string]bool{}
		err := c.Drain(t.Context(), "cp-1", Options{Evicted: func(pod string) {
			lock.Lock()
			defer lock.Unlock()
			evicted[pod] = true
		}})
		if err != nil || !cordoned(t, c) {
			t.Errorf("got %v, cordoned %v", err, cordoned(t, c))
		}
		if diff := cmp.Diff(map[string]bool{"default/web": true, "default/bare": true}, evicted); diff != "" {
			t.Error(diff)
		}
		if took := time.Since(later); took > 5*time.Second {
			t.Errorf("the drain ended %s after it could", took)
		}
		if err := c.Uncordon(t.Context(), "cp-1"); err != nil || !cordoned(t, c) {
			t.Errorf("reopened what is not marked as ours: %v, cordoned %v", err, cordoned(t, c))
		}
	})
}

func TestDrainThatEndsTooLateNamesWhatBlocks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		budget := &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: "db-budget", Namespace: "default"},
			Spec: policyv1.PodDisruptionBudgetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}},
			},
		}
		dying := pod("dying", "ReplicaSet")
		dying.DeletionTimestamp, dying.Finalizers = &metav1.Time{Time: time.Now()}, []string{"kept/by"}
		c, api := faked(t, node(nil), pod("db", "ReplicaSet"), pod("odd", "ReplicaSet"), dying, budget)
		evicting(api, func(string) bool { return false })
		began := time.Now()
		err := c.Drain(t.Context(), "cp-1", Options{Timeout: 30 * time.Second})
		var blocked *BlockedError
		if !errors.As(err, &blocked) || apicall.Classify(err) != apicall.Operator {
			t.Fatalf("got %v, want a BlockedError", err)
		}
		want := []BlockedPod{
			{"default/db", "PodDisruptionBudget db-budget allows no disruption"},
			{"default/dying", "still terminating"},
			{"default/odd", "not evicted in time"},
		}
		if diff := cmp.Diff(want, blocked.Pods); diff != "" {
			t.Error(diff)
		}
		if took := time.Since(began); took > 35*time.Second {
			t.Errorf("it took %s, want 30s", took)
		}
	})
}

func TestDrainOfANodeThatIsGoneIsDone(t *testing.T) {
	t.Parallel()
	c, _ := faked(t)
	if err := c.Drain(t.Context(), "cp-1", Options{}); err != nil {
		t.Error(err)
	}
}

func TestADrainGoesOnPassByPass(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, api := faked(t, node(nil), pod("web", "ReplicaSet"), pod("db", "ReplicaSet"))
		allowed := map[string]bool{"web": true}
		evicting(api, func(pod string) bool { return allowed[pod] })
		var state progress
		var evicted []string
		opts := Options{Timeout: time.Minute, Evicted: func(pod string) { evicted = append(evicted, pod) }}
		began := time.Now()
		pass := func(want bool) []string {
			t.Helper()
			done, err := c.makePass(t.Context(), "cp-1", &state, opts)
			if err != nil || done != want {
				t.Fatalf("done %v, %v", done, err)
			}
			var names []string
			for _, p := range state.remaining {
				names = append(names, p.String())
			}
			return names
		}
		for _, want := range [][]string{{"default/db", "default/web"}, {"default/db"}, {"default/db"}} {
			if diff := cmp.Diff(want, pass(false)); diff != "" {
				t.Error(diff)
			}
		}
		allowed["db"] = true
		pass(false) // asks
		if left := pass(true); len(left) > 0 || !cordoned(t, c) {
			t.Errorf("%v left, cordoned %v", left, cordoned(t, c))
		}
		if diff := cmp.Diff([]string{"default/web", "default/db"}, evicted); diff != "" {
			t.Error(diff)
		}
		if time.Since(began) > 0 {
			t.Errorf("the passes have waited for %s", time.Since(began))
		}
	})
}

func TestAPassAfterTheDrainsTimeSaysWhatBlocks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, api := faked(t, node(nil), pod("db", "ReplicaSet"))
		evicting(api, func(string) bool { return false })
		state := progress{started: time.Now().Add(-time.Hour)}
		done, err := c.makePass(t.Context(), "cp-1", &state, Options{Timeout: time.Minute})
		var blocked *BlockedError
		if !done || len(state.remaining) != 1 || !errors.As(err, &blocked) ||
			apicall.Classify(err) != apicall.Operator {
			t.Errorf("%v left, done %v, %v", state.remaining, done, err)
		}
		done, err = c.makePass(t.Context(), "cp-1", &state, Options{Timeout: time.Minute, Force: true})
		if done || err != nil || state.deleting.IsZero() {
			t.Errorf("by force: done %v, %v, %+v", done, err, state)
		}
		done, err = c.makePass(t.Context(), "cp-1", &state, Options{Timeout: time.Minute, Force: true})
		if !done || err != nil {
			t.Errorf("after the deletions: %v left, done %v, %v", state.remaining, done, err)
		}
	})
}

func TestAPassThatTheAPIDoesNotAnswerIsMadeAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, api := faked(t, node(nil), pod("db", "ReplicaSet"))
		evicting(api, func(string) bool { return true })
		clustertest.FailOnce(api, "list", "pods", apierrors.NewServiceUnavailable("restarting"))
		clustertest.FailOnce(api, "update", "nodes", apierrors.NewServiceUnavailable("restarting"))
		if err := c.Drain(t.Context(), "cp-1", Options{}); err != nil {
			t.Error(err)
		}
	})
}

// closed returns a worker that a run has cordoned.
func closed(name, by string) *corev1.Node {
	return node(func(n *corev1.Node) {
		n.Name, n.Spec.Unschedulable, n.Annotations[observed.CordonAnnotation] = name, true, by
	})
}

func TestADrainBeginsWhenThereIsRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		controlPlane := closed("cp-9", "run-9")
		controlPlane.Labels[nodes.ControlPlaneLabel] = ""
		byHand := closed("w-8", "")
		c, api := faked(t, node(nil), closed("w-2", "run-2"), closed("w-3", "run-3"), controlPlane, byHand)
		time.AfterFunc(10*time.Second, func() {
			if err := c.Uncordon(context.Background(), "w-2"); err != nil {
				t.Error(err)
			}
		})
		var told []string
		began := time.Now()
		err := c.Drain(t.Context(), "cp-1", Options{Mark: "run-1", MaxUnavailable: 2, Full: func(e *FullError) {
			told = append(told, e.Error())
		}})
		if took := time.Since(began); err != nil || !cordoned(t, c) || took < 10*time.Second || took > 12*time.Second {
			t.Errorf("after %s: %v, cordoned %v", took, err, cordoned(t, c))
		}
		want := []string{"upgrade.maxUnavailable is 2, and these workers are already out of service: w-2, w-3"}
		if diff := cmp.Diff(want, told); diff != "" {
			t.Error(diff)
		}
		if n := len(api.Actions()); n > 200 {
			t.Errorf("%d requests", n)
		}
	})
}

func TestAnInterruptedDrainGoesOnWhereThereIsLessRoomNow(t *testing.T) {
	t.Parallel()
	c, _ := faked(t, closed("cp-1", "run-1"), closed("w-2", "run-1"))
	done, err := c.makePass(t.Context(), "cp-1", &progress{}, Options{Mark: "run-2", MaxUnavailable: 1})
	if !done || err != nil {
		t.Errorf("done %v, %v", done, err)
	}
}

// If two runs cordon at the same moment, each sees the other's cordon only afterwards.
func TestOfTwoThatCordonAtTheSameMomentBothGiveWay(t *testing.T) {
	t.Parallel()
	c, api := faked(t, node(nil))
	api.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		err := api.Tracker().Add(closed("w-2", "run-2"))
		return false, nil, err
	})
	var state progress
	done, err := c.makePass(t.Context(), "cp-1", &state, Options{Mark: "run-1", MaxUnavailable: 1})
	var full *FullError
	if done || !errors.As(err, &full) || apicall.Classify(err) != apicall.Transient || cordoned(t, c) ||
		!state.started.IsZero() {
		t.Errorf("done %v, %v, cordoned %v", done, err, cordoned(t, c))
	}
}
