package machine

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kubeone/api/cluster/v1alpha1"
	"kubeone/internal/machines/rollout"
)

// MovingSets returns, by UID, the MachineSets whose deployment is rolling out another template. Their Machines are
// about to be changed or replaced.
func MovingSets(sets []v1alpha1.MachineSet, deployments []v1alpha1.MachineDeployment) map[types.UID]bool {
	byUID := map[types.UID]*v1alpha1.MachineDeployment{}
	for i := range deployments {
		byUID[deployments[i].UID] = &deployments[i]
	}
	out := map[types.UID]bool{}
	for i := range sets {
		owner := metav1.GetControllerOf(&sets[i])
		if owner == nil || byUID[owner.UID] == nil {
			continue
		}
		md := byUID[owner.UID]
		onDelete := md.Spec.Strategy != nil && rollout.Strategy(md.Spec.Strategy.Type) == rollout.OnDelete
		if md.Spec.Paused || onDelete || md.DeletionTimestamp != nil {
			continue
		}
		current, err := machineText(sets[i].Spec.Template.Spec)
		desired, desiredErr := machineText(md.Spec.Template.Spec)
		out[sets[i].UID] = err == nil && desiredErr == nil && current != desired
	}
	return out
}

// IsUpdating reports whether a change of the Machine's spec is being carried out on its Node.
func IsUpdating(m *v1alpha1.Machine) bool {
	return meta.IsStatusConditionTrue(m.Status.Conditions, ConditionUpdating)
}
