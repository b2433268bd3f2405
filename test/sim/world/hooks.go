package world

import (
	"slices"

	"kubeone/internal/plan/step"
)

// runHooks runs an activity's hooks, and deletes the note that they are pending.
func runHooks(w *World, h *Host, u *Unit) (bool, error) {
	m := step.ParamsOf[step.HooksParams](u.Intent).Moment
	w.reportEffect(Effect{Verb: HooksRun, By: u.By, Host: h})
	if m.Noted() {
		h.Disk.Owed = slices.DeleteFunc(slices.Clone(h.Disk.Owed), func(a string) bool {
			return a == string(m.Activity)
		})
	}
	return true, nil
}
