package machine

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kubeone/api/cluster/v1alpha1"
)

func reference(node string) *corev1.ObjectReference {
	return &corev1.ObjectReference{Kind: "Node", Name: node}
}

// condition gives a machine a condition that last changed the given number of seconds ago.
func condition(m *v1alpha1.Machine, name string, status metav1.ConditionStatus, seconds int) {
	meta.RemoveStatusCondition(&m.Status.Conditions, name)
	meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{
		Type: name, Status: status, Reason: "Test", LastTransitionTime: metav1.NewTime(then(seconds)),
	})
}
