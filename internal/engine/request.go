package engine

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"kubeone/internal/apply"
	"kubeone/internal/decide"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/decide/identity"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
)

// Request is what a caller wants done: an Apply, Reset, Remove, Replace, Recover, RenewCertificates, RotateCA,
// Snapshots or Worker. Hosts are named by their IDs.
type Request interface {
	// plan plans what the request asks for. It is pure, and is called again with more in its input. An error is a
	// mistake in the request, or a reason why it must not be carried out.
	plan(in planInput) (plan.Plan, []decide.Decision, error)
}

// planInput is what a plan depends on, besides the request.
type planInput struct {
	plan.Input
	progress map[string]plan.Progress // as plan.RecoverOptions.Progress
	unread   error                    // why Decide.Is.API.ExtensionCAs could not be read where keys are rotated
	ids      identity.IDs             // what the hosts of the request are called in the input
}

// Apply makes the cluster what is wanted: install, join, repair, upgrade, whatever it takes.
type Apply struct {
	decide.Options
	Limit    map[string]bool // IDs of the only hosts that may be acted on; nil is all
	Selector labels.Selector // of Node labels; of those hosts, the ones that it matches; nil is all
	// Routes are the only routes that are followed; nil is all. A plan of another is a *ConfigError when it
	// is carried out.
	Routes []fsm.Route
	// NamesOnly leaves it at the names of what would be installed, for who only wants to see the plan. Such a proposal
	// cannot be carried out where it installs something.
	NamesOnly bool
}

// Reset makes hosts bare again.
type Reset struct {
	Hosts []string // empty is all, which ends the cluster
	// Purge deletes what resets, repairs and recoveries have kept on the hosts, this one included.
	Purge bool
	// AbandonMachines leaves the hosts of Machines as they are when the cluster ends; otherwise they are returned
	// first.
	AbandonMachines bool
}

// Remove takes one host out of a living cluster and makes it bare.
type Remove struct {
	Host string
	Gone bool // it does not answer and never will: only its etcd member and its Node are removed
}

// Replace takes one host out of a living cluster and joins it again. Of a host that is gone it does what Remove does,
// and says what its successor needs.
type Replace struct {
	Host string
	Gone bool
}

// Recover brings a cluster back whose etcd has lost its quorum.
type Recover struct {
	About     plan.Copy  // of what it is recovered from
	Content   apply.Copy // the same, to be read
	Destroyed []string   // hosts, or names of etcd members without one, that are confirmed to be gone for good
	On        string     // host to restore on; "" chooses
}

// Snapshots takes a snapshot of etcd on every control-plane host that answers and has etcd's data, one after the other,
// and brings the hosts' timer for the scheduled ones up to the manifest.
type Snapshots struct{}

// Worker makes one host what is wanted of a worker that is a Machine, or returns it bare. It is for an engine about
// that host alone (Engine.About), whose cluster has this worker and no control plane.
type Worker struct {
	Gone       bool     // the Machine is not wanted any more: the host is returned
	GivenUp    bool     // nobody waits any longer for the host of a Machine that is gone, if it does not answer
	APIServers []string // the versions of all API servers that there are; none where one is not known
	// Turn says whether the host may get other settings than it has.
	Turn decide.Turn
}

func (r Apply) plan(in planInput) (plan.Plan, []decide.Decision, error) {
	limit, err := r.limitHosts(in)
	if err != nil {
		return plan.Plan{}, nil, &ConfigError{err}
	}
	in.Decide.Limit = limit
	p, decisions := plan.Build(in.Input)
	return p, decisions, nil
}

// limitHosts are the hosts named, and of them those whose Node, or which themselves as they are wanted, have the labels
// of the selector.
func (r Apply) limitHosts(in planInput) (map[string]bool, error) {
	var named map[string]bool
	if r.Limit != nil {
		named = map[string]bool{}
	}
	for name, inside := range r.Limit {
		named[in.ids.Of(name)] = inside
	}
	if r.Selector == nil {
		return named, nil
	}
	out, want, nodes := map[string]bool{}, in.Decide.Want, decide.NodeNames(in.Decide)
	for _, h := range want.Hosts() {
		if (named == nil || named[h.ID]) && r.Selector.Matches(labelsOf(h, nodes[h.ID].Name, in.Decide.Is)) {
			out[h.ID] = true
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("the selector %q matches the Node of no host of cluster %s", r.Selector, want.Name)
	}
	return out, nil
}

// labelsOf are the labels of the host as it is wanted, and those of its Node.
func labelsOf(h desired.Host, node string, w observed.World) labels.Set {
	out := labels.Set{}
	for k, v := range h.Labels {
		out[k] = v
	}
	for _, n := range w.API.Nodes {
		if n.Name == node {
			for k, v := range n.Labels {
				out[k] = v
			}
		}
	}
	return out
}

func (r Reset) plan(in planInput) (plan.Plan, []decide.Decision, error) {
	p, err := plan.Reset(in.Decide, plan.ResetOptions{
		Hosts: in.ids.OfAll(r.Hosts...), Purge: r.Purge, AbandonMachines: r.AbandonMachines,
	})
	return completePlan(p, in, err)
}

func (r Remove) plan(in planInput) (plan.Plan, []decide.Decision, error) {
	p, err := plan.RemoveNode(in.Decide, in.ids.Of(r.Host), r.Gone)
	return completePlan(p, in, err)
}

func (r Replace) plan(in planInput) (plan.Plan, []decide.Decision, error) {
	p, err := plan.ReplaceNode(in.Decide, in.ids.Of(r.Host), r.Gone)
	return completePlan(p, in, err)
}

func (r Recover) plan(in planInput) (plan.Plan, []decide.Decision, error) {
	p, err := plan.Recover(in.Decide, plan.RecoverOptions{
		Copy: r.About, Destroyed: in.ids.OfAll(r.Destroyed...), On: in.ids.Of(r.On), Progress: in.progress,
	})
	return completePlan(p, in, err)
}

func (Snapshots) plan(in planInput) (plan.Plan, []decide.Decision, error) {
	p := plan.Snapshots(in.Decide)
	if len(p.Steps) == 0 {
		return p, nil, &EtcdError{errors.New("no control-plane host that answers has etcd's data; see kubeone status")}
	}
	return completePlan(p, in, nil)
}

func (r Worker) plan(in planInput) (plan.Plan, []decide.Decision, error) {
	p, decisions := plan.Worker(decide.WorkerInput{
		Input: in.Decide, Gone: r.Gone, GivenUp: r.GivenUp, APIServers: r.APIServers, Turn: r.Turn,
	})
	p.FirstContacts = in.FirstContacts
	return p, decisions, nil
}

// whyRefused is why nothing is done about the worker; nil if something is, or nothing is to be done.
func (Worker) whyRefused(p Proposal) error {
	switch d := p.Decision(); {
	case d.Route == fsm.Error, d.Route == fsm.Wait:
		return &BlockedError{d.Route, p.Plan.Again}
	case p.Plan.Blocked != "":
		return &BlockedError{d.Route, p.Plan.Blocked}
	}
	return nil
}

// completePlan completes a plan that the state of the world alone does not lead to. One that is refused has a decision
// too: it says whether what is in the way may only be late.
func completePlan(p plan.Plan, in planInput, err error) (plan.Plan, []decide.Decision, error) {
	decisions := []decide.Decision{decide.Decide(in.Decide)}
	if err != nil {
		return p, decisions, &ConfigError{err}
	}
	p.FirstContacts = in.FirstContacts
	return p, decisions, nil
}

// whyRefused is why an Apply must not be carried out; nil if it may be.
func (r Apply) whyRefused(p Proposal) error {
	d := p.Decision()
	switch {
	case d.Route == fsm.Error:
		return &BlockedError{d.Route, "the cluster is in no state to be changed"}
	case p.Plan.Blocked != "":
		return &BlockedError{d.Route, p.Plan.Blocked}
	case r.Routes != nil && !slices.Contains(r.Routes, d.Route):
		return &ConfigError{
			fmt.Errorf("the cluster needs %q, which this command does not do; use kubeone apply", d.Route),
		}
	}
	return nil
}
