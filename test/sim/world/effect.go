package world

import "kubeone/internal/plan/step"

// Verb is a kind of effect.
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
	// ObjectDeleted is about an object of an addon, whose key is Old.
	ObjectDeleted Verb = "deletes an object of"
	HooksRun      Verb = "runs hooks on"
	Restricted    Verb = "has join tokens be good for one Node" // the rules do not depend on its author or time
)

// Effect is one change by a step. Watch gets it before the change.
type Effect struct {
	Verb   Verb
	By     Author
	Host   *Host // nil for the cluster
	Member int   // Added, Promoted, Removed: the member
	Old    string
	New    string // APIChanged, KubeletChanged: the new version
	Forced bool   // LockTaken, LeaseTaken: despite a living holder
	App    *App   // Evicted: the pod's app,
	Pod    Pod    // and the pod
}

// Author is the step of a run that causes an effect.
type Author struct {
	Run  string
	Step string // ID in the plan; empty for actions of the run itself, such as taking its lock
	Host string // ID of the step's host
	Kind step.Kind
}

// reportEffect reports an effect before the caller makes the change.
func (w *World) reportEffect(e Effect) {
	if e.Verb != LockTaken && e.Verb != LeaseTaken { // the content of a lock decides nothing
		w.Version++
	}
	if w.Watch != nil {
		w.Watch(e)
	}
}
