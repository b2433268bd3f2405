package world

import (
	"slices"

	"kubeone/internal/plan/step"
)

// runHooks runs the operator's commands of a moment, and takes away the note that they are owed.
func runHooks(w *World, h *Host, u *Unit) (bool, error) {
	m := step.ParamsOf[step.HooksParams](u.Intent).Moment
	w.effect(Effect{Verb: HooksRun, By: u.By, Host: h})
	if m.Noted() {
		h.Disk.Owed = slices.DeleteFunc(slices.Clone(h.Disk.Owed), func(a string) bool {
			return a == string(m.Activity)
		})
	}
	return true, nil
}
