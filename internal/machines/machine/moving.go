package machine

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kubeone/api/cluster/v1alpha1"
	"kubeone/internal/machines/rollout"
)

// MovingSets returns the MachineSets, by UID, whose deployment has another template and is rolling it out. Their
// Machines are about to be changed or replaced.
func MovingSets(sets []v1alpha1.MachineSet, deployments []v1alpha1.MachineDeployment) map[types.UID]bool {
	of := map[types.UID]*v1alpha1.MachineDeployment{}
	for i := range deployments {
		of[deployments[i].UID] = &deployments[i]
	}
	out := map[types.UID]bool{}
	for i := range sets {
		owner := metav1.GetControllerOf(&sets[i])
		if owner == nil || of[owner.UID] == nil {
			continue
		}
		md := of[owner.UID]
		byHand := md.Spec.Strategy != nil && rollout.Strategy(md.Spec.Strategy.Type) == rollout.OnDelete
		if md.Spec.Paused || byHand || md.DeletionTimestamp != nil {
			continue
		}
		has, err := machineText(sets[i].Spec.Template.Spec)
		wants, wrong := machineText(md.Spec.Template.Spec)
		out[sets[i].UID] = err == nil && wrong == nil && has != wants
	}
	return out
}

// IsUpdating reports whether a change of the Machine's spec is being carried out on its Node.
func IsUpdating(m *v1alpha1.Machine) bool {
	return meta.IsStatusConditionTrue(m.Status.Conditions, ConditionUpdating)
}
