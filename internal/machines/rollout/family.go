package rollout

import "time"

// Family is the machines that are planned together: those of a MachineDeployment with all its MachineSets, or those of
// one MachineSet that has no deployment.
type Family struct {
	// Name is the name of the deployment, or of the set that has none.
	Name string
	// Replicas is how many machines are wanted.
	Replicas int
	// MinReady is how long a machine must have been ready until it counts as available.
	MinReady time.Duration
	// DeletePolicy says which of equal machines go first when there are too many.
	DeletePolicy DeletePolicy
	// MaxUnhealthy is how many machines may be unhealthy or lost so that those that are unhealthy are replaced; with
	// more, none is.
	MaxUnhealthy int
	// Rollout is what a deployment says of new templates; nil for a set that has no deployment.
	Rollout *Rollout
	// Deleting says that the deployment, or the set without one, is being deleted: nothing is decided any more.
	Deleting bool
	// Sets is the deployment's sets, or the one set.
	Sets []Set
	// Machines is the machines of all these sets.
	Machines []Machine
	// Now is the time.
	Now time.Time
}

// Rollout is how a deployment brings its machines to its template.
type Rollout struct {
	// Template is what all machines shall be.
	Template Template
	// Strategy is how machines of other templates are replaced.
	Strategy Strategy
	// MaxSurge is how many machines there may be beyond the replicas.
	MaxSurge int
	// MaxUnavailable is how many of the replicas may be unavailable because of the roll-out. It or MaxSurge is 1 or
	// more.
	MaxUnavailable int
	// Paused stops the roll-out. The number of machines is still kept, with the templates that there are.
	Paused bool
	// RevisionHistoryLimit is how many sets without machines are kept for a rollback.
	RevisionHistoryLimit int
	// RollbackTo is the revision that somebody wants back; 0 for none.
	RollbackTo int64
	// ProgressDeadline is how long a roll-out may stand still until it counts as failed; 0 for ever.
	ProgressDeadline time.Duration
}

// Strategy is how the machines of former templates are replaced.
type Strategy string

const (
	// RollingUpdate changes or replaces some machines at a time.
	RollingUpdate Strategy = "RollingUpdate"
	// OnDelete replaces a machine when somebody has deleted it, and only once it has gone.
	OnDelete Strategy = "OnDelete"
)

// DeletePolicy is the order in which machines go that are as good as each other.
type DeletePolicy string

const (
	// Random leaves the choice to the planner; it takes the newest, on which the least depends.
	Random DeletePolicy = "Random"
	// Newest takes the newest first.
	Newest DeletePolicy = "Newest"
	// Oldest takes the oldest first.
	Oldest DeletePolicy = "Oldest"
)

// Template is what the machines of a set are made from, in two texts that are only ever compared.
type Template struct {
	// Machine is what makes another machine of it: versions and the provider's part. Another text is a roll-out.
	Machine string
	// Metadata is all else: labels, annotations, taints. Another text is written to the machines that there are.
	Metadata string
}

// Set is a MachineSet.
type Set struct {
	// Name is its name.
	Name string
	// Template is what its machines are made from.
	Template Template
	// Revision is which of the deployment's templates it has: the newest has the greatest.
	Revision int64
	// Replicas is how many machines it says that it has.
	Replicas int
	// Created is when it was made.
	Created time.Time
	// Change is what the provider says that it takes to make one of its machines one of the deployment's template.
	Change Change
	// Deleting says that it is being deleted.
	Deleting bool
}

// Change is what it takes to make one template's machine another one's.
type Change string

const (
	// Replace needs another machine; what is not said is this.
	Replace Change = ""
	// InPlace changes the machine that there is.
	InPlace Change = "in place"
	// Unsupported cannot be done at all: the machine stays what it is.
	Unsupported Change = "not supported"
)

// Machine is a Machine of one of the family's sets.
type Machine struct {
	// Name is its name.
	Name string
	// Set is the name of its set.
	Set string
	// Created is when it was made.
	Created time.Time
	// ReadySince is when its Node became ready; zero where it is not.
	ReadySince time.Time
	// Updating says that it has been a Node, and that what its spec says has not been carried out yet. Changed is when
	// that last began or ended; zero where it never has.
	Updating bool
	Changed  time.Time
	// Lost says that it has been a whole Node, and is not ready now.
	Lost bool
	// Unhealthy says that it has been broken for longer than anybody waits.
	Unhealthy bool
	// DeleteFirst says that somebody wants this one to go first when there are too many.
	DeleteFirst bool
	// Deleting says that it is being deleted.
	Deleting bool
	// Metadata is the text of its template's metadata as it has it.
	Metadata string
}

// isAvailable says whether the machine does the work of one. Of a family without MinReady that is whether it is ready.
func (m *Machine) isAvailable(now time.Time, minReady time.Duration) bool {
	if m.Deleting || m.Updating || m.Unhealthy || m.ReadySince.IsZero() {
		return false
	}
	return !now.Before(m.ReadySince.Add(minReady))
}
