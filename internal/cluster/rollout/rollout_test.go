package rollout

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"kubeone/internal/addons/resources"
	"kubeone/internal/cluster/apicall"
)

func TestWhenARolloutIsDone(t *testing.T) {
	t.Parallel()
	two := int32(2)
	daemonSet := func(s appsv1.DaemonSetStatus) func() (bool, string, error) {
		return func() (bool, string, error) {
			return daemonSetDone(&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Generation: 3}, Status: s})
		}
	}
	deployment := func(s appsv1.DeploymentStatus,
		check func(*appsv1.Deployment) (bool, string, error)) func() (bool, string, error) {
		return func() (bool, string, error) {
			return check(&appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Generation: 3},
				Spec:       appsv1.DeploymentSpec{Replicas: &two},
				Status:     s,
			})
		}
	}
	available := func(status corev1.ConditionStatus) []appsv1.DeploymentCondition {
		return []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentProgressing, Status: "True"},
			{Type: appsv1.DeploymentAvailable, Status: status, Reason: "Minimum"},
		}
	}
	for name, c := range map[string]struct {
		check func() (bool, string, error)
		done  bool
		state string
	}{
		"DaemonSet complete": {
			daemonSet(appsv1.DaemonSetStatus{
				ObservedGeneration:     3,
				DesiredNumberScheduled: 4,
				UpdatedNumberScheduled: 4,
				NumberAvailable:        4,
			}), true, "4 of 4",
		},
		"DaemonSet unseen": {
			daemonSet(appsv1.DaemonSetStatus{
				ObservedGeneration:     2,
				DesiredNumberScheduled: 4,
				UpdatedNumberScheduled: 4,
				NumberAvailable:        4,
			}), false, "has not observed the change",
		},
		"DaemonSet old pods": {
			daemonSet(appsv1.DaemonSetStatus{
				ObservedGeneration:     3,
				DesiredNumberScheduled: 4,
				UpdatedNumberScheduled: 3,
				NumberAvailable:        4,
			}), false, "3 of 4",
		},
		"DaemonSet starting": {
			daemonSet(appsv1.DaemonSetStatus{
				ObservedGeneration:     3,
				DesiredNumberScheduled: 4,
				UpdatedNumberScheduled: 4,
				NumberAvailable:        1,
			}), false, "1 available",
		},
		"Deployment complete": {
			deployment(appsv1.DeploymentStatus{
				ObservedGeneration: 3,
				Replicas:           2,
				UpdatedReplicas:    2,
				AvailableReplicas:  2,
			}, deploymentDone), true, "",
		},
		"Deployment old pods": {
			deployment(appsv1.DeploymentStatus{
				ObservedGeneration: 3,
				Replicas:           3,
				UpdatedReplicas:    2,
				AvailableReplicas:  2,
			}, deploymentDone), false, "3 in all",
		},
		"Deployment unseen": {
			deployment(appsv1.DeploymentStatus{
				ObservedGeneration: 2,
				Replicas:           2,
				UpdatedReplicas:    2,
				AvailableReplicas:  2,
			}, deploymentDone), false, "has not observed the change",
		},
		"Deployment available": {
			deployment(appsv1.DeploymentStatus{ObservedGeneration: 3, Conditions: available("True")},
				deploymentAvailable), true, "",
		},
		"Deployment unavailable": {
			deployment(appsv1.DeploymentStatus{ObservedGeneration: 3, Conditions: available("False")},
				deploymentAvailable), false, "Minimum",
		},
		"Deployment new": {deployment(appsv1.DeploymentStatus{ObservedGeneration: 3}, deploymentAvailable), false,
			"the condition Available is missing"},
	} {
		done, state, err := c.check()
		if err != nil || done != c.done || !strings.Contains(state, c.state) {
			t.Errorf("%s: got %v, %q, %v; want %v with %q", name, done, state, err, c.done, c.state)
		}
	}
}

func TestWaitRolloutReturnsWithTheEvent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "net", Namespace: "sys", Generation: 1}}
		c, _ := faked(t, set)
		result := make(chan error)
		go func() {
			_, err := c.WaitRollout(t.Context(), resources.Workload{Kind: "DaemonSet", Namespace: "sys", Name: "net"})
			result <- err
		}()
		synctest.Wait()
		changed := time.Now()
		done := set.DeepCopy()
		done.Status = appsv1.DaemonSetStatus{
			ObservedGeneration:     1,
			DesiredNumberScheduled: 1,
			UpdatedNumberScheduled: 1,
			NumberAvailable:        1,
		}
		if _, err := c.Kubernetes.AppsV1().DaemonSets("sys").UpdateStatus(t.Context(), done,
			metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := <-result; err != nil || time.Since(changed) > 0 {
			t.Errorf("got %v after %s", err, time.Since(changed))
		}
		if _, err := c.WaitRollout(t.Context(),
			resources.Workload{Kind: "Job"}); apicall.Classify(err) != apicall.Terminal {
			t.Errorf("a Job: got %v, want a terminal error", err)
		}
	})
}

// proxies returns a DaemonSet in its second generation, three Nodes, and pods of the given generations on the first
// Nodes. The last Node is not Ready and has a pod of the first generation.
func proxies(generations ...int) (set *appsv1.DaemonSet, all []runtime.Object) {
	one := intstr.FromInt32(1)
	set = &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: "kube-proxy", Namespace: "kube-system", UID: "set", Generation: 2,
			Annotations: map[string]string{appsv1.DeprecatedTemplateGeneration: "2"},
		},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"k8s-app": "kube-proxy"}},
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{
				Type:          appsv1.RollingUpdateDaemonSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &one},
			},
		},
		Status: appsv1.DaemonSetStatus{
			ObservedGeneration:     2,
			DesiredNumberScheduled: 3,
			UpdatedNumberScheduled: 2,
			NumberAvailable:        2,
		},
	}
	all = append(all, set)
	for i, ready := range []corev1.ConditionStatus{"True", "True", "Unknown"} {
		name := "node-" + strconv.Itoa(i)
		all = append(all, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}},
		})
		generation := 1
		if i < len(generations) {
			generation = generations[i]
		}
		if generation > 0 {
			all = append(all, proxy(set, name, generation, ready))
		}
	}
	return set, all
}

func proxy(set *appsv1.DaemonSet, node string, generation int, ready corev1.ConditionStatus) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "kube-proxy-" + node, Namespace: set.Namespace,
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("DaemonSet")),
			},
			Labels: map[string]string{"k8s-app": "kube-proxy", "pod-template-generation": strconv.Itoa(generation)},
		},
		Spec:   corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
	}
}

func unavailable(t *testing.T, c Waiter) (string, map[string]string) {
	t.Helper()
	d, err := c.Kubernetes.AppsV1().DaemonSets("kube-system").Get(context.Background(), "kube-proxy",
		metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return d.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable.String(), d.Annotations
}

func TestARolloutDoesNotWaitForNodesThatAreNotReady(t *testing.T) {
	t.Parallel()
	kubeProxy := resources.Workload{Kind: "DaemonSet", Namespace: "kube-system", Name: "kube-proxy"}
	synctest.Test(t, func(t *testing.T) {
		_, all := proxies(2, 2)
		c, _ := faked(t, all...)
		began := time.Now()
		excused, err := c.WaitRollout(t.Context(), kubeProxy)
		if diff := cmp.Diff([]string{"node-2"}, excused); diff != "" || err != nil || time.Since(began) > 0 {
			t.Errorf("%v after %s, %s", err, time.Since(began), diff)
		}
	})
	for name, generations := range map[string][]int{
		"an old pod on a Ready Node": {2, 1},
		"no pod on a Ready Node":     {2, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			set, all := proxies(generations...)
			c, api := faked(t, all...)
			result := make(chan error)
			go func() {
				_, err := c.WaitRollout(t.Context(), kubeProxy)
				result <- err
			}()
			synctest.Wait()
			if room, _ := unavailable(t, c); room != "2" {
				t.Errorf("%s: %s pods may be unavailable, want 2", name, room)
			}
			next := proxy(set, "node-1", 2, corev1.ConditionTrue)
			_ = api.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), "kube-system", next.Name)
			if err := api.Tracker().Add(next); err != nil {
				t.Fatal(err)
			}
			if err := <-result; err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if room, notes := unavailable(t, c); room != "1" || notes["kubeone.k8c.io/max-unavailable"] != "" {
				t.Errorf("%s: afterwards %s pods may be unavailable, %v", name, room, notes)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) { // a Ready Node whose pod does not start
		_, all := proxies(2, 1)
		c, _ := faked(t, all...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := c.WaitRollout(ctx, kubeProxy)
		if err == nil || !strings.Contains(err.Error(), "not Ready: node-2") {
			t.Errorf("got %v", err)
		}
		if room, _ := unavailable(t, c); room != "1" {
			t.Errorf("afterwards %s pods may be unavailable", room)
		}
	})
}
