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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubectl/pkg/drain"

	"kubeone/internal/cluster/apicall"
	"kubeone/internal/cluster/nodes"
	"kubeone/internal/retry"
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
	// before: Uncordon opens only nodes so marked.
	Mark string
	// Force deletes the pods that have not left when the time is over, whatever their disruption budgets say.
	Force bool
	// MaxUnavailable is how many workers, this one included, runs may have cordoned at a time; 0 is any number. The
	// drain begins as soon as there is room.
	MaxUnavailable int
	// Grace is how long a pod may take to end itself, in seconds; nil is each pod's own.
	Grace *int
	// Full is told once why Drain does not begin yet; nil tells nobody.
	Full func(*FullError)
	// Evicted is told each pod that is gone, as "namespace/name"; nil tells nobody.
	Evicted func(pod string)
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

// progress is how far a drain has got. The zero value begins one.
type progress struct {
	started  time.Time // when the node was cordoned
	deleting time.Time // when evictions gave way to deletions
	silent   bool      // the node is not Ready: nothing on it ends its pods
	left     []podRef  // after the last pass, sorted
}

// podRef is one pod.
type podRef struct {
	namespace, name string
	uid             types.UID // another pod of that name is another pod
}

// String returns "namespace/name".
func (p podRef) String() string { return p.namespace + "/" + p.name }

// Limit is how long a drain with that timeout takes at most, whether or not the API answers: its passes look at the
// time themselves.
func Limit(timeout time.Duration) time.Duration {
	return 2*cmp.Or(timeout, drainTimeout) + apicall.RequestTimeout
}

// Drain cordons a node and evicts its pods, respecting disruption budgets, and waits until they are gone. Pods
// of DaemonSets and static pods stay; pods without a controller and the content of emptyDir volumes are lost. A
// node that does not exist is drained, and pods of one that is not Ready are not waited for long, since nobody
// there ends them. When time runs out, or a budget can never allow an eviction, the error wraps a
// *BlockedError, of class Operator; in the second case the node was not even cordoned.
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
			opts.Full = opts.tellOnce(err)
		}
		if !retry.Pause(limited, evictAgain) {
			return c.cutShort(ctx, limited, node, state.left, last)
		}
	}
}

// tellOnce tells why a drain does not begin, and returns whom to tell the next time.
func (o Options) tellOnce(err error) func(*FullError) {
	if full := (*FullError)(nil); o.Full != nil && errors.As(err, &full) {
		o.Full(full)
		return nil
	}
	return o.Full
}

// cutShort is the error of a drain whose context ended before its time.
func (c Drainer) cutShort(ctx, limited context.Context, node string, left []podRef, last error) error {
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

// makePass does what there is to do now, and does not wait: it cordons the node when the drain begins, then asks each
// pod that is not leaving yet to leave. The drain is done when no pod is left, or when it has failed: done then comes
// with an error, which wraps a *BlockedError when time has run out or a budget can never allow an eviction. A Transient
// error without done is of this pass only.
func (c Drainer) makePass(ctx context.Context, node string, p *progress, opts Options) (done bool, err error) {
	if p.started.IsZero() {
		gone, err := c.beginDrain(ctx, node, p, opts)
		if gone || err != nil {
			return gone || apicall.Classify(err) != apicall.Transient, err
		}
	}
	helper := c.newHelper(ctx, opts, p.silent)
	list, errs := helper.GetPodsForDeletion(node)
	if err := errors.Join(errs...); err != nil {
		return false, apicall.Wrap("list the pods of", node, err)
	}
	pods := list.Pods()
	p.noteLeft(pods, opts.Evicted)
	late := time.Since(p.started) >= opts.Timeout
	switch {
	case len(pods) == 0:
		return true, nil
	case late && opts.Force && p.deleting.IsZero():
		p.deleting = time.Now()
	case late && (!opts.Force || time.Since(p.deleting) >= opts.Timeout):
		return true, c.tooLate(ctx, node, pods)
	}
	return false, apicall.Wrap("evict the pods of", node, evictPods(helper, pods, !p.deleting.IsZero()))
}

// beginDrain cordons the node, unless it is gone, or a pod would never leave.
func (c Drainer) beginDrain(ctx context.Context, node string, p *progress, opts Options) (gone bool, err error) {
	p.silent = c.isNodeSilent(ctx, node)
	if !opts.Force {
		if stuck := c.stuckPods(ctx, c.newHelper(ctx, opts, p.silent), node); len(stuck) > 0 {
			return false, &apicall.Error{
				Op:    "drain node",
				Node:  node,
				Class: apicall.Operator,
				Err:   &BlockedError{Node: node, Pods: stuck, Err: errNeverAllowed},
			}
		}
	}
	if err := c.cordonInTurn(ctx, node, opts); err != nil {
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	}
	p.started = time.Now()
	return false, nil
}

// noteLeft keeps which pods are left and tells of those that are not any more.
func (p *progress) noteLeft(pods []corev1.Pod, gone func(string)) {
	now := make([]podRef, 0, len(pods))
	for _, pod := range pods {
		now = append(now, podRef{pod.Namespace, pod.Name, pod.UID})
	}
	slices.SortFunc(now, func(a, b podRef) int { return strings.Compare(a.String(), b.String()) })
	for _, was := range p.left {
		if gone != nil && !slices.Contains(now, was) {
			gone(was.String())
		}
	}
	p.left = now
}

// evictPods asks every pod that is not leaving to leave, or deletes it. What a disruption budget does not allow now
// it may allow at the next pass.
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
	// to ask again does no harm, and the drain's time ends it
	return &apicall.Error{Op: "evict", Class: apicall.Transient, Err: errors.Join(failures...)}
}

var (
	errNeverAllowed = errors.New("no eviction would ever be allowed")
	errTooLate      = errors.New("the time for the drain is over")
)

// isNodeSilent reports whether a node is known not to be Ready.
func (c Drainer) isNodeSilent(ctx context.Context, node string) bool {
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
		dying = dyingLimit
	}
	return &drain.Helper{
		Ctx: ctx, Client: c.Kubernetes, Force: true, IgnoreAllDaemonSets: true, DeleteEmptyDirData: true,
		GracePeriodSeconds:              grace,
		SkipWaitForDeleteTimeoutSeconds: dying, Out: io.Discard, ErrOut: io.Discard,
	}
}

// tooLate is the error of a drain whose time is over, with what keeps each pod.
func (c Drainer) tooLate(ctx context.Context, node string, pods []corev1.Pod) error {
	budgets := c.listBudgets(ctx)
	e := &BlockedError{Node: node, Err: errTooLate}
	for _, p := range pods {
		e.Pods = append(e.Pods, BlockedPod{Pod: p.Namespace + "/" + p.Name, Reason: whyBlocked(&p, budgets)})
	}
	slices.SortFunc(e.Pods, func(a, b BlockedPod) int { return strings.Compare(a.Pod, b.Pod) })
	return &apicall.Error{Op: "drain node", Node: node, Class: apicall.Operator, Err: e}
}

// stuckPods are the pods that no waiting would let go: their budget allows no disruption although all its pods are
// healthy.
func (c Drainer) stuckPods(ctx context.Context, helper *drain.Helper, node string) []BlockedPod {
	list, errs := helper.GetPodsForDeletion(node)
	if len(errs) > 0 {
		return nil // the drain itself says why
	}
	var out []BlockedPod
	var budgets []policyv1.PodDisruptionBudget
	for n, pod := range list.Pods() {
		if n == 0 {
			budgets = c.listBudgets(ctx)
		}
		for _, b := range coveringBudgets(&pod, budgets) {
			if NeverAllows(&b) && pod.DeletionTimestamp == nil {
				out = append(out, BlockedPod{Pod: pod.Namespace + "/" + pod.Name, Reason: neverReason(&b)})
			}
		}
	}
	slices.SortFunc(out, func(a, b BlockedPod) int { return strings.Compare(a.Pod, b.Pod) })
	return out
}

// NeverAllows reports whether a budget wants all its pods, and all are healthy: waiting does not help. One that
// merely allows no disruption now may be in use by another drain.
func NeverAllows(b *policyv1.PodDisruptionBudget) bool {
	s := b.Status
	return s.ObservedGeneration == b.Generation && s.ExpectedPods > 0 && s.DesiredHealthy >= s.ExpectedPods &&
		s.CurrentHealthy >= s.ExpectedPods
}

func neverReason(b *policyv1.PodDisruptionBudget) string {
	return fmt.Sprintf("PodDisruptionBudget %s wants %d of %d pods, so it never allows a disruption", b.Name,
		b.Status.DesiredHealthy, b.Status.ExpectedPods)
}

// listBudgets are all disruption budgets; none where they cannot be read.
func (c Drainer) listBudgets(ctx context.Context) []policyv1.PodDisruptionBudget {
	list, err := c.Kubernetes.PolicyV1().PodDisruptionBudgets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	return list.Items
}

// coveringBudgets are the budgets that a pod falls under.
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

// whyBlocked is what keeps a pod: itself while it terminates, or a budget that allows no disruption.
func whyBlocked(pod *corev1.Pod, budgets []policyv1.PodDisruptionBudget) string {
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
