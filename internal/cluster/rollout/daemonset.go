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
	lookAgain          = 10 * time.Second          // at Nodes and pods, of which the DaemonSet itself may not tell
	templateGeneration = "pod-template-generation" // the label with which the controller marks its pods
	// unavailableBefore remembers on a DaemonSet its own maxUnavailable while a roll-out has another.
	unavailableBefore = "kubeone.k8c.io/max-unavailable"
)

// waitDaemonSet waits for a DaemonSet's roll-out. Pods on Nodes that are not Ready count as unavailable, so that the
// controller would wait for these Nodes before it goes on: for as long as the roll-out takes, so many more pods may be
// unavailable.
func (c Waiter) waitDaemonSet(ctx context.Context, w resources.Workload) (excused []string, err error) {
	ctx, cancel := apicall.Bounded(ctx, apicall.WaitLimit)
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
		within, end := context.WithTimeout(ctx, lookAgain)
		err = apicall.Await(within, sets, "wait for DaemonSet", w.Name, check)
		again = err != nil && within.Err() != nil && ctx.Err() == nil
		end()
	}
	after, end := context.WithTimeout(context.WithoutCancel(ctx), apicall.RequestTimeout)
	defer end()
	return excused, errors.Join(err, c.lessRoom(after, w))
}

// excusedNodes are the Nodes because of which a DaemonSet is not done, if all others have its latest pods and these are
// available; nil where something else is late. State is what is known so far.
func (c Waiter) excusedNodes(ctx context.Context, d *appsv1.DaemonSet, state string) ([]string, string, error) {
	silent, err := c.silentNodes(ctx)
	if err != nil || len(silent) == 0 || d.Status.ObservedGeneration < d.Generation {
		return nil, state, err
	}
	state += "; not Ready: " + apicall.Names(silent)
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
			return nil, state, c.moreRoom(ctx, d, len(silent))
		}
	}
	if len(out) == 0 || well+len(out) < int(d.Status.DesiredNumberScheduled) {
		return nil, state, c.moreRoom(ctx, d, len(silent))
	}
	slices.Sort(out)
	return out, state, nil
}

// isLatest reports whether a pod is available and of the DaemonSet's latest template.
func isLatest(p *corev1.Pod, d *appsv1.DaemonSet) bool {
	ready := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
	return ready && p.DeletionTimestamp == nil &&
		p.Labels[templateGeneration] == d.Annotations[appsv1.DeprecatedTemplateGeneration]
}

// silentNodes names the Nodes that are not Ready, sorted.
func (c Waiter) silentNodes(ctx context.Context) ([]string, error) {
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

// moreRoom lets as many more pods of a DaemonSet be unavailable as Nodes are silent.
func (c Waiter) moreRoom(ctx context.Context, d *appsv1.DaemonSet, silent int) error {
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
	return c.setRoom(ctx, d, intstr.Parse(strconv.Itoa(1+silent)), own)
}

// lessRoom gives a DaemonSet back its own maxUnavailable, also where a run that was interrupted has left another.
func (c Waiter) lessRoom(ctx context.Context, w resources.Workload) error {
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
		return c.setRoom(ctx, d, intstr.Parse(own), nil)
	})
}

// setRoom sets maxUnavailable and notes what it was; nil forgets that.
func (c Waiter) setRoom(ctx context.Context, d *appsv1.DaemonSet, room intstr.IntOrString, before any) error {
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
