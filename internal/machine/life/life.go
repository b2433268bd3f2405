// Package life is how the objects of the Machine API come to be and go, as a table: the states of each kind, and what
// leads from one to another. It decides nothing. It is drawn for people, and tests hold it to what the controllers do.
//
// A look at an object tells what is so, whatever was so before: what begins and ends between two looks of a controller
// is never written. The table is that of a controller which looks after each change, and of a provider whose instances
// take their time, as hosts do.
package life

import (
	"slices"

	"kubeone/api/cluster/v1alpha1"
	kubeone "kubeone/api/kubeone/v1alpha1"
	"kubeone/internal/chart"
)

// State is one that an object is in.
type State string

// What every kind has.
const (
	None State = "none" // it is not there yet
	Any  State = "any"  // in a transition, any state but None and those that say that it is leaving
	Gone State = "gone"
)

// Kind is a kind of object.
type Kind struct {
	Name        string
	States      []Described // without those that every kind has
	Leaving     []State     // not meant by Any
	Transitions []Transition
}

// Described is a state, and what it means.
type Described struct {
	State State
	Means string
	Tone  chart.Tone
}

// Transition is one row of a table: from a state, what happens leads to another one.
type Transition struct {
	From State
	On   string
	To   State
}

// Kinds are all of them, from what a person writes to what comes of it.
func Kinds() []Kind {
	return []Kind{MachineDeployment(), MachineSet(), Machine(), Host(), Node()}
}

// Leads reports whether one state leads to another at once.
func (k Kind) Leads(from, to State) bool {
	return slices.ContainsFunc(k.Transitions, func(t Transition) bool {
		meant := t.From == from || t.From == Any && from != None && from != Gone && !slices.Contains(k.Leaving, from)
		return meant && t.To == to
	})
}

// MachineDeployment has no state of its own in the API.
func MachineDeployment() Kind {
	const there State = "there"
	return Kind{
		Name:   "MachineDeployment",
		States: []Described{{there, "it keeps its replicas, of its template", chart.Fine}},
		Transitions: []Transition{
			{None, "somebody applies it", there},
			{there, "it is deleted", Gone},
		},
	}
}

// MachineSet has no state of its own in the API; which one has its deployment's template is what tells them apart.
func MachineSet() Kind {
	const current, former State = "current", "former"
	return Kind{
		Name: "MachineSet",
		States: []Described{
			{current, "it has its deployment's template", chart.Fine},
			{former, "kept to go back to; its Machines go to the current one", chart.Attention},
		},
		Transitions: []Transition{
			{None, "its deployment has a new template", current},
			{current, "another template is wanted", former},
			{former, "its template is wanted again", current},
			{former, "too many are kept without a Machine", Gone},
			{Any, "its deployment is deleted", Gone},
		},
	}
}

// Machine has the phases of its status.
func Machine() Kind {
	const (
		pending, provisioning = State(v1alpha1.Pending), State(v1alpha1.Provisioning)
		running, updating     = State(v1alpha1.Running), State(v1alpha1.Updating)
		failed, deleting      = State(v1alpha1.Failed), State(v1alpha1.Deleting)
	)
	return Kind{
		Name: "Machine",
		States: []Described{
			{pending, "it has no host yet", chart.Attention},
			{provisioning, "its host is made a Node", chart.Busy},
			{running, "it is a Node", chart.Fine},
			{updating, "its Node is changed in place", chart.Busy},
			{failed, "its errorReason says what is to be corrected", chart.Wrong},
			{deleting, "its Node is drained and its host reset", chart.Busy},
		},
		Leaving: []State{deleting},
		Transitions: []Transition{
			{None, "made, and no host is free", pending},
			{None, "made, and a host is claimed", provisioning},
			{None, "its spec is refused", failed},
			{pending, "a host is claimed", provisioning},
			{provisioning, "its Node is there", running},
			{provisioning, "its host was returned, and no other is free", pending},
			{running, "other versions or settings are wanted", updating},
			{updating, "its Node has them", running},
			{failed, "corrected; no host is free", pending},
			{failed, "corrected; it has a host", provisioning},
			{failed, "corrected; it is a Node", running},
			{failed, "corrected; its Node is to be changed", updating},
			{Any, "its spec is refused", failed},
			{Any, "it is deleted", deleting},
			{Any, "deleted, with nothing to return", Gone},
			{deleting, "its host is returned, or given up", Gone},
		},
	}
}

// Host has the states of its status.
func Host() Kind {
	const (
		free, claimed     = State(kubeone.HostFree), State(kubeone.HostClaimed)
		joined, returning = State(kubeone.HostJoined), State(kubeone.HostReturning)
		failed            = State(kubeone.HostFailed)
	)
	return Kind{
		Name: "Host",
		States: []Described{
			{free, "a Machine may have it", chart.Fine},
			{claimed, "it is made its Machine's Node", chart.Busy},
			{joined, "it is its Machine's Node", chart.Fine},
			{returning, "it is reset as soon as it answers", chart.Busy},
			{failed, "it is bare, and rests", chart.Attention},
		},
		Transitions: []Transition{
			{None, "kubeone host add", free},
			{free, "a Machine takes it, or has it by its own note", claimed},
			{free, "it has a Machine that is no more, by its own note", returning},
			{free, "kubeone host remove", Gone},
			{claimed, "it has joined", joined},
			{claimed, "its Machine goes, or has failed on it thrice", returning},
			{joined, "its Machine goes", returning},
			{returning, "it is bare, and its Machine gone", free},
			{returning, "it is bare, and its Machine stays", failed},
			{returning, "kubeone host remove --force", Gone},
			{failed, "a Machine takes it, five minutes later", claimed},
			{failed, "it has a Machine that is no more, by its own note", returning},
			{failed, "kubeone host remove", Gone},
		},
	}
}

// Node is ready or not, as its condition says.
func Node() Kind {
	const ready, notReady State = "Ready", "NotReady"
	return Kind{
		Name: "Node",
		States: []Described{
			{notReady, "its kubelet says so, or nothing", chart.Attention},
			{ready, "its kubelet says so", chart.Fine},
		},
		Transitions: []Transition{
			{None, "the kubelet of a host that joins makes it", notReady},
			{notReady, "its kubelet says that it is ready", ready},
			{ready, "its kubelet says that it is not, or nothing", notReady},
			{Any, "its host is reset, or given up", Gone},
		},
	}
}
