package rollout

import "time"

// Family is a MachineDeployment with its MachineSets and Machines, or a MachineSet without a deployment and its
// Machines. They are planned together.
type Family struct {
	// Name is the name of the deployment, or of the set without a deployment.
	Name string
	// Replicas is the desired number of machines.
	Replicas int
	// MinReady is how long a machine must be ready to count as available.
	MinReady time.Duration
	// DeletePolicy orders the deletion of otherwise equal machines.
	DeletePolicy DeletePolicy
	// MaxUnhealthy is the maximum number of unhealthy and lost machines at which unhealthy ones are still replaced.
	MaxUnhealthy int
	// Rollout contains the rollout settings of a deployment; nil for a set without a deployment.
	Rollout *Rollout
	// Deleting says that the deployment, or the set without a deployment, is being deleted. Then there are no writes.
	Deleting bool
	// Sets are the deployment's sets, or the one set.
	Sets []Set
	// Machines are the machines of all these sets.
	Machines []Machine
	// Now is the current time.
	Now time.Time
}

// Rollout describes how a deployment updates its machines to its template.
type Rollout struct {
	// Template is the desired template of all machines.
	Template Template
	// Strategy is how outdated machines are replaced.
	Strategy Strategy
	// MaxSurge is how many machines may exist beyond Replicas.
	MaxSurge int
	// MaxUnavailable is how many replicas the rollout may make unavailable. MaxSurge or MaxUnavailable is at least 1.
	MaxUnavailable int
	// Paused stops the rollout. The number of machines is still maintained, with the existing templates.
	Paused bool
	// RevisionHistoryLimit is how many sets without machines are kept for a rollback.
	RevisionHistoryLimit int
	// RollbackTo is the revision of a requested rollback; 0 is none.
	RollbackTo int64
	// ProgressDeadline is how long a rollout may make no progress before it counts as stalled; 0 is no limit.
	ProgressDeadline time.Duration
}

// Strategy is how outdated machines are replaced.
type Strategy string

const (
	// RollingUpdate changes or replaces some machines at a time.
	RollingUpdate Strategy = "RollingUpdate"
	// OnDelete replaces a machine only after an operator deleted it and it no longer exists.
	OnDelete Strategy = "OnDelete"
)

// DeletePolicy is the order in which otherwise equal machines are deleted.
type DeletePolicy string

const (
	// Random leaves the choice to the planner, which deletes the newest first.
	Random DeletePolicy = "Random"
	// Newest deletes the newest first.
	Newest DeletePolicy = "Newest"
	// Oldest deletes the oldest first.
	Oldest DeletePolicy = "Oldest"
)

// Template is a machine template in the form of two strings. They are only compared, never parsed.
type Template struct {
	// Machine contains the versions and the provider spec. A change requires a rollout.
	Machine string
	// Metadata contains labels, annotations and taints. A change is copied to existing machines.
	Metadata string
}

// Set is a MachineSet.
type Set struct {
	Name     string
	Template Template
	// Revision is the number of the template in the deployment. The newest template has the greatest number.
	Revision int64
	// Replicas is the number of replicas in its spec.
	Replicas int
	Created  time.Time
	// Change is how the provider updates its machines to the deployment's template.
	Change   Change
	Deleting bool
}

// Change is how a machine with one template is changed to another template.
type Change string

const (
	// Replace requires a new machine. It is the default.
	Replace Change = ""
	// InPlace changes the existing machine.
	InPlace Change = "in place"
	// Unsupported means that the change is impossible, so the machine stays unchanged.
	Unsupported Change = "not supported"
)

// Machine is a Machine of one of the family's sets.
type Machine struct {
	Name string
	// Set is the name of its set.
	Set     string
	Created time.Time
	// ReadySince is when its Node became ready; zero if it is not.
	ReadySince time.Time
	// Updating says that its Node does not match its spec yet. Changed is when Updating last changed; zero means never.
	Updating bool
	Changed  time.Time
	// Lost says that its Node once matched its spec and is no longer ready.
	Lost bool
	// Unhealthy says that it has been broken for longer than its health check allows.
	Unhealthy bool
	// DeleteFirst says that the operator wants it deleted first if there are too many machines.
	DeleteFirst bool
	Deleting    bool
	// Metadata equals Template.Metadata of its set once that has been applied to the machine.
	Metadata string
}

// isAvailable reports whether the machine has been ready for minReady, and is not being updated, unhealthy or deleted.
func (m *Machine) isAvailable(now time.Time, minReady time.Duration) bool {
	if m.Deleting || m.Updating || m.Unhealthy || m.ReadySince.IsZero() {
		return false
	}
	return !now.Before(m.ReadySince.Add(minReady))
}
