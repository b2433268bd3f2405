package v1alpha1

// Finalizers.
const (
	// MachineFinalizer is on every Machine that may have claimed a host. A deleted Machine keeps it until its host is
	// returned and its Node is deleted.
	MachineFinalizer = "machine-delete-finalizer"
)

// Labels and annotations.
const (
	// TemplateHashLabel distinguishes the MachineSets of a MachineDeployment, and their Machines.
	TemplateHashLabel = "machine-template-hash"
	// RevisionAnnotation is the revision of a MachineSet's template. On a MachineDeployment it is the newest revision.
	RevisionAnnotation = "machinedeployment.clusters.k8s.io/revision"
	// RollbackAnnotation on a MachineDeployment is the revision to return to. It is removed when the rollback begins.
	RollbackAnnotation = "machinedeployment.clusters.k8s.io/rollback-to"
	// DeleteFirstAnnotation marks the Machine that a set deletes first. The cluster autoscaler sets it.
	DeleteFirstAnnotation = "cluster.k8s.io/delete-machine"
	// MachineAnnotation on a Node is the namespace and name of its Machine. The cluster autoscaler reads it.
	MachineAnnotation = "cluster.k8s.io/machine"
	// AppliedMetadataAnnotation on a Machine is a hash of the labels, annotations and taints that its set has applied.
	AppliedMetadataAnnotation = "cluster.k8s.io/applied-metadata"
	// ApprovedPlanAnnotation on a Cluster is the digest of the pendingPlan that its controller may carry out.
	ApprovedPlanAnnotation = "cluster.k8s.io/approved-plan"
	// AllowDeletionAnnotation with the value "true" on a Cluster allows its deletion.
	AllowDeletionAnnotation = "cluster.k8s.io/allow-deletion"
	// PausedAnnotation stops the controller of an object.
	PausedAnnotation = "cluster.k8s.io/paused"
)
