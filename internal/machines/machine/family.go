package machine

import (
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"kubeone/api/cluster/v1alpha1"
	"kubeone/internal/machines/rollout"
)

// Change returns how a machine with one spec is changed to another spec.
type Change func(from, to v1alpha1.MachineSpec) rollout.Change

// NewDeploymentFamily returns the family of a deployment: the deployment itself, and those of the sets and machines
// that it owns. healthCheck is the time at which the next machine may become unhealthy; zero means never.
func NewDeploymentFamily(md *v1alpha1.MachineDeployment, sets []v1alpha1.MachineSet, machines []v1alpha1.Machine,
	change Change, now time.Time) (family rollout.Family, healthCheck time.Time, err error) {
	template, err := newTemplate(md.Spec.Template)
	if err != nil {
		return rollout.Family{}, healthCheck,
			fmt.Errorf("MachineDeployment %s/%s: spec.template.%w", md.Namespace, md.Name, err)
	}
	family = rollout.Family{
		Name: md.Name, Replicas: intOrDefault(md.Spec.Replicas, 1), MinReady: secondsOrDefault(md.Spec.MinReadySeconds,
			0),
		DeletePolicy: rollout.Random, Deleting: md.DeletionTimestamp != nil, Now: now,
	}
	family.MaxUnhealthy = maxUnhealthy(md.Spec.HealthCheck, family.Replicas)
	family.Rollout = newRollout(md, template, family.Replicas)
	owned := map[types.UID]*v1alpha1.MachineSet{}
	for i := range sets {
		s := &sets[i]
		if !metav1.IsControlledBy(s, md) {
			continue
		}
		set, err := newSet(s)
		if err != nil {
			return rollout.Family{}, healthCheck, err
		}
		if set.Template.Machine != template.Machine {
			set.Change = change(s.Spec.Template.Spec, md.Spec.Template.Spec)
		}
		owned[s.UID] = s
		family.Sets = append(family.Sets, set)
	}
	healthCheck = addMachines(&family, machines, newHealth(md.Spec.HealthCheck), owned)
	return family, healthCheck, nil
}

// NewSetFamily returns the family of a set without a deployment: the set itself, and those of the machines that it
// owns. healthCheck is the time at which the next machine may become unhealthy; zero means never.
func NewSetFamily(ms *v1alpha1.MachineSet, machines []v1alpha1.Machine, now time.Time) (family rollout.Family,
	healthCheck time.Time,
	err error) {
	set, err := newSet(ms)
	if err != nil {
		return rollout.Family{}, healthCheck, err
	}
	family = rollout.Family{
		Name: ms.Name, Replicas: set.Replicas, MinReady: secondsOrDefault(ms.Spec.MinReadySeconds, 0),
		DeletePolicy: rollout.DeletePolicy(ms.Spec.DeletePolicy), Deleting: ms.DeletionTimestamp != nil,
		Sets: []rollout.Set{set}, Now: now,
	}
	family.MaxUnhealthy = maxUnhealthy(ms.Spec.HealthCheck, family.Replicas)
	owned := map[types.UID]*v1alpha1.MachineSet{ms.UID: ms}
	healthCheck = addMachines(&family, machines, newHealth(ms.Spec.HealthCheck), owned)
	return family, healthCheck, nil
}

// newRollout returns the rollout settings of the deployment. Percentages are rounded as for Deployments in Kubernetes.
// If both limits are 0, MaxUnavailable is 1, because otherwise the rollout could not start.
func newRollout(md *v1alpha1.MachineDeployment, template rollout.Template, replicas int) *rollout.Rollout {
	r := &rollout.Rollout{
		Template: template, Strategy: rollout.RollingUpdate, MaxSurge: 1, Paused: md.Spec.Paused,
		RevisionHistoryLimit: intOrDefault(md.Spec.RevisionHistoryLimit, 1),
		ProgressDeadline:     secondsOrDefault(md.Spec.ProgressDeadlineSeconds, 600),
		RollbackTo:           parseRevision(md.Annotations[v1alpha1.RollbackAnnotation]),
	}
	if s := md.Spec.Strategy; s != nil {
		if s.Type != "" {
			r.Strategy = rollout.Strategy(s.Type)
		}
		if limits := s.RollingUpdate; limits != nil {
			r.MaxSurge = resolveCount(limits.MaxSurge, 1, replicas, true)
			r.MaxUnavailable = resolveCount(limits.MaxUnavailable, 0, replicas, false)
		}
	}
	if r.MaxSurge == 0 && r.MaxUnavailable == 0 {
		r.MaxUnavailable = 1
	}
	return r
}

func newSet(ms *v1alpha1.MachineSet) (rollout.Set, error) {
	template, err := newTemplate(ms.Spec.Template)
	if err != nil {
		return rollout.Set{}, fmt.Errorf("MachineSet %s/%s: spec.template.%w", ms.Namespace, ms.Name, err)
	}
	return rollout.Set{
		Name: ms.Name, Template: template, Revision: parseRevision(ms.Annotations[v1alpha1.RevisionAnnotation]),
		Replicas: intOrDefault(ms.Spec.Replicas, 1), Created: ms.CreationTimestamp.Time,
		Deleting: ms.DeletionTimestamp != nil,
	}, nil
}

// addMachines adds the machines that belong to these sets. It returns the time at which the next of them may become
// unhealthy; zero means never.
func addMachines(family *rollout.Family, machines []v1alpha1.Machine, h health, sets map[types.UID]*v1alpha1.MachineSet,
) time.Time {
	var healthCheck time.Time
	for i := range machines {
		m := &machines[i]
		owner := metav1.GetControllerOf(m)
		if owner == nil || sets[owner.UID] == nil {
			continue
		}
		set := sets[owner.UID]
		metadata := ""
		if hasMetadata(m, set.Spec.Template) {
			metadata = metadataText(set.Spec.Template)
		}
		unhealthy, next := h.checkHealth(m, family.Now)
		if !next.IsZero() && (healthCheck.IsZero() || next.Before(healthCheck)) {
			healthCheck = next
		}
		_, first := m.Annotations[v1alpha1.DeleteFirstAnnotation]
		family.Machines = append(family.Machines, rollout.Machine{
			Name: m.Name, Set: set.Name, Created: m.CreationTimestamp.Time,
			ReadySince: trueSince(m, ConditionReady), Updating: isUpdating(m), Changed: updatingSince(m),
			Lost:      hasLostNode(m),
			Unhealthy: unhealthy, DeleteFirst: first, Deleting: m.DeletionTimestamp != nil, Metadata: metadata,
		})
	}
	return healthCheck
}

// isUpdating reports whether a Machine with a Node differs from its spec, or the controller has not observed the spec
// yet.
func isUpdating(m *v1alpha1.Machine) bool {
	return m.Status.NodeRef != nil && (isTrue(m, ConditionUpdating) || m.Status.ObservedGeneration < m.Generation)
}

// updatingSince returns the last transition of ConditionUpdating; zero if the condition is not set.
func updatingSince(m *v1alpha1.Machine) time.Time {
	if c := meta.FindStatusCondition(m.Status.Conditions, ConditionUpdating); c != nil {
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}

// maxUnhealthy returns the number of unhealthy machines up to which they are replaced. A percentage results in at least
// one machine.
func maxUnhealthy(check *v1alpha1.MachineHealthCheck, replicas int) int {
	limit := intstr.FromString(defaultMaxUnhealthy)
	if check != nil && check.MaxUnhealthy != nil {
		limit = *check.MaxUnhealthy
	}
	if limit.Type == intstr.Int {
		return limit.IntValue()
	}
	return max(1, resolveCount(&limit, 0, replicas, false))
}

// resolveCount returns the value of a number or a percentage of the replicas. It returns fallback if the value is
// missing or invalid.
func resolveCount(value *intstr.IntOrString, fallback, replicas int, up bool) int {
	n, err := intstr.GetScaledValueFromIntOrPercent(value, replicas, up)
	if value == nil || err != nil {
		return fallback
	}
	return max(0, n)
}

func intOrDefault(n *int32, fallback int) int {
	if n == nil {
		return fallback
	}
	return int(*n)
}

func secondsOrDefault(n *int32, fallback int) time.Duration {
	return time.Duration(intOrDefault(n, fallback)) * time.Second
}

// parseRevision parses a revision annotation. It returns 0 if the annotation is missing or invalid.
func parseRevision(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}
