package machine

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kubeone/api/cluster/v1alpha1"
)

// Conditions of a Machine that its set depends on.
const (
	// ConditionAllocated is true when the provider has a host for the Machine.
	ConditionAllocated = "Allocated"
	// ConditionReady is true while its Node is Ready.
	ConditionReady = "Ready"
	// ConditionUpdating is true while a change of its spec is carried out on its existing Node.
	ConditionUpdating = "Updating"
	// ConditionSettings is false while its host's settings differ from the cluster's record. It is absent until they
	// first differ.
	ConditionSettings = "SettingsCurrent"
)

// Defaults of the health check, as in the schema.
const (
	defaultNodeStartup  = 20 * time.Minute
	defaultNotReady     = 5 * time.Minute
	defaultMaxUnhealthy = "40%"
)

// health limits how long a Machine may be broken; 0 is no limit.
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

// checkHealth reports whether the Machine has been broken for longer than its limit. If not, it returns when that may
// be; zero is never. A Machine without a host is not broken. Neither is one with an invalid spec: its replacement would
// be invalid too.
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
		// An update restarts the kubelet, so the Node has as much time as a new one.
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

// hasLostNode reports whether the Machine once matched its spec and is no longer Ready, without a change or deletion.
func hasLostNode(m *v1alpha1.Machine) bool {
	if m.DeletionTimestamp != nil || m.Status.NodeRef == nil || isUpdating(m) {
		return false
	}
	wasComplete := meta.FindStatusCondition(m.Status.Conditions, ConditionUpdating) != nil // set on complete ones only
	return wasComplete && !isTrue(m, ConditionReady)
}

// checkOverdue reports whether the condition has had the status for longer than the limit, and otherwise when it will.
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
