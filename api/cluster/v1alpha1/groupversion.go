package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group, and Version its version.
const (
	Group   = "cluster.k8s.io"
	Version = "v1alpha1"
)

// GroupVersion is both.
func GroupVersion() schema.GroupVersion { return schema.GroupVersion{Group: Group, Version: Version} }

// AddToScheme makes the types known to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion(),
		&Cluster{}, &ClusterList{},
		&Machine{}, &MachineList{},
		&MachineSet{}, &MachineSetList{},
		&MachineDeployment{}, &MachineDeploymentList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion())
	return nil
}
