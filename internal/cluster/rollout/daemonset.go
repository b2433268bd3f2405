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
	recheckInterval    = 10 * time.Second          // rechecks Nodes and pods, whose changes may not change the DaemonSet
	templateGeneration = "pod-template-generation" // the controller's label on its pods
	// unavailableBefore is the annotation with a DaemonSet's own maxUnavailable while a rollout uses another.
	unavailableBefore = "kubeone.k8c.io/max-unavailable"
)

// waitDaemonSet waits for a DaemonSet's rollout. Pods on Nodes that are not Ready count as unavailable and would stop
// the controller. So maxUnavailable is increased by their number during the rollout.
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
	for again := true; again; {
		within, end := context.WithTimeout(ctx, recheckInterval)
		err = apicall.Await(within, sets, "wait for DaemonSet", w.Name, check)
		again = err != nil && within.Err() != nil && ctx.Err() == nil
		end()
	}
	after, end := context.WithTimeout(context.WithoutCancel(ctx), apicall.RequestTimeout)
	defer end()
	return excused, errors.Join(err, c.restoreMaxUnavailable(after, w))
}

// excusedNodes returns the Nodes that are not Ready if only they delay the DaemonSet: all others have its latest pods,
// which are available. Otherwise it returns nil. State is extended to a description for errors.
func (c Waiter) excusedNodes(ctx context.Context, d *appsv1.DaemonSet, state string) ([]string, string, error) {
	silent, err := c.notReadyNodes(ctx)
	if err != nil || len(silent) == 0 || d.Status.ObservedGeneration < d.Generation {
		return nil, state, err
	}
	state += "; not Ready: " + apicall.JoinNames(silent)
	pods, err := c.podsOf(ctx, d)
	if err != nil {
		return nil, state, err
	}
	var out []string
	well := 0
	for _, p := range pods {
		switch node := p.Spec.NodeName; {
		case slices.Contains(silent, node):
			if !slices.Contains(out, node) {
				out = append(out, node)
			}
		case isLatest(&p, d):
			well++
		default:
			return nil, state, c.raiseMaxUnavailable(ctx, d, len(silent))
		}
	}
	if len(out) == 0 || well+len(out) < int(d.Status.DesiredNumberScheduled) {
		return nil, state, c.raiseMaxUnavailable(ctx, d, len(silent))
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

// raiseMaxUnavailable increases maxUnavailable by the number of silent Nodes.
func (c Waiter) raiseMaxUnavailable(ctx context.Context, d *appsv1.DaemonSet, silent int) error {
	rolling := d.Spec.UpdateStrategy.RollingUpdate
	if rolling == nil || rolling.MaxUnavailable == nil || rolling.MaxSurge != nil && rolling.MaxSurge.String() != "0" {
		return nil
	}
	have, err := intstr.GetScaledValueFromIntOrPercent(rolling.MaxUnavailable, int(d.Status.DesiredNumberScheduled),
		true)
	if err != nil || have > silent {
		return err
	}
	own := cmp.Or(d.Annotations[unavailableBefore], rolling.MaxUnavailable.String())
	return c.setMaxUnavailable(ctx, d, intstr.Parse(strconv.Itoa(1+silent)), own)
}

// restoreMaxUnavailable restores a DaemonSet's own maxUnavailable, also after an interrupted run.
func (c Waiter) restoreMaxUnavailable(ctx context.Context, w resources.Workload) error {
	return apicall.Retry(ctx, "set maxUnavailable of DaemonSet", w.Name, func(ctx context.Context) error {
		d, err := c.Kubernetes.AppsV1().DaemonSets(w.Namespace).Get(ctx, w.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		own := d.Annotations[unavailableBefore]
		if own == "" {
			return nil
		}
		return c.setMaxUnavailable(ctx, d, intstr.Parse(own), nil)
	})
}

// setMaxUnavailable sets maxUnavailable and the annotation with its former value; nil removes the annotation.
func (c Waiter) setMaxUnavailable(ctx context.Context, d *appsv1.DaemonSet, room intstr.IntOrString, before any) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{
			"resourceVersion": d.ResourceVersion,
			"annotations":     map[string]any{unavailableBefore: before},
		},
		"spec": map[string]any{
			"updateStrategy": map[string]any{"rollingUpdate": map[string]any{"maxUnavailable": room}},
		},
	})
	if err != nil {
		return err
	}
	_, err = c.Kubernetes.AppsV1().DaemonSets(d.Namespace).Patch(ctx, d.Name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: apicall.FieldManager})
	return err
}
