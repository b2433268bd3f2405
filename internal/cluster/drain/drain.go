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
	evictRetryDelay  = time.Second // after a disruption budget rejected an eviction
	terminatingLimit = 60          // seconds to wait for a terminating pod on a node that is not Ready
)

// Drainer drains nodes.
type Drainer struct {
	Kubernetes kubernetes.Interface
}

// Options configure a drain.
type Options struct {
	// Timeout applies to the whole drain; 0 means five minutes. The deadline of the context also applies.
	Timeout time.Duration
	// Mark is stored on the node when it is cordoned, unless it is already cordoned. Uncordon changes only marked
	// nodes. "" stores no mark.
	Mark string
	// Force deletes the pods that remain after Timeout, regardless of disruption budgets.
	Force bool
	// MaxUnavailable is the maximum number of workers, including this one, that kubeone runs may have cordoned at the
	// same time; 0 means no limit. The drain waits until cordoning the node stays within the limit.
	MaxUnavailable int
	// Grace is the termination grace period of pods in seconds; nil uses the grace period of each pod.
	Grace *int
	// Full is called once if Drain must wait for other workers. Nil disables the callback.
	Full func(*FullError)
	// Evicted is called with "namespace/name" for each pod that is no longer on the node. Nil disables the callback.
	Evicted func(pod string)
}

// BlockedPod is a pod that is still on the node after a drain.
type BlockedPod struct {
	Pod    string // namespace/name
	Reason string
}

// BlockedError reports the pods that blocked a drain. The node stays cordoned. An operator may have to act; the next
// drain continues from there.
type BlockedError struct {
	Node string
	Pods []BlockedPod // sorted by name
	Err  error        // why the drain ended
}

// Error names the pods and the reasons.
func (e *BlockedError) Error() string {
	parts := make([]string, len(e.Pods))
	for i, p := range e.Pods {
		parts[i] = p.Pod + " (" + p.Reason + ")"
	}
	return fmt.Sprintf("%d pods were not evicted: %s", len(e.Pods), strings.Join(parts, ", "))
}

// Unwrap returns why the drain ended.
func (e *BlockedError) Unwrap() error { return e.Err }

// progress is the state of a drain. The zero value starts a new drain.
type progress struct {
	started   time.Time // when the node was cordoned
	deleting  time.Time // when deletions replaced evictions
	notReady  bool      // the node is not Ready, so no kubelet stops its pods
	remaining []podRef  // pods on the node after the last pass, sorted
}

// podRef identifies a pod.
type podRef struct {
	namespace, name string
	uid             types.UID // distinguishes pods with the same name
}

// String returns "namespace/name".
func (p podRef) String() string { return p.namespace + "/" + p.name }

// Limit returns the maximum duration of a drain with that timeout, even if the API does not answer.
func Limit(timeout time.Duration) time.Duration {
	return 2*cmp.Or(timeout, drainTimeout) + apicall.RequestTimeout
}

// Drain cordons a node, evicts its pods while respecting disruption budgets, and waits until they are deleted. Pods of
// DaemonSets and static pods stay. Pods without a controller and the contents of emptyDir volumes are lost. A node that
// does not exist counts as drained. Drain waits only briefly for pods on a node that is not Ready, because no kubelet
// stops them.
//
// If the timeout ends, or a budget can never allow an eviction, the error is of class Operator and wraps a
// *BlockedError. In the second case the node is not cordoned.
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

// reportFull calls Full if err is a *FullError. It returns the callback for the next error: nil after a call, so that
// Full is called only once.
func (o Options) reportFull(err error) func(*FullError) {
	if full := (*FullError)(nil); o.Full != nil && errors.As(err, &full) {
		o.Full(full)
		return nil
	}
	return o.Full
}

// deadlineError returns the error of a drain whose context ended before its timeout. If pods remain and the context was
// not canceled, the error wraps a *BlockedError.
func (c Drainer) deadlineError(ctx, limited context.Context, node string, remaining []podRef, last error) error {
	cause := context.Cause(limited)
	if len(remaining) == 0 || ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled) {
		return apicall.Wrap("drain node", node, errors.Join(cause, last))
	}
	e := &BlockedError{Node: node, Err: cause}
	for _, p := range remaining {
		e.Pods = append(e.Pods, BlockedPod{Pod: p.String(), Reason: "not evicted in time"})
	}
	return &apicall.Error{Op: "drain node", Node: node, Class: apicall.Operator, Err: e}
}

// makePass does one pass of the drain without waiting. The first pass cordons the node; every pass evicts the pods that
// are not terminating yet. Done is true if no pod remains, or with an error if the drain has failed. The error wraps a
// *BlockedError if the timeout has ended or a budget can never allow an eviction. If done is false, a Transient error
// affects only this pass.
func (c Drainer) makePass(ctx context.Context, node string, p *progress, opts Options) (done bool, err error) {
	if p.started.IsZero() {
		missing, err := c.beginDrain(ctx, node, p, opts)
		if missing || err != nil {
			return missing || apicall.Classify(err) != apicall.Transient, err
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

// beginDrain cordons the node. Missing is true if the node does not exist. It returns a *BlockedError, and does not
// cordon the node, if a disruption budget never allows an eviction and Force is false.
func (c Drainer) beginDrain(ctx context.Context, node string, p *progress, opts Options) (missing bool, err error) {
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

// noteRemaining records the pods that remain and calls evicted for each pod that has disappeared since the last pass.
func (p *progress) noteRemaining(pods []corev1.Pod, evicted func(string)) {
	now := make([]podRef, 0, len(pods))
	for _, pod := range pods {
		now = append(now, podRef{pod.Namespace, pod.Name, pod.UID})
	}
	slices.SortFunc(now, func(a, b podRef) int { return strings.Compare(a.String(), b.String()) })
	for _, was := range p.remaining {
		if evicted != nil && !slices.Contains(now, was) {
			evicted(was.String())
		}
	}
	p.remaining = now
}

// evictPods evicts or deletes every pod that is not terminating. It ignores evictions that a disruption budget rejects,
// because the next pass tries them again.
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
		terminating := apierrors.IsForbidden(err) && apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsTooManyRequests(err) && !terminating {
			failures = append(failures, fmt.Errorf("%s/%s: %w", p.Namespace, p.Name, err))
		}
	}
	if len(failures) == 0 {
		return nil
	}
	// The class is Transient because retries are harmless, and the timeout of the drain ends them.
	return &apicall.Error{Op: "evict", Class: apicall.Transient, Err: errors.Join(failures...)}
}

var (
	errNeverAllowed = errors.New("no eviction would ever be allowed")
	errTimedOut     = errors.New("the drain timed out")
)

// isNodeNotReady reports whether the node is known not to be Ready. It returns false if the node cannot be read.
func (c Drainer) isNodeNotReady(ctx context.Context, node string) bool {
	n, err := c.Kubernetes.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return false
	}
	ready, _, err := nodes.Ready(n)
	return err == nil && !ready
}

func (c Drainer) newHelper(ctx context.Context, opts Options, notReady bool) *drain.Helper {
	grace, waitSeconds := -1, 0
	if opts.Grace != nil {
		grace = *opts.Grace
	}
	if notReady {
		waitSeconds = terminatingLimit
	}
	return &drain.Helper{
		Ctx: ctx, Client: c.Kubernetes, Force: true, IgnoreAllDaemonSets: true, DeleteEmptyDirData: true,
		GracePeriodSeconds:              grace,
		SkipWaitForDeleteTimeoutSeconds: waitSeconds, Out: io.Discard, ErrOut: io.Discard,
	}
}

// timeoutError returns the error of a drain whose timeout ended, with the reason for each pod that remains.
func (c Drainer) timeoutError(ctx context.Context, node string, pods []corev1.Pod) error {
	budgets := c.listBudgets(ctx)
	e := &BlockedError{Node: node, Err: errTimedOut}
	for _, p := range pods {
		e.Pods = append(e.Pods, BlockedPod{Pod: p.Namespace + "/" + p.Name, Reason: blockReason(&p, budgets)})
	}
	slices.SortFunc(e.Pods, func(a, b BlockedPod) int { return strings.Compare(a.Pod, b.Pod) })
	return &apicall.Error{Op: "drain node", Node: node, Class: apicall.Operator, Err: e}
}

// stuckPods returns the pods that cannot be evicted because their disruption budget never allows it.
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

// NeverAllows reports whether a budget requires all of its pods and all of them are healthy, so that waiting does not
// help. It returns false for a budget that allows no disruption only at the moment: another drain may be using it.
func NeverAllows(b *policyv1.PodDisruptionBudget) bool {
	s := b.Status
	return s.ObservedGeneration == b.Generation && s.ExpectedPods > 0 && s.DesiredHealthy >= s.ExpectedPods &&
		s.CurrentHealthy >= s.ExpectedPods
}

func neverAllowsReason(b *policyv1.PodDisruptionBudget) string {
	return fmt.Sprintf("PodDisruptionBudget %s requires %d of %d pods, so it never allows a disruption", b.Name,
		b.Status.DesiredHealthy, b.Status.ExpectedPods)
}

// listBudgets returns all disruption budgets. It returns none if they cannot be read.
func (c Drainer) listBudgets(ctx context.Context) []policyv1.PodDisruptionBudget {
	list, err := c.Kubernetes.PolicyV1().PodDisruptionBudgets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	return list.Items
}

// coveringBudgets returns the budgets whose selector matches the pod.
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

// blockReason returns why the pod is still on the node.
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
