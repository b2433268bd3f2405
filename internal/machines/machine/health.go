package machine

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kubeone/api/cluster/v1alpha1"
)

// Conditions of a Machine that determine how its set treats it.
const (
	// ConditionAllocated is true when the provider has a host for the Machine.
	ConditionAllocated = "Allocated"
	// ConditionReady is true while the Node of the Machine is Ready.
	ConditionReady = "Ready"
	// ConditionUpdating is true while a change of the spec is being applied to the existing Node.
	ConditionUpdating = "Updating"
	// ConditionSettings is false while the settings of the host differ from the cluster record. It is absent until they
	// differ for the first time.
	ConditionSettings = "SettingsCurrent"
)

// Defaults of the health check, as in the schema.
const (
	defaultNodeStartup  = 20 * time.Minute
	defaultNotReady     = 5 * time.Minute
	defaultMaxUnhealthy = "40%"
)

// health contains the maximum times that a Machine may take to start and be not ready; 0 means no limit.
type health struct{ startup, notReady time.Duration }

func newHealth(check *v1alpha1.MachineHealthCheck) health {
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

// checkHealth reports whether the Machine has been broken for longer than its limit. If not, it returns the time at
// which this may happen; zero means never. A Machine without a host is not considered broken. Neither is a Machine with
// an invalid spec, because its replacement would be invalid too.
func (h health) checkHealth(m *v1alpha1.Machine, now time.Time) (bool, time.Time) {
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
		// An update restarts the kubelet, so the limit is the same as for a new Node.
		if ready != nil && updating.LastTransitionTime.Before(&ready.LastTransitionTime) {
			return checkOverdue(ready, ready.Status, h.startup, now)
		}
		return checkOverdue(updating, metav1.ConditionTrue, h.startup, now)
	case m.Status.NodeRef == nil:
		allocated := meta.FindStatusCondition(m.Status.Conditions, ConditionAllocated)
		return checkOverdue(allocated, metav1.ConditionTrue, h.startup, now)
	case ready == nil:
		return false, time.Time{}
	}
	return checkOverdue(ready, ready.Status, h.notReady, now)
}

// hasLostNode reports whether the Machine once matched its spec and is no longer Ready, although it is neither being
// changed nor deleted.
func hasLostNode(m *v1alpha1.Machine) bool {
	if m.DeletionTimestamp != nil || m.Status.NodeRef == nil || isUpdating(m) {
		return false
	}
	// set only after the Machine was complete
	wasComplete := meta.FindStatusCondition(m.Status.Conditions, ConditionUpdating) != nil
	return wasComplete && !isTrue(m, ConditionReady)
}

// checkOverdue reports whether the condition has had the status for longer than the limit. If not, it returns the time
// at which this will be the case; zero means never.
func checkOverdue(c *metav1.Condition, status metav1.ConditionStatus, limit time.Duration, now time.Time) (bool,
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

// trueSince returns when the condition became true; zero if it is not true.
func trueSince(m *v1alpha1.Machine, condition string) time.Time {
	c := meta.FindStatusCondition(m.Status.Conditions, condition)
	if c == nil || c.Status != metav1.ConditionTrue {
		return time.Time{}
	}
	return c.LastTransitionTime.Time
}
