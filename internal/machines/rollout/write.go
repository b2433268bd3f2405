package rollout

import "fmt"

// Kind is the kind of a write.
type Kind string

// Kinds of writes.
const (
	// CreateSet creates the set Name from the deployment's template, with Revision and no replicas.
	CreateSet Kind = "create set"
	// ReviseSet sets the revision of the set Name.
	ReviseSet Kind = "revise set"
	// ScaleSet sets the replicas of the set Name.
	ScaleSet Kind = "scale set"
	// LabelSet sets the metadata of the deployment's template on the set Name.
	LabelSet Kind = "label set"
	// DeleteSet deletes the set Name, which has no machines.
	DeleteSet Kind = "delete set"
	// CreateMachine creates a machine in the set Name.
	CreateMachine Kind = "create machine"
	// MoveMachine moves the machine Machine to the set Name and its template, in one write.
	MoveMachine Kind = "move machine"
	// LabelMachine sets the metadata of its set's template on the machine Machine.
	LabelMachine Kind = "label machine"
	// DeleteMachine deletes the machine Machine.
	DeleteMachine Kind = "delete machine"
	// RollBack restores the template of the set Name and removes the rollback request, in one write.
	RollBack Kind = "roll back"
	// ForgetRollback removes a rollback request for a revision that does not exist.
	ForgetRollback Kind = "forget rollback"
)

// Write is one change to one object.
type Write struct {
	// Kind says which of the other fields are used.
	Kind Kind
	// Name is the name of a set.
	Name string
	// Machine is the name of a machine.
	Machine string
	// Revision and Replicas are new values of the set.
	Revision int64
	Replicas int
	// Reason is a few words for the event; "" is none.
	Reason string
}

// String returns the text of the write's event.
func (w Write) String() string {
	var text string
	switch w.Kind {
	case CreateSet, ReviseSet:
		text = fmt.Sprintf("%s %s (revision %d)", w.Kind, w.Name, w.Revision)
	case ScaleSet:
		text = fmt.Sprintf("%s %s to %d", w.Kind, w.Name, w.Replicas)
	case CreateMachine:
		text = fmt.Sprintf("%s of %s", w.Kind, w.Name)
	case MoveMachine:
		text = fmt.Sprintf("%s %s to %s", w.Kind, w.Machine, w.Name)
	case LabelMachine, DeleteMachine:
		text = fmt.Sprintf("%s %s", w.Kind, w.Machine)
	case ForgetRollback:
		text = fmt.Sprintf("%s to revision %d", w.Kind, w.Revision)
	default:
		text = fmt.Sprintf("%s %s", w.Kind, w.Name)
	}
	if w.Reason != "" {
		text += ": " + w.Reason
	}
	return text
}
