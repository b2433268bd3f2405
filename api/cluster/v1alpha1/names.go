package v1alpha1

// Finalizers. A Machine that is deleted stays until its host is returned and its Node is gone.
const (
	// MachineFinalizer is on every Machine that has claimed a host, or may have.
	MachineFinalizer = "machine-delete-finalizer"
)

// Labels and annotations.
const (
	// TemplateHashLabel tells the MachineSets of one MachineDeployment, and their Machines, apart.
	TemplateHashLabel = "machine-template-hash"
	// RevisionAnnotation is which of its deployment's templates a MachineSet has, and on the deployment the newest.
	RevisionAnnotation = "machinedeployment.clusters.k8s.io/revision"
	// RollbackAnnotation on a MachineDeployment is the revision to go back to; it is removed when that has begun.
	RollbackAnnotation = "machinedeployment.clusters.k8s.io/rollback-to"
	// DeleteFirstAnnotation on a Machine says that it goes first when its set has too many; the cluster autoscaler sets
	// it.
	DeleteFirstAnnotation = "cluster.k8s.io/delete-machine"
	// MachineAnnotation on a Node is the namespace and name of its Machine; the cluster autoscaler reads it.
	MachineAnnotation = "cluster.k8s.io/machine"
	// AppliedMetadataAnnotation on a Machine is a hash of the labels, annotations and taints that its set has given it.
	AppliedMetadataAnnotation = "cluster.k8s.io/applied-metadata"
	// PausedAnnotation on any of the objects stops its controller from acting on it.
	PausedAnnotation = "cluster.k8s.io/paused"
)
