package world

import (
	"errors"
	"slices"

	"kubeone/internal/plan/step"
)

// Exit statuses of steps, like those of the scripts.
const (
	CodeDone     = 0
	CodeFailed   = 1
	CodeLockLost = 75
	CodeBusy     = 76
	CodeKilled   = 78
)

// patience limits how often a phase may wait.
const patience = 40

// Unit is a step on a host. It continues without its operator, and ends with the machine.
type Unit struct {
	By        Author
	Intent    step.Intent
	Disrupted bool   // it has stopped a working component of the control plane
	before    string // the former settings
	phase     int
	waited    int
}

// phase is a part of a step that happens at once. done is false while it waits.
type phase func(w *World, h *Host, u *Unit) (done bool, err error)

// Claim is a run's request for a host's lock.
type Claim struct {
	Run   string
	Force bool
	Ours  int64 // generation of a lock with a lost connection; 0 for a new lock
	Stale int64 // seconds of silence after which a lock is free
}

// began is the time of hosts' clocks when the simulation begins. It is not 0, because then the first lock of a machine
// and that of its replacement would have the same generation.
const began = 1_000_000

// TakeLock takes the host's lock for a run, and returns its generation. It returns false if another run has it, or if
// the disk is full.
func (w *World) TakeLock(h *Host, c Claim) (int64, bool) {
	if h.Full {
		return 0, false
	}
	other := h.Held != nil && h.Held.Run != c.Run && w.Now-h.Held.Beat < c.Stale
	if other && !c.Force || c.Ours != 0 && h.Disk.Generation != c.Ours {
		return 0, false
	}
	if c.Ours == 0 {
		w.reportEffect(Effect{Verb: LockTaken, By: Author{Run: c.Run}, Host: h, Forced: other})
		h.Disk.Generation = max(h.Disk.Generation+1, began+w.Now) // a new machine does not restart at 1
	}
	h.Held = &Keeper{Run: c.Run, Beat: w.Now}
	return h.Disk.Generation, true
}

// TakeLease takes the cluster's lock for a run.
func (w *World) TakeLease(run string, forced bool) {
	w.reportEffect(Effect{Verb: LeaseTaken, By: Author{Run: run}, Forced: forced})
	w.EtcdCluster().Objects.Lease = Lease{Run: run, Renewed: w.Now}
}

// Unlock releases the lock if the run still has it.
func (w *World) Unlock(h *Host, run string) {
	if h.Held != nil && h.Held.Run == run {
		h.Held = nil
		w.Version++
	}
}

// Forget does what forget.sh does on a reset host: it removes the working directory, unless another run has its lock or
// works there.
func (w *World) Forget(h *Host, run string) {
	if (h.Held != nil && h.Held.Run != run || h.Run.Unit != nil) && !w.Flaws.Forget {
		return
	}
	w.reportEffect(Effect{Verb: Forgotten, By: Author{Run: run}, Host: h})
	h.Disk.Generation, h.Disk.Result, h.Held = 0, nil, nil
}

// Start starts a step on the host, or finds it running or ended, like start.sh. Only after CodeDone can it be followed.
func (w *World) Start(h *Host, by Author, generation int64, intent step.Intent) int {
	switch u, r := h.Run.Unit, h.Disk.Result; {
	case u != nil && u.By.Run == by.Run && u.By.Step == by.Step:
		return CodeDone
	case u != nil:
		return CodeBusy
	case r != nil && r.Run == by.Run && r.Step == by.Step:
		return CodeDone
	case (generation == 0 || h.Disk.Generation != generation) && !w.Flaws.NoFence:
		return CodeLockLost
	}
	w.reportEffect(Effect{Verb: Begun, By: by, Host: h})
	h.Disk.Result = nil
	h.Run.Unit = &Unit{By: by, Intent: intent}
	if a := string(w.orders[by.Run].Owed[h.ID][intent.Kind]); a != "" && !slices.Contains(h.Disk.Owed, a) {
		h.Disk.Owed = append(slices.Clip(h.Disk.Owed), a)
	}
	return CodeDone
}

// Ended returns how the followed step on the host ended, or false while it runs.
func (w *World) Ended(h *Host) (code int, ended bool) {
	switch {
	case h.Run.Unit != nil:
		return 0, false
	case h.Disk.Result == nil:
		return CodeKilled, true
	}
	return h.Disk.Result.Code, true
}

// Work advances the step on the host by one phase.
func (w *World) Work(h *Host) {
	u := h.Run.Unit
	if u == nil || !h.Up {
		return
	}
	phases := works[u.Intent.Kind].phases
	done, err := true, error(nil)
	switch {
	case len(phases) == 0:
		err = errUnknown(u.Intent.Kind)
	case h.FailAll:
		err = errors.New("it fails always")
	case h.FailNext:
		h.FailNext, err = false, errors.New("it fails once")
	case u.phase < len(phases):
		done, err = phases[u.phase](w, h, u)
	}
	switch {
	case err == nil && !done:
		if u.waited++; u.waited > patience {
			err = errors.New("gave up waiting")
		}
	case err == nil:
		u.phase, u.waited = u.phase+1, 0
	}
	w.Version++
	if err != nil || u.phase >= len(phases) {
		w.endUnit(h, u, err)
	}
}

func (w *World) endUnit(h *Host, u *Unit, err error) {
	h.Run.Unit = nil
	h.Disk.Result = &Result{Run: u.By.Run, Step: u.By.Step, Code: CodeDone}
	if err != nil {
		h.Disk.Result.Code = CodeFailed
	}
	if err == nil && u.Intent.Kind.ClearsHost() {
		h.Disk = Disk{
			Generation: h.Disk.Generation,
			Result:     h.Disk.Result,
			Aside:      h.Disk.Aside,
			AsideCA:    h.Disk.AsideCA,
		}
	}
}
