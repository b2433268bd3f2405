package plan

import (
	"errors"
	"fmt"
	"strings"

	"kubeone/internal/decide"
	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/desired"
	"kubeone/internal/plan/step"
)

// Input is everything that a plan depends on.
type Input struct {
	Decide decide.Input // the observed world
	// FirstContacts are fingerprints of host keys that approval of the plan records, by host ID.
	FirstContacts map[string]string
	// Charts holds the charts that were found, by the key of their Helm release.
	Charts map[string]Chart
}

// Chart identifies a chart.
type Chart struct {
	Version string
	Digest  string // sha256 (hex) of the archive
}

// Build decides, plans the route, predicts the world after it, and decides again, until nothing remains to do, or until
// the next steps depend on the result of these. It also returns the decisions, in order.
func Build(in Input) (Plan, []decide.Decision) {
	b := newBuilder(in.Decide)
	b.charts = in.Charts
	b.plan.FirstContacts = in.FirstContacts
	decisions := b.planRoutes()
	why := ""
	if fields := in.Decide.Want.SecurityNotCarriedOut; len(fields) > 0 && b.plan.Blocked == "" {
		why = "this version does not carry out " + strings.Join(fields, ", ") +
			", which would make the cluster safer; to install without it, remove it from the manifest"
	}
	if err := errors.Join(b.refused...); err != nil {
		why = err.Error()
	}
	if why != "" {
		return Plan{
			Format: FormatVersion, Cluster: b.plan.Cluster, Routes: b.plan.Routes, Hosts: b.names, Nodes: b.plan.Nodes,
			Blocked: why,
		}, decisions
	}
	b.addHooks()
	b.addPendingHooks()
	b.finishPlan(decisions[0])
	b.hooksOfApply()
	return b.plan, decisions
}

// planRoutes decides and plans repeatedly, until nothing more can be planned, and returns the decisions.
func (b *builder) planRoutes() []decide.Decision {
	var decisions []decide.Decision
	for len(decisions) < maxRoutes {
		next := b.in
		next.Is, next.CA = b.world.Is, b.world.CA
		if len(b.plan.Steps) > 0 { // the steps change the world
			next.Now = b.in.Is.Etcd.Members
		}
		d := decide.Decide(next)
		decisions = append(decisions, d)
		if !b.planRoute(d) {
			break
		}
	}
	if len(b.plannedSteps(step.DeleteNode)) > 0 && len(b.plan.Operator) == 0 {
		b.awaitWorkloads("a Node is removed, and its pods must run elsewhere")
	}
	return decisions
}

// maxRoutes bounds the number of routes in a plan, in case a route does not leave less to do.
const maxRoutes = 16

type builder struct {
	in        decide.Input            // with the observed world
	world     *step.World             // as predicted so far
	names     map[string]string       // display names of the hosts, by ID
	nodeNames map[string]string       // names of the hosts' Nodes, by ID
	hosts     map[string]desired.Host // by ID
	plan      Plan
	ids       map[string]bool // of the plan's steps
	barrier   []string        // IDs that every later step needs: repairs come first
	first     string          // ID of the host whose uploads go before the other hosts'
	init      string          // ID of the step that creates the cluster, if there is one
	begun     []string        // ID of the step that finishes a join that has already reached etcd
	addons    []string        // IDs of the steps of addons that Nodes need to become Ready
	// controllers is the ID of the step that applies the controllers, if there is one
	controllers []string
	// custom are the IDs of the steps of custom addons
	custom []string
	charts map[string]Chart // by the key of their Helm release
	// settings is the ID of the step that changes the settings of kube-proxy and cluster DNS, if there is one
	settings []string
	// renamed are the IDs of the steps that fetch images of cluster DNS, addons and Helm releases for members
	renamed []string
	// published is the ID of the step that names the endpoint in the cluster's objects, if there is one
	published string
	refused   []error // why etcd does not allow steps of the plan
}

// newBuilder starts a plan with these routes.
func newBuilder(in decide.Input, routes ...string) *builder {
	known := decide.NodeNames(in)
	names, nodes := displayNames(in.Want, known), nodeNames(in, known)
	b := &builder{
		in: in, names: names, nodeNames: nodes, hosts: in.Want.HostsByID(), ids: map[string]bool{},
		world: step.NewWorld(in, nodes, condition.EpochBegun(&in.Want, &in.Is)),
		plan: Plan{
			Format: FormatVersion, Cluster: in.Want.Name, Routes: routes, Hosts: names, Nodes: map[string]string{},
		},
	}
	for id, node := range known {
		b.plan.Nodes[id] = node.Name
	}
	return b
}

// planRoute plans one route and returns whether another one may follow.
func (b *builder) planRoute(d decide.Decision) bool {
	if d.Route != fsm.Nothing || len(b.plan.Routes) == 0 {
		b.plan.Routes = append(b.plan.Routes, string(d.Route))
	}
	switch d.Route {
	case fsm.Install:
		if cni := b.in.Want.Network.CNI; !cni.CarriedOut() {
			b.addBlocked(fmt.Sprintf("the network plugin %s is not deployed by this version: use %s, or external and "+
				"install it yourself",
				cni.Name, strings.Join(cni.Deployed(), ", ")))
			return false
		}
		b.installCluster(d)
		b.in.Options = b.in.After(d.Route)
	case fsm.Join:
		b.addJoinSteps(d)
	case fsm.Repair:
		return b.planRepair(d)
	case fsm.MoveEndpoint:
		b.moveEndpoint(d)
	case fsm.Resources:
		b.applyResources(d)
	case fsm.Instruct:
		b.planInstructions(d)
		return false
	case fsm.Upgrade:
		return b.upgradeHosts(d)
	case fsm.Reconfigure:
		return b.reconfigureHosts(d)
	case fsm.Encrypt:
		return b.encryptSecrets(d)
	case fsm.DisasterRecovery:
		b.addInstructions(d)
		b.addBlocked("etcd has lost quorum: kubeone apply does not recover it; run kubeone recover as listed above")
		return false
	case fsm.Error:
		b.addLaterError(d)
		return false
	default: // nothing
		return false
	}
	return true
}
