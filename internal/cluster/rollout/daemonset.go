package rollout

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"kubeone/internal/addons/resources"
	"kubeone/internal/cluster/apicall"
	"kubeone/internal/cluster/nodes"
)

const (
	// between checks of Nodes and pods, which may change without the DaemonSet
	recheckInterval    = 10 * time.Second
	templateGeneration = "pod-template-generation" // label that the DaemonSet controller sets on its pods
	// unavailableBefore is the annotation that stores the original maxUnavailable of a DaemonSet while a rollout uses a
	// higher value.
	unavailableBefore = "kubeone.k8c.io/max-unavailable"
)

// waitDaemonSet waits for the rollout of a DaemonSet. Pods on Nodes that are not Ready count as unavailable, so they
// could block the rollout. Therefore maxUnavailable is increased by the number of these Nodes until the rollout ends.
func (c Waiter) waitDaemonSet(ctx context.Context, w resources.Workload) (excused []string, err error) {
	ctx, cancel := apicall.WithDefaultTimeout(ctx, apicall.WaitLimit)
	defer cancel()
	sets := c.Kubernetes.AppsV1().DaemonSets(w.Namespace)
	check := func(d *appsv1.DaemonSet) (done bool, state string, err error) {
		if done, state, err = daemonSetDone(d); done || err != nil {
			return done, state, err
		}
		excused, state, err = c.excusedNodes(ctx, d, state)
		return len(excused) > 0, state, err
	}
	for waiting := true; waiting; {
		within, end := context.WithTimeout(ctx, recheckInterval)
		err = apicall.Await(within, sets, "wait for DaemonSet", w.Name, check)
		waiting = err != nil && within.Err() != nil && ctx.Err() == nil
		end()
	}
	after, end := context.WithTimeout(context.WithoutCancel(ctx), apicall.RequestTimeout)
	defer end()
	return excused, errors.Join(err, c.restoreMaxUnavailable(after, w))
}

// excusedNodes returns the Nodes that are not Ready if only these delay the DaemonSet: all other Nodes run available
// pods with the latest template. Otherwise it returns nil and increases maxUnavailable if necessary. The returned text
// is state with the names of the Nodes that are not Ready.
func (c Waiter) excusedNodes(ctx context.Context, d *appsv1.DaemonSet, state string) ([]string, string, error) {
	notReady, err := c.notReadyNodes(ctx)
	if err != nil || len(notReady) == 0 || d.Status.ObservedGeneration < d.Generation {
		return nil, state, err
	}
	state += "; not Ready: " + apicall.JoinNames(notReady)
	pods, err := c.podsOf(ctx, d)
	if err != nil {
		return nil, state, err
	}
	var out []string
	available := 0
	for _, p := range pods {
		switch node := p.Spec.NodeName; {
		case slices.Contains(notReady, node):
			if !slices.Contains(out, node) {
				out = append(out, node)
			}
		case isLatest(&p, d):
			available++
		default:
			return nil, state, c.raiseMaxUnavailable(ctx, d, len(notReady))
		}
	}
	if len(out) == 0 || available+len(out) < int(d.Status.DesiredNumberScheduled) {
		return nil, state, c.raiseMaxUnavailable(ctx, d, len(notReady))
	}
	slices.Sort(out)
	return out, state, nil
}

// isLatest reports whether a pod is available and has the DaemonSet's latest template.
func isLatest(p *corev1.Pod, d *appsv1.DaemonSet) bool {
	ready := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
	return ready && p.DeletionTimestamp == nil &&
		p.Labels[templateGeneration] == d.Annotations[appsv1.DeprecatedTemplateGeneration]
}

// notReadyNodes returns the names of the Nodes that are not Ready, sorted.
func (c Waiter) notReadyNodes(ctx context.Context) ([]string, error) {
	list, err := c.Kubernetes.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var out []string
	for _, n := range list.Items {
		if ready, _, _ := nodes.Ready(&n); !ready {
			out = append(out, n.Name)
		}
	}
	slices.Sort(out)
	return out, nil
}

func (c Waiter) podsOf(ctx context.Context, d *appsv1.DaemonSet) ([]corev1.Pod, error) {
	list, err := c.Kubernetes.CoreV1().Pods(d.Namespace).List(ctx,
		metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(d.Spec.Selector)})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return !metav1.IsControlledBy(&p, d) }), nil
}

// raiseMaxUnavailable increases maxUnavailable by the number of Nodes that are not Ready. It does nothing if the
// DaemonSet uses maxSurge, or if maxUnavailable is already high enough.
func (c Waiter) raiseMaxUnavailable(ctx context.Context, d *appsv1.DaemonSet, notReady int) error {
	rolling := d.Spec.UpdateStrategy.RollingUpdate
	if rolling == nil || rolling.MaxUnavailable == nil || rolling.MaxSurge != nil && rolling.MaxSurge.String() != "0" {
		return nil
	}
	have, err := intstr.GetScaledValueFromIntOrPercent(rolling.MaxUnavailable, int(d.Status.DesiredNumberScheduled),
		true)
	if err != nil || have > notReady {
		return err
	}
	original := cmp.Or(d.Annotations[unavailableBefore], rolling.MaxUnavailable.String())
	return c.setMaxUnavailable(ctx, d, intstr.Parse(strconv.Itoa(1+notReady)), original)
}

// restoreMaxUnavailable restores the original maxUnavailable of a DaemonSet, including after an interrupted run.
func (c Waiter) restoreMaxUnavailable(ctx context.Context, w resources.Workload) error {
	return apicall.Retry(ctx, "set maxUnavailable of DaemonSet", w.Name, func(ctx context.Context) error {
		d, err := c.Kubernetes.AppsV1().DaemonSets(w.Namespace).Get(ctx, w.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		original := d.Annotations[unavailableBefore]
		if original == "" {
			return nil
		}
		return c.setMaxUnavailable(ctx, d, intstr.Parse(original), nil)
	})
}

// setMaxUnavailable sets maxUnavailable and the annotation with its original value; nil removes the annotation.
func (c Waiter) setMaxUnavailable(ctx context.Context, d *appsv1.DaemonSet, value intstr.IntOrString,
	before any) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{
			"resourceVersion": d.ResourceVersion,
			"annotations":     map[string]any{unavailableBefore: before},
		},
		"spec": map[string]any{
			"updateStrategy": map[string]any{"rollingUpdate": map[string]any{"maxUnavailable": value}},
		},
	})
	if err != nil {
		return err
	}
	_, err = c.Kubernetes.AppsV1().DaemonSets(d.Namespace).Patch(ctx, d.Name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: apicall.FieldManager})
	return err
}
