package drive

import (
	"time"

	"kubeone/internal/apply"
	"kubeone/internal/desired"
	"kubeone/internal/observed"
	"kubeone/internal/plan"
	"kubeone/internal/step"
	"kubeone/test/sim/world"
)

// attempt is one running step, seen from its operator.
type attempt struct {
	op    *operator
	step  plan.Step
	began int64

	// Of a step on a host: how far this attempt has got, when it began, and for how long the host has been away.
	phase  int
	tried  int64
	boots  int // of the host, when the step was started or found: the connection ends with it
	outage apply.Outage

	// Of a step through the API.
	admitted bool // the lock and etcd allow it
	call     world.Call
	silence  apply.Silence // of what is to be found dead
	blocked  bool          // the pods did not leave: the node is opened again

	waits map[string]int64 // since when it waits for what
	safe  bool             // etcd was asked whether the step may begin
}

// progress is what became of one command or request.
type progress int

const (
	waiting progress = iota // the same again
	lost                    // the connection broke
	failed
	passed
)

// when is a result that is told, not awaited.
func when(ok bool) progress {
	if ok {
		return passed
	}
	return failed
}

func (a *attempt) by() world.Author {
	return world.Author{Run: a.op.run, Step: a.step.ID, Host: a.step.Host, Kind: a.step.Intent.Kind}
}

func (a *attempt) now() int64 { return a.op.sim.World.Now }

// expired reports whether the step has waited for this for longer than the limit.
func (a *attempt) expired(what string, limit int64) bool {
	since, waits := a.waits[what]
	if !waits {
		if a.waits == nil {
			a.waits = map[string]int64{}
		}
		since = a.now()
		a.waits[what] = since
	}
	return a.now()-since > limit
}

// over ends a wait: the next one for the same begins anew.
func (a *attempt) over(what string) { delete(a.waits, what) }

// move makes one command or request. A host that gave no lock is not touched.
func (a *attempt) move() (ended, ok bool) {
	if a.op.denied[a.step.Host] {
		return true, false
	}
	if a.step.Intent.Kind.OnHost() {
		return a.onHost()
	}
	if h := a.op.sim.World.Host(a.step.Host); h != nil && a.op.dispensable(h) && a.op.another(h) {
		a.op.denied[h.ID] = true
		return true, false
	}
	switch a.onCluster() {
	case waiting, lost:
		return a.now()-a.began > int64(apply.StepLimit(a.step.Intent)/time.Second) && !a.blocked, false
	case failed:
		return true, false
	}
	return true, true
}

// onHost is what apply does for a step on a host: its script, uploads, secrets, start, follow, and what success makes
// possible. A connection that is lost is made again, from the beginning.
func (a *attempt) onHost() (ended, ok bool) {
	if a.phase == 0 && a.tried == 0 {
		a.tried = a.now()
	}
	phases := []func(*world.Host) progress{a.script, a.uploads, a.secrets, a.start, a.follow, a.after}
	switch phases[a.phase](a.op.sim.World.Host(a.step.Host)) {
	case waiting:
		return false, false
	case failed:
		return true, false
	case lost:
		again := a.outage.TryAgain(instant(a.tried), instant(a.now()))
		a.phase, a.tried, a.safe, a.waits = 0, 0, false, nil
		return !again, false
	}
	a.phase++
	return a.phase == len(phases), true
}

// command does something on a host that succeeds or fails.
func (a *attempt) command(h *world.Host, do func() bool) progress {
	ok := false
	if !a.op.command(h, func() { ok = do() }) {
		return lost
	}
	return when(ok)
}

func (a *attempt) script(h *world.Host) progress {
	if a.op.sent[h.ID] {
		return passed
	}
	return a.command(h, func() bool {
		a.op.sent[h.ID] = !h.Full
		return !h.Full
	})
}

func (a *attempt) uploads(h *world.Host) progress {
	if len(a.step.Intent.Content().Uploads) == 0 {
		return passed
	}
	return a.command(h, func() bool { return !h.Full })
}

// secrets are those that the step may know: a token that is young enough, the way to the API, the PKI of a peer.
func (a *attempt) secrets(*world.Host) progress {
	for _, secret := range a.step.Intent.Secrets() {
		got := passed
		switch secret {
		case step.NewTokenSecret:
		case step.TokenSecret:
			got = a.token()
		case step.DiscoverySecret:
			got = when(a.op.access)
		case step.PKISecret:
			peer := a.op.sim.World.Host(step.ParamsOf[step.CopyPKIParams](a.step.Intent).Peer)
			got = a.command(peer, func() bool { return peer.Disk.CA != 0 })
		case step.BackupSecret, step.ComponentSecret, step.CredentialsSecret:
		}
		if got != passed {
			return got
		}
	}
	return passed
}

// token makes a join token for the step's host, anew when it is too old.
func (a *attempt) token() progress {
	switch {
	case a.op.tokens[a.step.Host] != 0 && a.now()-a.op.tokens[a.step.Host] < tokenAge:
		return passed
	case !a.op.access:
		return failed
	case !a.op.sim.World.APIReached():
		if a.expired("token", requestTimeout) {
			return failed
		}
		return waiting
	}
	a.op.tokens[a.step.Host] = a.now()
	return passed
}

func (a *attempt) start(h *world.Host) progress {
	if in := a.etcdAllows(); in != passed {
		return in
	}
	if in := a.lockAllows(true); in != passed {
		return in
	}
	a.boots = h.Boots
	return a.command(h, func() bool {
		return a.op.sim.World.Start(h, a.by(), a.op.locks[h.ID], a.step.Intent) == world.CodeDone
	})
}

func (a *attempt) follow(h *world.Host) progress {
	code, over := a.op.sim.World.Ended(h)
	switch {
	case h.Boots != a.boots:
		return lost
	case over:
		return a.command(h, func() bool { return code == world.CodeDone })
	case !h.Reached() || a.op.sim.breaks(h) != "":
		return lost
	}
	return waiting
}

func (a *attempt) after(h *world.Host) progress {
	if !a.step.Intent.Kind.CreatesControlPlane() {
		return passed
	}
	return a.command(h, func() bool {
		a.op.access = h.Disk.AdminCA != 0
		return a.op.access
	})
}

// lockAllows is the wait for the right to begin, as far as other runs are concerned.
func (a *attempt) lockAllows(onHost bool) progress {
	if a.op.mayBegin(onHost) {
		return passed
	}
	if a.expired("lock", leaseTimeout) {
		return failed
	}
	return waiting
}

// etcdAllows is the wait for an etcd in which the step may begin.
func (a *attempt) etcdAllows() progress {
	if a.safe {
		return passed
	}
	is := a.etcdIs(apply.BeforeStep(a.step, a.op.plan.want, a.op.approved))
	a.safe = is == passed
	return is
}

// etcdIs is the wait for etcd to be as the check wants it.
func (a *attempt) etcdIs(c *apply.EtcdCheck) progress {
	if c == nil || a.op.sim.Off == NoQuorum && a.step.Intent.Role == desired.ControlPlane {
		return passed
	}
	seen := a.op.sim.World.ObserveEtcd()
	why, err := "nobody answers", error(nil)
	if seen.Reached == observed.Yes {
		why, err = c.Wrong(seen)
	}
	switch {
	case err != nil:
		return failed
	case why == "":
		a.over("etcd")
		return passed
	case a.expired("etcd", etcdTimeout):
		return failed
	}
	return waiting
}

// onCluster is a step that goes through the API or etcd.
func (a *attempt) onCluster() progress {
	if a.step.Intent.Kind.NeedsAPI() && !a.op.access {
		return failed
	}
	if !a.admitted {
		if in := a.lockAllows(a.step.Intent.Kind.Place() == step.OnOperator); in != passed {
			return in
		}
		if in := a.etcdAllows(); in != passed {
			return in
		}
		a.admitted = true
	}
	switch a.step.Intent.Kind {
	case step.DrainNode:
		return a.drain()
	case step.Uncordon:
		return a.uncordon()
	case step.RemoveEtcd:
		return a.removeMember()
	case step.DeleteNode:
		return a.deleteNode()
	case step.OperatorHooks:
		return passed // it asks nobody
	}
	return a.request()
}

// request makes the step's request; who makes it repeats it while nobody answers.
func (a *attempt) request() progress {
	if a.call.Began == 0 {
		a.call.Began = a.now()
	}
	done, err := a.op.sim.World.Through(
		a.by(), a.step.Intent, &a.call, world.Digests{Manifest: a.op.file.want.Digest, Addons: a.op.sim.addons})
	switch {
	case err != nil:
		return failed
	case done:
		return passed
	}
	return waiting
}
