// Package v1alpha1 is the API group cluster.k8s.io: Machine, MachineSet and MachineDeployment.
//
// Group and version are those of KEP-3, the Cluster Management API. Fields have the names of machine-controller, so
// that its manifests work unchanged. From KEP-3 come the version of the container runtime and a machine's roles, which
// other projects have dropped.
//
// Fields of spec have their defaults in the schema. The status is complete without its conditions. All validation is in
// the schema and its CEL rules, so no webhook is needed. Package internal/machines/controllers acts on the objects.
//
// +kubebuilder:object:generate=true
// +groupName=cluster.k8s.io
package v1alpha1
