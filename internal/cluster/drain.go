package cluster

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
	"k8s.io/kubectl/pkg/drain"
)

const (
	drainTimeout = 5 * time.Minute
	evictAgain   = time.Second // after a disruption budget said no
)

// DrainOptions says how a node is drained.
type DrainOptions struct {
	// Timeout is for the whole drain; 0 means five minutes. The context's deadline holds as well.
	Timeout time.Duration
	// Evicted is told each pod that is gone, as "namespace/name", from several goroutines; nil tells nobody.
	Evicted func(pod string)
}

// BlockedPod is a pod that is still on a node after a drain, and why.
type BlockedPod struct {
	Pod    string // namespace/name
	Reason string
}

// DrainBlockedError says which pods kept a node from being drained. The node stays cordoned. A person may have to act;
// draining again goes on where this ended.
type DrainBlockedError struct {
	Node string
	Pods []BlockedPod // sorted by name
	Err  error        // what ended the drain
}

// Error names the pods and what holds each.
func (e *DrainBlockedError) Error() string {
	parts := make([]string, len(e.Pods))
	for i, p := range e.Pods {
		parts[i] = p.Pod + " (" + p.Reason + ")"
	}
	return fmt.Sprintf("%d pods did not leave: %s", len(e.Pods), strings.Join(parts, ", "))
}

// Unwrap gives what ended the drain.
func (e *DrainBlockedError) Unwrap() error { return e.Err }

// Cordon keeps new pods from a node.
func (c *Client) Cordon(ctx context.Context, node string) error { return c.setCordon(ctx, node, true) }

// Uncordon lets pods onto a node again.
func (c *Client) Uncordon(ctx context.Context, node string) error {
	return c.setCordon(ctx, node, false)
}

func (c *Client) setCordon(ctx context.Context, node string, cordoned bool) error {
	op := "uncordon node"
	if cordoned {
		op = "cordon node"
	}
	return retry(ctx, op, node, func(ctx context.Context) error {
		have, err := c.Kubernetes.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return drain.RunCordonOrUncordon(c.drainer(ctx, DrainOptions{}), have, cordoned)
	})
}

// Drain cordons a node and evicts its pods, respecting disruption budgets, and waits until they are gone. Pods of DaemonSets
// and static pods stay; pods without a controller and the content of emptyDir volumes are lost. A node that does not exist is
// drained. When time runs out the error wraps a *DrainBlockedError, of class Operator.
func (c *Client) Drain(ctx context.Context, node string, opts DrainOptions) error {
	opts.Timeout = cmp.Or(opts.Timeout, drainTimeout)
	ctx, cancel := context.WithTimeout(ctx, opts.Timeout)
	defer cancel()
	if err := c.Cordon(ctx, node); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	helper := c.drainer(ctx, opts)
	err := retry(ctx, "drain node", node, func(context.Context) error { return evictAll(helper, node) })
	if err == nil {
		return nil
	}
	if blocked := c.blocked(ctx, helper, node); len(blocked) > 0 {
		return &Error{Op: "drain node", Node: node, Class: Operator, Err: &DrainBlockedError{Node: node, Pods: blocked, Err: err}}
	}
	return err
}

func evictAll(helper *drain.Helper, node string) error {
	list, errs := helper.GetPodsForDeletion(node)
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := helper.DeleteOrEvictPods(list.Pods()); err != nil {
		// What it returns has lost its cause; to begin again does no harm, and the drain's deadline ends it.
		return &Error{Op: "evict the pods of", Node: node, Class: Transient, Err: err}
	}
	return nil
}

func (c *Client) drainer(ctx context.Context, opts DrainOptions) *drain.Helper {
	return &drain.Helper{
		Ctx: ctx, Client: c.Kubernetes, Timeout: opts.Timeout, EvictErrorRetryDelay: evictAgain,
		Force: true, IgnoreAllDaemonSets: true, DeleteEmptyDirData: true, GracePeriodSeconds: -1,
		Out: io.Discard, ErrOut: io.Discard,
		OnPodDeletionOrEvictionFinished: func(pod *corev1.Pod, _ bool, err error) {
			if err == nil && opts.Evicted != nil {
				opts.Evicted(pod.Namespace + "/" + pod.Name)
			}
		},
	}
}

// blocked finds out what is left on a node; it has a little time of its own, since that of the drain is over.
func (c *Client) blocked(ctx context.Context, helper *drain.Helper, node string) []BlockedPod {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	again := *helper
	again.Ctx = ctx
	list, errs := again.GetPodsForDeletion(node)
	if len(errs) > 0 {
		return nil
	}
	budgets, err := c.Kubernetes.PolicyV1().PodDisruptionBudgets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		budgets = &policyv1.PodDisruptionBudgetList{}
	}
	var left []BlockedPod
	for _, pod := range list.Pods() {
		left = append(left, BlockedPod{Pod: pod.Namespace + "/" + pod.Name, Reason: whyBlocked(&pod, budgets.Items)})
	}
	slices.SortFunc(left, func(a, b BlockedPod) int { return strings.Compare(a.Pod, b.Pod) })
	return left
}

// whyBlocked is what keeps a pod: itself while it terminates, or a budget that allows no disruption.
func whyBlocked(pod *corev1.Pod, budgets []policyv1.PodDisruptionBudget) string {
	if pod.DeletionTimestamp != nil {
		return "still terminating"
	}
	for _, budget := range budgets {
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err != nil || budget.Namespace != pod.Namespace || !selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		if budget.Status.DisruptionsAllowed == 0 {
			return "PodDisruptionBudget " + budget.Name + " allows no disruption"
		}
	}
	return "not evicted in time"
}
