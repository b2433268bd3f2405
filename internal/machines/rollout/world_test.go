package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// world is a family that changes by writes and by steps of its machines: a created machine becomes ready, an updated
// one becomes ready again, a deleted one disappears.
type world struct {
	Family
	// made counts the created machines, for their names.
	made int
	// changes is the provider's change from one template to another; Replace if missing.
	changes map[[2]string]Change
	// stuck are machines that make no steps.
	stuck map[string]bool
}

func newWorld() *world {
	return &world{
		Family:  Family{Name: "pool", MaxUnhealthy: 1, Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)},
		changes: map[[2]string]Change{}, stuck: map[string]bool{},
	}
}

// look returns the family for the planner.
func (w *world) look() Family {
	f := w.Family
	f.Machines, f.Sets = slices.Clone(w.Machines), slices.Clone(w.Sets)
	for i := range f.Sets {
		if f.Rollout != nil {
			f.Sets[i].Change = w.changes[[2]string{f.Sets[i].Template.Machine, f.Rollout.Template.Machine}]
		}
	}
	if f.Rollout != nil {
		rollout := *f.Rollout
		f.Rollout = &rollout
	}
	return f
}

func (w *world) setNamed(name string) *Set {
	at := slices.IndexFunc(w.Sets, func(s Set) bool { return s.Name == name })
	if at < 0 {
		return nil
	}
	return &w.Sets[at]
}

func (w *world) machine(name string) *Machine {
	at := slices.IndexFunc(w.Machines, func(m Machine) bool { return m.Name == name })
	if at < 0 {
		return nil
	}
	return &w.Machines[at]
}

// do makes one write as the API server would. A write to a missing object does nothing.
func (w *world) do(write Write) {
	set, machine := w.setNamed(write.Name), w.machine(write.Machine)
	switch write.Kind {
	case CreateSet:
		if set == nil {
			w.Sets = append(w.Sets, Set{
				Name: write.Name, Revision: write.Revision, Template: w.Rollout.Template, Created: w.Now,
			})
		}
	case CreateMachine:
		if set != nil {
			w.made++
			w.Machines = append(w.Machines, Machine{
				Name: fmt.Sprintf("m%d", w.made), Set: set.Name, Created: w.Now, Metadata: set.Template.Metadata,
			})
		}
	case MoveMachine:
		if set != nil && machine != nil {
			machine.Set, machine.Updating, machine.Metadata = set.Name, true, set.Template.Metadata
			machine.Changed = w.Now
		}
	case DeleteMachine:
		if machine != nil {
			machine.Deleting = true
		}
	case LabelMachine:
		if machine != nil {
			machine.Metadata = w.setNamed(machine.Set).Template.Metadata
		}
	case DeleteSet:
		w.Sets = slices.DeleteFunc(w.Sets, func(s Set) bool { return s.Name == write.Name })
	case RollBack:
		w.Rollout.Template, w.Rollout.RollbackTo = set.Template, 0
	case ForgetRollback:
		w.Rollout.RollbackTo = 0
	default:
		w.noteSet(set, write)
	}
}

// noteSet makes a write that changes a set.
func (w *world) noteSet(set *Set, write Write) {
	if set == nil {
		return
	}
	switch write.Kind {
	case ReviseSet:
		set.Revision = write.Revision
	case ScaleSet:
		set.Replicas = write.Replicas
	case LabelSet:
		set.Template.Metadata = w.Rollout.Template.Metadata
	}
}

// step advances each machine that is not stuck, and returns the changes as text.
func (w *world) step() []string {
	var events []string
	for _, m := range slices.Clone(w.Machines) {
		if event := w.progress(m.Name); event != "" {
			events = append(events, event)
		}
	}
	return events
}

// progress advances one machine and returns the change; "" if there is none.
func (w *world) progress(name string) string {
	m := w.machine(name)
	switch {
	case m == nil || w.stuck[name]:
		return ""
	case m.Deleting:
		w.Machines = slices.DeleteFunc(w.Machines, func(m Machine) bool { return m.Name == name })
		return name + " has gone"
	case m.Unhealthy:
		return ""
	case m.Updating:
		m.Updating, m.Changed = false, w.Now
		return name + " is updated"
	case m.ReadySince.IsZero() && !m.Lost:
		m.ReadySince = w.Now
		return name + " is ready"
	}
	return ""
}

// String prints the sets and machines.
func (w *world) String() string {
	var b strings.Builder
	p := newPlanner(w.look())
	for _, s := range p.byRevision() {
		fmt.Fprintf(&b, "%s (%s, revision %d), replicas %d:", s.Name, s.Template.Machine, s.Revision, s.Replicas)
		for _, m := range w.Machines {
			if m.Set == s.Name {
				fmt.Fprintf(&b, " %s", m.Name+w.mark(m))
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// mark returns the notable states of a machine.
func (w *world) mark(m Machine) string {
	var marks []string
	for _, mark := range []struct {
		is   bool
		text string
	}{
		{m.Deleting, "deleting"}, {m.Updating, "updating"}, {m.Lost, "lost"}, {m.Unhealthy, "unhealthy"},
		{m.ReadySince.IsZero(), "not ready"}, {m.DeleteFirst, "delete first"},
		{m.Metadata != w.setNamed(m.Set).Template.Metadata, "other metadata"},
	} {
		if mark.is {
			marks = append(marks, mark.text)
		}
	}
	if len(marks) == 0 {
		return ""
	}
	return "(" + strings.Join(marks, ", ") + ")"
}
