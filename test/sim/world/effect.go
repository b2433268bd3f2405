package world

import "kubeone/internal/plan/step"

// Verb is what an effect does to the world.
type Verb string

// The verbs. Those with a host are about that host.
const (
	LockTaken  Verb = "takes the lock on"
	LeaseTaken Verb = "takes the Lease of"
	Forgotten  Verb = "removes the working directory of"
	Begun      Verb = "begins a step on"

	RingMade Verb = "begins a new etcd on"
	CAMade   Verb = "makes a CA on"
	Added    Verb = "adds a learner for"
	Promoted Verb = "promotes the learner of"
	Removed  Verb = "removes from etcd the member of"

	EtcdStopped    Verb = "stops etcd on"
	APIChanged     Verb = "changes the API server on"
	KubeletChanged Verb = "changes the kubelet on"
	UnitsRestarted Verb = "restarts units of"
	Wrote          Verb = "writes files of"
	Deleted        Verb = "deletes data of"
	Purged         Verb = "deletes what was kept on"
	MovedAside     Verb = "moves data aside on"

	Cordoned    Verb = "cordons"
	Uncordoned  Verb = "uncordons"
	Evicted     Verb = "evicts a pod from"
	NodeDeleted Verb = "deletes the Node of"
	Labelled    Verb = "sets labels of"
	Applied     Verb = "applies objects"
	HooksRun    Verb = "runs hooks on"
	Restricted  Verb = "has join tokens be good for one Node" // who does it, and when, is all the same
)

// Effect is one change that a step makes, told before it is made.
type Effect struct {
	Verb   Verb
	By     Author
	Host   *Host // nil: the cluster
	Member int   // Added, Promoted, Removed: the member
	Old    string
	New    string // APIChanged, KubeletChanged: the versions
	Forced bool   // LockTaken, LeaseTaken: whatever its holder does
	App    *App   // Evicted: whose pod,
	Pod    Pod    // and which
}

// Author is the step of a run that does something.
type Author struct {
	Run  string
	Step string // its ID in the plan; empty for what a run does besides, as taking its lock
	Host string // ID of the host that the step is on
	Kind step.Kind
}

// effect tells of an effect; the caller then makes it.
func (w *World) effect(e Effect) {
	if e.Verb != LockTaken && e.Verb != LeaseTaken { // what a lock says decides nothing
		w.Version++
	}
	if w.Watch != nil {
		w.Watch(e)
	}
}
