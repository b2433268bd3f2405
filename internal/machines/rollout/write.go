package rollout

import "fmt"

// Kind is what a write does.
type Kind string

// The kinds of writes.
const (
	// CreateSet makes the set Name of the deployment's template, with Revision and no replicas.
	CreateSet Kind = "create set"
	// ReviseSet gives the set Name the number Revision.
	ReviseSet Kind = "revise set"
	// ScaleSet notes in the set Name that it has Replicas.
	ScaleSet Kind = "scale set"
	// LabelSet gives the set Name the metadata of the deployment's template.
	LabelSet Kind = "label set"
	// DeleteSet deletes the set Name, which has no machines.
	DeleteSet Kind = "delete set"
	// CreateMachine makes a machine of the set Name.
	CreateMachine Kind = "create machine"
	// MoveMachine gives the machine Machine to the set Name, with what the set's template says, in one write.
	MoveMachine Kind = "move machine"
	// LabelMachine gives the machine Machine the metadata of its set's template.
	LabelMachine Kind = "label machine"
	// DeleteMachine deletes the machine Machine.
	DeleteMachine Kind = "delete machine"
	// RollBack gives the deployment the template of the set Name, and forgets the wish for a rollback, in one write.
	RollBack Kind = "roll back"
	// ForgetRollback forgets the wish for a rollback: there is no such revision.
	ForgetRollback Kind = "forget rollback"
)

// Write is one change to one object.
type Write struct {
	// Kind is what it does; it says which of the fields count.
	Kind Kind
	// Name is a set's name.
	Name string
	// Machine is a machine's name.
	Machine string
	// Revision and Replicas are what the set gets.
	Revision int64
	Replicas int
	// Reason is why, for an event: a few words that follow what is done.
	Reason string
}

// String says it as the dialogues and the events do.
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
