// Package drain takes the pods off a node and lets them back: cordon, evict, uncordon.
package drain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubectl/pkg/drain"

	"kubeone/internal/cluster/apicall"
	"kubeone/internal/cluster/nodes"
)

const (
	drainTimeout = 5 * time.Minute
	evictAgain   = time.Second // after a disruption budget said no
	dyingLimit   = 60          // seconds after which a pod that should have ended on a silent node is not waited for
)

// Drainer drains nodes.
type Drainer struct {
	Kubernetes kubernetes.Interface
}

// Options says how a node is drained.
type Options struct {
	// Timeout is for the whole drain; 0 means five minutes. The context's deadline holds as well.
	Timeout time.Duration
	// Mark, where it is not empty, is noted on the node together with the cordon, unless somebody else has cordoned it
	// before: Reopen opens only nodes so marked.
	Mark string
	// Force deletes the pods that have not left when the time is over, whatever their disruption budgets say.
	Force bool
	// Grace is how long a pod may take to end itself, in seconds; nil is each pod's own.
	Grace *int
	// Evicted is told each pod that is gone, as "namespace/name", from several goroutines; nil tells nobody.
	Evicted func(pod string)

	dying int // seconds after which pods that should have ended are not waited for; 0 waits for all
}

// BlockedPod is a pod that is still on a node after a drain, and why.
type BlockedPod struct {
	Pod    string // namespace/name
	Reason string
}

// BlockedError says which pods kept a node from being drained. The node stays cordoned. A person may have to act;
// draining again goes on where this ended.
type BlockedError struct {
	Node string
	Pods []BlockedPod // sorted by name
	Err  error        // what ended the drain
}

// Error names the pods and what holds each.
func (e *BlockedError) Error() string {
	parts := make([]string, len(e.Pods))
	for i, p := range e.Pods {
		parts[i] = p.Pod + " (" + p.Reason + ")"
	}
	return fmt.Sprintf("%d pods did not leave: %s", len(e.Pods), strings.Join(parts, ", "))
}

// Unwrap gives what ended the drain.
func (e *BlockedError) Unwrap() error { return e.Err }

// Drain cordons a node and evicts its pods, respecting disruption budgets, and waits until they are gone. Pods of DaemonSets
// and static pods stay; pods without a controller and the content of emptyDir volumes are lost. A node that does not exist is
// drained, and pods of one that is not Ready are not waited for long, since nobody there ends them. When time runs out, or a
// budget can never allow an eviction, the error wraps a *BlockedError, of class Operator; in the second case the node
// was not even cordoned.
func (c Drainer) Drain(ctx context.Context, node string, opts Options) error {
	opts.Timeout = cmp.Or(opts.Timeout, drainTimeout)
	limited, cancel := context.WithTimeout(ctx, opts.Timeout)
	defer cancel()
	if c.silent(limited, node) {
		opts.dying = dyingLimit
	}
	helper := c.drainer(limited, opts)
	if !opts.Force {
		if stuck := c.stuck(limited, helper, node); len(stuck) > 0 {
			return &apicall.Error{Op: "drain node", Node: node, Class: apicall.Operator, Err: &BlockedError{Node: node, Pods: stuck, Err: errNeverAllowed}}
		}
	}
	if err := c.Cordon(limited, node, opts.Mark); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	err := apicall.Retry(limited, "drain node", node, func(context.Context) error { return evictAll(helper, node) })
	if err == nil {
		return nil
	}
	if opts.Force && ctx.Err() == nil {
		if err = c.deleteAll(ctx, node, opts); err == nil {
			return nil
		}
	}
	if blocked := c.blocked(ctx, helper, node); len(blocked) > 0 {
		return &apicall.Error{Op: "drain node", Node: node, Class: apicall.Operator, Err: &BlockedError{Node: node, Pods: blocked, Err: err}}
	}
	return err
}

var errNeverAllowed = errors.New("no eviction would ever be allowed")

// silent reports whether a node is known not to be Ready.
func (c Drainer) silent(ctx context.Context, node string) bool {
	ready := true
	err := apicall.Retry(ctx, "look at node", node, func(ctx context.Context) error {
		n, err := c.Kubernetes.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
		if err == nil {
			ready, _, err = nodes.Ready(n)
		}
		return err
	})
	return err == nil && !ready
}

// deleteAll deletes what evictions did not move.
func (c Drainer) deleteAll(ctx context.Context, node string, opts Options) error {
	ctx, cancel := context.WithTimeout(ctx, opts.Timeout)
	defer cancel()
	helper := c.drainer(ctx, opts)
	helper.DisableEviction = true
	return apicall.Retry(ctx, "delete the pods of", node, func(context.Context) error { return evictAll(helper, node) })
}

func evictAll(helper *drain.Helper, node string) error {
	list, errs := helper.GetPodsForDeletion(node)
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := helper.DeleteOrEvictPods(list.Pods()); err != nil {
		// What it returns has lost its cause; to begin again does no harm, and the drain's deadline ends it.
		return &apicall.Error{Op: "evict the pods of", Node: node, Class: apicall.Transient, Err: err}
	}
	return nil
}

func (c Drainer) drainer(ctx context.Context, opts Options) *drain.Helper {
	grace := -1
	if opts.Grace != nil {
		grace = *opts.Grace
	}
	return &drain.Helper{
		Ctx: ctx, Client: c.Kubernetes, Timeout: opts.Timeout, EvictErrorRetryDelay: evictAgain,
		Force: true, IgnoreAllDaemonSets: true, DeleteEmptyDirData: true, GracePeriodSeconds: grace, SkipWaitForDeleteTimeoutSeconds: opts.dying,
		Out: io.Discard, ErrOut: io.Discard,
		OnPodDeletionOrEvictionFinished: func(pod *corev1.Pod, _ bool, err error) {
			if err == nil && opts.Evicted != nil {
				opts.Evicted(pod.Namespace + "/" + pod.Name)
			}
		},
	}
}

// blocked finds out what is left on a node; it has a little time of its own, since that of the drain is over.
func (c Drainer) blocked(ctx context.Context, helper *drain.Helper, node string) []BlockedPod {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), apicall.RequestTimeout)
	defer cancel()
	again := *helper
	again.Ctx = ctx
	list, errs := again.GetPodsForDeletion(node)
	if len(errs) > 0 {
		return nil
	}
	budgets := c.budgets(ctx)
	var left []BlockedPod
	for _, pod := range list.Pods() {
		left = append(left, BlockedPod{Pod: pod.Namespace + "/" + pod.Name, Reason: whyBlocked(&pod, budgets)})
	}
	slices.SortFunc(left, func(a, b BlockedPod) int { return strings.Compare(a.Pod, b.Pod) })
	return left
}

// stuck are the pods that no waiting would let go: their budget allows no disruption although all its pods are healthy.
func (c Drainer) stuck(ctx context.Context, helper *drain.Helper, node string) []BlockedPod {
	list, errs := helper.GetPodsForDeletion(node)
	if len(errs) > 0 {
		return nil // the drain itself says why
	}
	var out []BlockedPod
	var budgets []policyv1.PodDisruptionBudget
	for n, pod := range list.Pods() {
		if n == 0 {
			budgets = c.budgets(ctx)
		}
		for _, b := range covering(&pod, budgets) {
			if NeverAllows(&b) && pod.DeletionTimestamp == nil {
				out = append(out, BlockedPod{Pod: pod.Namespace + "/" + pod.Name, Reason: neverReason(&b)})
			}
		}
	}
	slices.SortFunc(out, func(a, b BlockedPod) int { return strings.Compare(a.Pod, b.Pod) })
	return out
}

// NeverAllows reports whether a budget wants all its pods, and all are healthy: waiting does not help. One that merely allows
// no disruption now may be in use by another drain.
func NeverAllows(b *policyv1.PodDisruptionBudget) bool {
	s := b.Status
	return s.ObservedGeneration == b.Generation && s.ExpectedPods > 0 && s.DesiredHealthy >= s.ExpectedPods && s.CurrentHealthy >= s.ExpectedPods
}

func neverReason(b *policyv1.PodDisruptionBudget) string {
	return fmt.Sprintf("PodDisruptionBudget %s wants %d of %d pods, so it never allows a disruption", b.Name, b.Status.DesiredHealthy, b.Status.ExpectedPods)
}

// budgets are all disruption budgets; none where they cannot be read.
func (c Drainer) budgets(ctx context.Context) []policyv1.PodDisruptionBudget {
	list, err := c.Kubernetes.PolicyV1().PodDisruptionBudgets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	return list.Items
}

// covering are the budgets that a pod falls under.
func covering(pod *corev1.Pod, budgets []policyv1.PodDisruptionBudget) []policyv1.PodDisruptionBudget {
	var out []policyv1.PodDisruptionBudget
	for _, budget := range budgets {
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err == nil && budget.Namespace == pod.Namespace && selector.Matches(labels.Set(pod.Labels)) {
			out = append(out, budget)
		}
	}
	return out
}

// whyBlocked is what keeps a pod: itself while it terminates, or a budget that allows no disruption.
func whyBlocked(pod *corev1.Pod, budgets []policyv1.PodDisruptionBudget) string {
	if pod.DeletionTimestamp != nil {
		return "still terminating"
	}
	for _, budget := range covering(pod, budgets) {
		if budget.Status.DisruptionsAllowed == 0 {
			return "PodDisruptionBudget " + budget.Name + " allows no disruption"
		}
	}
	return "not evicted in time"
}
