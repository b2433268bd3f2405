package load

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// guard watches the Deployment's pods and its disruption budget.
type guard struct {
	client kubernetes.Interface

	mu   sync.Mutex
	pods map[string]*pod // by UID
	seen Pods
	// below and broken are the current violations, so that each one counts once.
	below, broken bool
}

type pod struct {
	name                    string
	ready, wasReady, ending bool
}

func newGuard(client kubernetes.Interface) *guard {
	return &guard{client: client, pods: map[string]*pod{}, seen: Pods{LeastReady: replicas, LeastHealthy: replicas}}
}

// watchPods lists all pods, and then follows every change until ctx ends. It restarts a broken watch.
func (g *guard) watchPods(ctx context.Context) {
	pods := g.client.CoreV1().Pods(namespace)
	for ok := true; ok; ok = awaitNext(ctx, 100*time.Millisecond) {
		list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: "app=" + app})
		if err != nil {
			continue
		}
		g.replacePods(list.Items)
		changes, err := pods.Watch(ctx,
			metav1.ListOptions{LabelSelector: "app=" + app, ResourceVersion: list.ResourceVersion})
		if err != nil {
			continue
		}
		for change := range changes.ResultChan() {
			if p, ok := change.Object.(*corev1.Pod); ok {
				g.changePod(change.Type, *p)
			}
		}
	}
}

func (g *guard) replacePods(pods []corev1.Pod) {
	g.mu.Lock()
	defer g.mu.Unlock()
	old := g.pods
	g.pods = map[string]*pod{}
	for _, p := range pods {
		if was := old[string(p.UID)]; was != nil {
			g.pods[string(p.UID)] = was
		}
		g.notePod(p)
	}
	g.judgePods()
}

func (g *guard) changePod(kind watch.EventType, p corev1.Pod) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if kind == watch.Deleted {
		delete(g.pods, string(p.UID))
	} else {
		g.notePod(p)
	}
	g.judgePods()
}

func (g *guard) notePod(p corev1.Pod) {
	seen := g.pods[string(p.UID)]
	if seen == nil {
		seen = &pod{name: p.Name}
		g.pods[string(p.UID)] = seen
	}
	seen.ending = p.DeletionTimestamp != nil
	seen.ready = false
	for _, c := range p.Status.Conditions {
		seen.ready = seen.ready || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	}
	seen.wasReady = seen.wasReady || seen.ready
}

// judgePods counts pods that are ready and not terminating. A pod that became unready in place was not evicted: if
// there are too few pods even with those, evictions are the cause.
func (g *guard) judgePods() {
	ready, fell := 0, 0
	for _, p := range g.pods {
		switch {
		case p.ending:
		case p.ready:
			ready++
		case p.wasReady:
			fell++
		}
	}
	g.seen.LeastReady = min(g.seen.LeastReady, ready)
	below := ready < minAvailable
	if below && !g.below {
		where := fmt.Sprintf("%s: %d ready, %d unready where they are", time.Now().Format(time.TimeOnly), ready, fell)
		if ready+fell < minAvailable {
			g.seen.ByEviction = append(g.seen.ByEviction, where)
		} else {
			g.seen.Otherwise = append(g.seen.Otherwise, where)
		}
	}
	g.below = below
}

// watchBudget follows the status of the disruption budget.
func (g *guard) watchBudget(ctx context.Context) {
	budgets := g.client.PolicyV1().PodDisruptionBudgets(namespace)
	for ok := true; ok; ok = awaitNext(ctx, 100*time.Millisecond) {
		list, err := budgets.List(ctx, metav1.ListOptions{})
		if err != nil {
			continue
		}
		for _, b := range list.Items {
			g.noteHealthy(b)
		}
		changes, err := budgets.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
		if err != nil {
			continue
		}
		for change := range changes.ResultChan() {
			if b, ok := change.Object.(*policyv1.PodDisruptionBudget); ok {
				g.noteHealthy(*b)
			}
		}
	}
}

func (g *guard) noteHealthy(b policyv1.PodDisruptionBudget) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := int(b.Status.CurrentHealthy)
	g.seen.LeastHealthy = min(g.seen.LeastHealthy, now)
	broken := now < minAvailable
	if broken && !g.broken {
		g.seen.BudgetBroken++
	}
	g.broken = broken
}

func (g *guard) reportPods() Pods {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seen
}
