// Package v1alpha1 is the machines of a cluster as objects of its API: Machine, MachineSet and MachineDeployment of the
// group cluster.k8s.io.
//
// The group and its version are those of KEP-3, the Cluster Management API, and the fields have the names that
// machine-controller's manifests use, so that these are accepted as they are. What KEP-3 has and others have dropped is
// here: the version of the container runtime, and a machine's roles.
//
// A field that a person sets is in spec and has its default in the schema; what is so is in status, which is complete
// without its conditions. Applying the same object again changes nothing. All validation is in the schema and in its
// CEL rules: no webhook is needed. Package internal/machines/controllers acts on the objects.
//
// +kubebuilder:object:generate=true
// +groupName=cluster.k8s.io
package v1alpha1
