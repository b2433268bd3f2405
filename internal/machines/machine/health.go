package machine

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kubeone/api/cluster/v1alpha1"
)

// The conditions of a Machine by which its set goes.
const (
	// ConditionAllocated is true when the provider has a host for the Machine.
	ConditionAllocated = "Allocated"
	// ConditionReady is true while its Node is Ready.
	ConditionReady = "Ready"
	// ConditionUpdating is true while what its spec says is being carried out on a Node that there is.
	ConditionUpdating = "Updating"
	// ConditionSettings is false while its host has other settings than the cluster's record. It is there once that
	// was so.
	ConditionSettings = "SettingsCurrent"
)

// The defaults of a health check that is not given, as in the schema.
const (
	defaultNodeStartup  = 20 * time.Minute
	defaultNotReady     = 5 * time.Minute
	defaultMaxUnhealthy = "40%"
)

// health is how long a Machine may be broken; 0 is for ever.
type health struct{ startup, notReady time.Duration }

func healthOf(check *v1alpha1.MachineHealthCheck) health {
	h := health{defaultNodeStartup, defaultNotReady}
	if check == nil {
		return h
	}
	if s := check.NodeStartupTimeoutSeconds; s != nil {
		h.startup = time.Duration(*s) * time.Second
	}
	if s := check.NotReadyTimeoutSeconds; s != nil {
		h.notReady = time.Duration(*s) * time.Second
	}
	return h
}

// isUnhealthy says whether the Machine has been broken for longer than anybody waits, and if it has not, when it will
// have been; zero for never. A Machine for which there is no host yet is not broken, nor is one with a spec that nobody
// can carry out: another one would be as it is.
func (h health) isUnhealthy(m *v1alpha1.Machine, now time.Time) (bool, time.Time) {
	if m.Status.ErrorReason != nil {
		switch *m.Status.ErrorReason {
		case v1alpha1.CreateError, v1alpha1.UpdateError:
			return true, time.Time{}
		default:
			return false, time.Time{}
		}
	}
	ready := meta.FindStatusCondition(m.Status.Conditions, ConditionReady)
	updating := meta.FindStatusCondition(m.Status.Conditions, ConditionUpdating)
	switch {
	case ready != nil && ready.Status == metav1.ConditionTrue:
		return false, time.Time{}
	case updating != nil && updating.Status == metav1.ConditionTrue:
		// A change has its kubelet restarted, and has as long as a new Node: then its host has died of it, or since.
		if ready != nil && updating.LastTransitionTime.Before(&ready.LastTransitionTime) {
			return isOverdue(ready, ready.Status, h.startup, now)
		}
		return isOverdue(updating, metav1.ConditionTrue, h.startup, now)
	case m.Status.NodeRef == nil:
		allocated := meta.FindStatusCondition(m.Status.Conditions, ConditionAllocated)
		return isOverdue(allocated, metav1.ConditionTrue, h.startup, now)
	case ready == nil:
		return false, time.Time{}
	}
	return isOverdue(ready, ready.Status, h.notReady, now)
}

// hasLostNode says whether the Machine's Node was all that its spec says once, and is not Ready now, though nobody
// changes or deletes it.
func hasLostNode(m *v1alpha1.Machine) bool {
	if m.DeletionTimestamp != nil || m.Status.NodeRef == nil || isUpdating(m) {
		return false
	}
	whole := meta.FindStatusCondition(m.Status.Conditions, ConditionUpdating) != nil // is said of nothing else
	return whole && !isTrue(m, ConditionReady)
}

// isOverdue says whether the condition has had the status for longer than the limit, and else when it will have.
func isOverdue(c *metav1.Condition, status metav1.ConditionStatus, limit time.Duration, now time.Time) (bool,
	time.Time) {
	if c == nil || c.Status != status || limit == 0 {
		return false, time.Time{}
	}
	end := c.LastTransitionTime.Add(limit)
	if now.Before(end) {
		return false, end
	}
	return true, time.Time{}
}

func isTrue(m *v1alpha1.Machine, condition string) bool {
	return meta.IsStatusConditionTrue(m.Status.Conditions, condition)
}

// trueSince is when the condition became true; zero where it is not.
func trueSince(m *v1alpha1.Machine, condition string) time.Time {
	c := meta.FindStatusCondition(m.Status.Conditions, condition)
	if c == nil || c.Status != metav1.ConditionTrue {
		return time.Time{}
	}
	return c.LastTransitionTime.Time
}
