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

// Request says what a caller wants: an Apply, Adopt, Reset, Remove, Replace, Recover, RenewCertificates, RotateCA,
// Snapshots or Worker. It identifies hosts by ID.
type Request interface {
	// plan returns the plan for the request. It is pure, and is called again when more input is known. An error means
	// that the request is invalid or must not be carried out.
	plan(in planInput) (plan.Plan, []decide.Decision, error)
}

// planInput is the input of a plan in addition to the request.
type planInput struct {
	plan.Input
	progress map[string]plan.Progress // as plan.RecoverOptions.Progress
	unread   error                    // why Decide.Is.API.ExtensionCAs could not be read for a rotation; nil if it was
	ids      identity.IDs             // maps the names of hosts in the request to IDs
}

// Apply brings the cluster into its desired state. It installs, joins, repairs, upgrades and does whatever else is
// needed.
type Apply struct {
	decide.Options
	Limit    map[string]bool // IDs of the only hosts to change; nil: all
	Selector labels.Selector // further limit by Node labels; nil: all
	// Routes are the allowed routes; nil: all. CarryOut refuses plans of other routes with a *ConfigError.
	Routes []fsm.Route
	// NamesOnly skips resolving the digests of artifacts, for callers that only show the plan. A proposal that installs
	// something then cannot be carried out.
	NamesOnly bool
}

// Adopt changes the form of the desired state to that of the engine: a manifest, or a Cluster and its Machines. It
// changes nothing that runs.
type Adopt struct{}

// Reset removes everything that kubeone installed on hosts.
type Reset struct {
	Hosts []string // empty: all, which removes the whole cluster
	// Purge deletes everything that resets, repairs and recoveries keep on the hosts, including this reset.
	Purge bool
	// AbandonMachines leaves Machine hosts unchanged when the whole cluster is removed; otherwise they are returned
	// first.
	AbandonMachines bool
}

// Remove removes one host from a running cluster and resets it.
type Remove struct {
	Host     string
	HostGone bool // the host is lost for good: only its etcd member and Node are removed
}

// Replace removes one host from a running cluster and joins it again. A host that is lost for good is only removed, as
// by Remove, and the plan lists the steps to add its replacement.
type Replace struct {
	Host     string
	HostGone bool
}

// Recover restores a cluster whose etcd has lost its quorum.
type Recover struct {
	About     plan.Copy  // description of the copy to restore
	Content   apply.Copy // content of that copy
	Destroyed []string   // hosts, or names of etcd members without a host, confirmed lost for good
	On        string     // host to restore on; "" chooses one automatically
}

// Snapshots takes a snapshot of etcd on every control-plane host that answers and has etcd data, one at a time. It also
// updates the hosts' timers for scheduled snapshots.
type Snapshots struct{}

// Worker configures a Machine host as a worker, or resets it so that it can be returned. It requires an engine
// restricted to that host (Engine.About), with a desired cluster of this worker and no control plane.
type Worker struct {
	MachineDeleted bool     // the Machine is deleted: the host is returned
	GivenUp        bool     // stop waiting for an unresponsive host of a deleted Machine
	APIServers     []string // the versions of all API servers; empty if one is unknown
	// Turn says whether it is the turn of this host to get new settings.
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

// limitHosts returns the hosts in Limit that match Selector, by the labels of their Node and their desired labels. It
// returns nil if there is neither.
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
		return nil, fmt.Errorf("no host in cluster %s has a Node that matches the selector %q", want.Name, r.Selector)
	}
	return out, nil
}

// labelsOf returns the desired labels of the host combined with those of its Node, which take precedence.
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
	p, err := plan.RemoveNode(in.Decide, in.ids.Of(r.Host), r.HostGone)
	return completePlan(p, in, err)
}

func (r Replace) plan(in planInput) (plan.Plan, []decide.Decision, error) {
	p, err := plan.ReplaceNode(in.Decide, in.ids.Of(r.Host), r.HostGone)
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
		return p, nil, &EtcdError{errors.New("no control-plane host that answers has etcd data; see kubeone status")}
	}
	return completePlan(p, in, nil)
}

func (Adopt) plan(in planInput) (plan.Plan, []decide.Decision, error) {
	p, err := plan.Adopt(in.Decide)
	return completePlan(p, in, err)
}

func (r Worker) plan(in planInput) (plan.Plan, []decide.Decision, error) {
	p, decisions := plan.Worker(decide.WorkerInput{
		Input: in.Decide, MachineDeleted: r.MachineDeleted, GivenUp: r.GivenUp, APIServers: r.APIServers, Turn: r.Turn,
	})
	p.FirstContacts = in.FirstContacts
	return p, decisions, nil
}

// whyRefused returns why the worker must wait or cannot be configured, or nil if there is no reason.
func (Worker) whyRefused(p Proposal) error {
	switch d := p.Decision(); {
	case d.Route == fsm.Error, d.Route == fsm.Wait:
		return &BlockedError{d.Route, p.Plan.Again}
	case p.Plan.Blocked != "":
		return &BlockedError{d.Route, p.Plan.Blocked}
	}
	return nil
}

// completePlan adds first contacts and a decision to a plan that plan.Build did not make. A refused plan has a decision
// too, because Pending derives from it whether the obstacle may resolve itself.
func completePlan(p plan.Plan, in planInput, err error) (plan.Plan, []decide.Decision, error) {
	decisions := []decide.Decision{decide.Decide(in.Decide)}
	if err != nil {
		return p, decisions, &ConfigError{err}
	}
	p.FirstContacts = in.FirstContacts
	return p, decisions, nil
}

// whyRefused returns why an Apply must not be carried out, or nil if there is no reason.
func (r Apply) whyRefused(p Proposal) error {
	d := p.Decision()
	switch {
	case d.Route == fsm.Error:
		return &BlockedError{d.Route, "the state of the cluster allows no changes"}
	case p.Plan.Blocked != "":
		return &BlockedError{d.Route, p.Plan.Blocked}
	case r.Routes != nil && !slices.Contains(r.Routes, d.Route):
		return &ConfigError{
			fmt.Errorf("the cluster needs %q, which this command does not do; use kubeone apply", d.Route),
		}
	}
	return nil
}
