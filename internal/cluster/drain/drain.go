// Package drain cordons nodes, evicts their pods, and uncordons them.
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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubectl/pkg/drain"

	"kubeone/internal/cluster/apicall"
	"kubeone/internal/cluster/nodes"
	"kubeone/internal/retry"
)

const (
	drainTimeout     = 5 * time.Minute
	evictRetryDelay  = time.Second // after a disruption budget refused
	terminatingLimit = 60          // seconds to wait for a terminating pod on a silent node
)

// Drainer drains nodes.
type Drainer struct {
	Kubernetes kubernetes.Interface
}

// Options configure a drain.
type Options struct {
	// Timeout is for the whole drain; 0 means five minutes. The context's deadline applies too.
	Timeout time.Duration
	// Mark is written to the node with the cordon, unless the node is already cordoned. Uncordon only changes marked
	// nodes. "" is no mark.
	Mark string
	// Force deletes the pods that remain after Timeout, regardless of disruption budgets.
	Force bool
	// MaxUnavailable is how many workers, including this one, runs may have cordoned at a time; 0 is no limit. The
	// drain waits until it may begin.
	MaxUnavailable int
	// Grace is the termination grace period of pods in seconds; nil is each pod's own.
	Grace *int
	// Full is called once if Drain must wait for other workers. Nil disables the callback.
	Full func(*FullError)
	// Evicted is called for each pod that has left, with "namespace/name". Nil disables the callback.
	Evicted func(pod string)
}

// BlockedPod is a pod that remains after a drain.
type BlockedPod struct {
	Pod    string // namespace/name
	Reason string
}

// BlockedError reports the pods that blocked a drain. The node stays cordoned. An operator may have to act; another
// drain resumes where this one ended.
type BlockedError struct {
	Node string
	Pods []BlockedPod // sorted by name
	Err  error        // what ended the drain
}

// Error names the pods and the reasons.
func (e *BlockedError) Error() string {
	parts := make([]string, len(e.Pods))
	for i, p := range e.Pods {
		parts[i] = p.Pod + " (" + p.Reason + ")"
	}
	return fmt.Sprintf("%d pods did not leave: %s", len(e.Pods), strings.Join(parts, ", "))
}

// Unwrap returns what ended the drain.
func (e *BlockedError) Unwrap() error { return e.Err }

// progress is the state of a drain. The zero value begins one.
type progress struct {
	started   time.Time // when the node was cordoned
	deleting  time.Time // when evictions gave way to deletions
	notReady  bool      // the node is not Ready, so no kubelet ends its pods
	remaining []podRef  // after the last pass, sorted
}

// podRef is one pod.
type podRef struct {
	namespace, name string
	uid             types.UID // distinguishes pods of the same name
}

// String returns "namespace/name".
func (p podRef) String() string { return p.namespace + "/" + p.name }

// Limit returns the maximum duration of a drain with that timeout, even if the API does not answer.
func Limit(timeout time.Duration) time.Duration {
	return 2*cmp.Or(timeout, drainTimeout) + apicall.RequestTimeout
}

// Drain cordons a node, evicts its pods, respecting disruption budgets, and waits until they have left. Pods of
// DaemonSets and static pods stay. Pods without a controller and the content of emptyDir volumes are lost. A node that
// does not exist counts as drained. Drain does not wait long for pods on a node that is not Ready, since no kubelet
// ends them.
//
// If time runs out, or a budget can never allow an eviction, the error is of class Operator and wraps a *BlockedError.
// In the second case the node is not cordoned.
func (c Drainer) Drain(ctx context.Context, node string, opts Options) error {
	opts.Timeout = cmp.Or(opts.Timeout, drainTimeout)
	limited, cancel := context.WithTimeout(ctx, Limit(opts.Timeout))
	defer cancel()
	var state progress
	var last error
	for {
		done, err := c.makePass(limited, node, &state, opts)
		switch {
		case done, err != nil && apicall.Classify(err) != apicall.Transient:
			return err
		case err != nil:
			last = err
			opts.Full = opts.reportFull(err)
		}
		if !retry.Pause(limited, evictRetryDelay) {
			return c.deadlineError(ctx, limited, node, state.remaining, last)
		}
	}
}

// reportFull calls Full for a *FullError, and returns the callback for the next time: nil after a call.
func (o Options) reportFull(err error) func(*FullError) {
	if full := (*FullError)(nil); o.Full != nil && errors.As(err, &full) {
		o.Full(full)
		return nil
	}
	return o.Full
}

// deadlineError returns the error of a drain whose context ended before its timeout.
func (c Drainer) deadlineError(ctx, limited context.Context, node string, left []podRef, last error) error {
	cause := context.Cause(limited)
	if len(left) == 0 || ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled) {
		return apicall.Wrap("drain node", node, errors.Join(cause, last))
	}
	e := &BlockedError{Node: node, Err: cause}
	for _, p := range left {
		e.Pods = append(e.Pods, BlockedPod{Pod: p.String(), Reason: "not evicted in time"})
	}
	return &apicall.Error{Op: "drain node", Node: node, Class: apicall.Operator, Err: e}
}

// makePass does one pass without waiting. The first pass cordons the node; every pass evicts pods that are not leaving
// yet. Done is true if no pod is left, or with an error if the drain has failed. The error wraps a *BlockedError if
// time has run out or a budget can never allow an eviction. A Transient error without done concerns this pass only.
func (c Drainer) makePass(ctx context.Context, node string, p *progress, opts Options) (done bool, err error) {
	if p.started.IsZero() {
		gone, err := c.beginDrain(ctx, node, p, opts)
		if gone || err != nil {
			return gone || apicall.Classify(err) != apicall.Transient, err
		}
	}
	helper := c.newHelper(ctx, opts, p.notReady)
	list, errs := helper.GetPodsForDeletion(node)
	if err := errors.Join(errs...); err != nil {
		return false, apicall.Wrap("list the pods of", node, err)
	}
	pods := list.Pods()
	p.noteRemaining(pods, opts.Evicted)
	late := time.Since(p.started) >= opts.Timeout
	switch {
	case len(pods) == 0:
		return true, nil
	case late && opts.Force && p.deleting.IsZero():
		p.deleting = time.Now()
	case late && (!opts.Force || time.Since(p.deleting) >= opts.Timeout):
		return true, c.timeoutError(ctx, node, pods)
	}
	return false, apicall.Wrap("evict the pods of", node, evictPods(helper, pods, !p.deleting.IsZero()))
}

// beginDrain cordons the node unless it does not exist, or a pod would never leave.
func (c Drainer) beginDrain(ctx context.Context, node string, p *progress, opts Options) (gone bool, err error) {
	p.notReady = c.isNodeNotReady(ctx, node)
	if !opts.Force {
		if stuck := c.stuckPods(ctx, c.newHelper(ctx, opts, p.notReady), node); len(stuck) > 0 {
			return false, &apicall.Error{
				Op:    "drain node",
				Node:  node,
				Class: apicall.Operator,
				Err:   &BlockedError{Node: node, Pods: stuck, Err: errNeverAllowed},
			}
		}
	}
	if err := c.cordonWithinLimit(ctx, node, opts); err != nil {
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	}
	p.started = time.Now()
	return false, nil
}

// noteRemaining records the remaining pods and calls gone for each pod that has left.
func (p *progress) noteRemaining(pods []corev1.Pod, gone func(string)) {
	now := make([]podRef, 0, len(pods))
	for _, pod := range pods {
		now = append(now, podRef{pod.Namespace, pod.Name, pod.UID})
	}
	slices.SortFunc(now, func(a, b podRef) int { return strings.Compare(a.String(), b.String()) })
	for _, was := range p.remaining {
		if gone != nil && !slices.Contains(now, was) {
			gone(was.String())
		}
	}
	p.remaining = now
}

// evictPods evicts or deletes every pod that is not leaving. A disruption budget that refuses now may allow it at the
// next pass.
func evictPods(helper *drain.Helper, pods []corev1.Pod, deletes bool) error {
	var failures []error
	for _, p := range pods {
		if p.DeletionTimestamp != nil {
			continue
		}
		var err error
		if deletes {
			err = helper.DeletePod(p)
		} else {
			err = helper.EvictPod(p, policyv1.SchemeGroupVersion)
		}
		ending := apierrors.IsForbidden(err) && apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsTooManyRequests(err) && !ending {
			failures = append(failures, fmt.Errorf("%s/%s: %w", p.Namespace, p.Name, err))
		}
	}
	if len(failures) == 0 {
		return nil
	}
	// retrying is harmless, and the drain's timeout ends it
	return &apicall.Error{Op: "evict", Class: apicall.Transient, Err: errors.Join(failures...)}
}

var (
	errNeverAllowed = errors.New("no eviction would ever be allowed")
	errTimedOut     = errors.New("the drain timed out")
)

// isNodeNotReady reports whether a node is known not to be Ready.
func (c Drainer) isNodeNotReady(ctx context.Context, node string) bool {
	n, err := c.Kubernetes.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return false
	}
	ready, _, err := nodes.Ready(n)
	return err == nil && !ready
}

func (c Drainer) newHelper(ctx context.Context, opts Options, silent bool) *drain.Helper {
	grace, dying := -1, 0
	if opts.Grace != nil {
		grace = *opts.Grace
	}
	if silent {
		dying = terminatingLimit
	}
	return &drain.Helper{
		Ctx: ctx, Client: c.Kubernetes, Force: true, IgnoreAllDaemonSets: true, DeleteEmptyDirData: true,
		GracePeriodSeconds:              grace,
		SkipWaitForDeleteTimeoutSeconds: dying, Out: io.Discard, ErrOut: io.Discard,
	}
}

// timeoutError returns the error of a drain that timed out, with the reason for each pod.
func (c Drainer) timeoutError(ctx context.Context, node string, pods []corev1.Pod) error {
	budgets := c.listBudgets(ctx)
	e := &BlockedError{Node: node, Err: errTimedOut}
	for _, p := range pods {
		e.Pods = append(e.Pods, BlockedPod{Pod: p.Namespace + "/" + p.Name, Reason: blockReason(&p, budgets)})
	}
	slices.SortFunc(e.Pods, func(a, b BlockedPod) int { return strings.Compare(a.Pod, b.Pod) })
	return &apicall.Error{Op: "drain node", Node: node, Class: apicall.Operator, Err: e}
}

// stuckPods returns the pods whose budget never allows an eviction.
func (c Drainer) stuckPods(ctx context.Context, helper *drain.Helper, node string) []BlockedPod {
	list, errs := helper.GetPodsForDeletion(node)
	if len(errs) > 0 {
		return nil // the drain itself reports the error
	}
	var out []BlockedPod
	var budgets []policyv1.PodDisruptionBudget
	for n, pod := range list.Pods() {
		if n == 0 {
			budgets = c.listBudgets(ctx)
		}
		for _, b := range coveringBudgets(&pod, budgets) {
			if NeverAllows(&b) && pod.DeletionTimestamp == nil {
				out = append(out, BlockedPod{Pod: pod.Namespace + "/" + pod.Name, Reason: neverAllowsReason(&b)})
			}
		}
	}
	slices.SortFunc(out, func(a, b BlockedPod) int { return strings.Compare(a.Pod, b.Pod) })
	return out
}

// NeverAllows reports whether a budget requires all its pods and all are healthy, so that waiting does not help. A
// budget that only allows no disruption now may be in use by another drain.
func NeverAllows(b *policyv1.PodDisruptionBudget) bool {
	s := b.Status
	return s.ObservedGeneration == b.Generation && s.ExpectedPods > 0 && s.DesiredHealthy >= s.ExpectedPods &&
		s.CurrentHealthy >= s.ExpectedPods
}

func neverAllowsReason(b *policyv1.PodDisruptionBudget) string {
	return fmt.Sprintf("PodDisruptionBudget %s wants %d of %d pods, so it never allows a disruption", b.Name,
		b.Status.DesiredHealthy, b.Status.ExpectedPods)
}

// listBudgets returns all disruption budgets, and none if they cannot be read.
func (c Drainer) listBudgets(ctx context.Context) []policyv1.PodDisruptionBudget {
	list, err := c.Kubernetes.PolicyV1().PodDisruptionBudgets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	return list.Items
}

// coveringBudgets returns the budgets that select a pod.
func coveringBudgets(pod *corev1.Pod, budgets []policyv1.PodDisruptionBudget) []policyv1.PodDisruptionBudget {
	var out []policyv1.PodDisruptionBudget
	for _, budget := range budgets {
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err == nil && budget.Namespace == pod.Namespace && selector.Matches(labels.Set(pod.Labels)) {
			out = append(out, budget)
		}
	}
	return out
}

// blockReason returns why a pod remains.
func blockReason(pod *corev1.Pod, budgets []policyv1.PodDisruptionBudget) string {
	if pod.DeletionTimestamp != nil {
		return "still terminating"
	}
	for _, budget := range coveringBudgets(pod, budgets) {
		if budget.Status.DisruptionsAllowed == 0 {
			return "PodDisruptionBudget " + budget.Name + " allows no disruption"
		}
	}
	return "not evicted in time"
}
