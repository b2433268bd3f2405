// Package plan turns a route into steps: a directed acyclic graph of typed intents, each with its host, reason, risk
// and changes. A Plan is a value with a digest, which kubeone prints, confirms, saves, compares and runs. Only its
// steps run.
package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"kubeone/internal/decide/match"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"kubeone/internal/plan/step"
	"slices"
	"strings"
)

// Plan is everything that one run does.
type Plan struct {
	Format  int      `json:"format"` // FormatVersion
	Cluster string   `json:"cluster"`
	Routes  []string `json:"routes"` // the final states of the decisions, in order
	Steps   []Step   `json:"steps"`
	// Operator lists what an operator must do, because apply cannot.
	Operator []problem.Instruction `json:"operator,omitempty"`
	// Notes are facts for the operator's decision: warnings, first contacts, fields not carried out.
	Notes []string `json:"notes,omitempty"`
	// NotCarriedOut are paths of manifest fields that are set, but that this version ignores. Unlike are other
	// differences that no step changes: edited files, and components that are not running or could not be compared.
	// With either of them, the cluster does not simply match the manifest, however little there is to do.
	NotCarriedOut []string `json:"notCarriedOut,omitempty"`
	Unlike        []string `json:"unlike,omitempty"`
	// Again says why the plan ends before the cluster is as desired: what follows is known only after it has run.
	Again string `json:"again,omitempty"`
	// Blocked says why a planned route is not carried out; apply stops before the first step.
	Blocked string `json:"blocked,omitempty"`
	// Unresolved lists, one a line, what could not be found out about the artifacts that the steps install. Such a plan
	// is only for reading: it has no digest, and kubeone does not carry it out.
	Unresolved []string `json:"unresolved,omitempty"`
	// FirstContacts are fingerprints of host keys, by host ID, that approval of this plan records.
	FirstContacts map[string]string `json:"firstContacts,omitempty"`
	Hosts         map[string]string `json:"hosts"` // display name by host ID
	// Nodes are the names of the hosts' present or future Nodes, by host ID. Hosts whose own name is refused or unknown
	// are left out.
	Nodes map[string]string `json:"nodes,omitempty"`
}

// NodeOf returns the name of the host's Node; if it is unknown, the host's ID, which no Node has as name.
func (p Plan) NodeOf(host string) string { return cmp.Or(p.Nodes[host], strings.ToLower(host)) }

// FormatVersion is the version of the format of saved plans.
const FormatVersion = 2

// Step is one intent on one host, or on the cluster if Host is empty.
type Step struct {
	ID     string      `json:"id"` // unique in the plan and stable: "join-etcd/cp-2"
	Host   string      `json:"host,omitempty"`
	Intent step.Intent `json:"intent"`
	Needs  []string    `json:"needs,omitempty"` // IDs of steps that must have succeeded
	After  []string    `json:"after,omitempty"` // IDs of steps that must have ended, successfully or not
	Action Action      `json:"action"`
	Title  string      `json:"title"`  // "join as control plane"
	Reason string      `json:"reason"` // "not a member of the cluster"
	Risk   Risk        `json:"risk"`
	// Changes lists what the step changes: files, units, members, objects.
	Changes []string `json:"changes,omitempty"`
}

// Action is the effect of a step on its subject; its value is the symbol that is printed.
type Action string

// The actions.
const (
	Create  Action = "+"
	Change  Action = "~"
	Replace Action = "-/+"
	Remove  Action = "-"
	MustAct Action = "!"
)

// Risk is how a step may disturb running workloads.
type Risk string

// The risks, least first.
const (
	NoRisk   Risk = "none"
	Restarts Risk = "restarts a component"
	Drains   Risk = "drains a node"
)

// Decode reads a plan from JSON. It returns an error for another format, and for a step with an unknown kind or
// parameter.
func Decode(text []byte) (Plan, error) {
	var head struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return Plan{}, err
	}
	if head.Format != FormatVersion {
		return Plan{},
			fmt.Errorf("the plan has format %d, but this version reads format %d; create the plan again", head.Format,
				FormatVersion)
	}
	var p Plan
	if err := json.Unmarshal(text, &p); err != nil {
		return Plan{}, err
	}
	return p, nil
}

// Empty reports whether there is nothing to do, neither for apply nor for the operator.
func (p Plan) Empty() bool {
	return len(p.Steps) == 0 && len(p.Operator) == 0 && p.Blocked == ""
}

// Exceptions returns the differences between cluster and manifest that remain after every step has succeeded.
func (p Plan) Exceptions() []string {
	return slices.Concat(p.NotCarriedOut, p.Unlike)
}

// Complete reports whether nothing remains to be done after every step has succeeded, as far as that is known.
func (p Plan) Complete() bool {
	return len(p.Operator) == 0 && p.Blocked == "" && p.Again == ""
}

// Digest returns the sha256 (hex) of the plan's steps and what they do; notes and wording do not count. Plans with
// equal digests do the same. It is empty if something is unresolved, because the plan's effect is then unknown.
func (p Plan) Digest() string {
	if len(p.Unresolved) > 0 {
		return ""
	}
	type done struct {
		ID, Host string
		Intent   step.Intent
		Needs    []string
		After    []string
	}
	steps := make([]done, 0, len(p.Steps))
	for _, s := range p.Steps {
		steps = append(steps, done{s.ID, s.Host, s.Intent, orNil(s.Needs), orNil(s.After)})
	}
	contacts := p.FirstContacts
	if len(contacts) == 0 {
		contacts = nil
	}
	text, err := json.Marshal(struct {
		Format   int
		Cluster  string
		Contacts map[string]string
		Steps    []done
	}{p.Format, p.Cluster, contacts, steps})
	if err != nil {
		panic(fmt.Sprintf("plan of %s cannot be encoded: %v", p.Cluster, err)) // only strings, ints and maps of strings
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// orNil returns nil for an empty list, so that a plan equals itself after it was written and read.
func orNil(ids []string) []string {
	if len(ids) == 0 {
		return nil
	}
	return ids
}

// Step returns the step with that ID, and whether there is one.
func (p Plan) Step(id string) (Step, bool) {
	for _, s := range p.Steps {
		if s.ID == id {
			return s, true
		}
	}
	return Step{}, false
}

// Need is what the steps on one host install, or only need the names of: the parts of a release for its architecture
// and role.
type Need struct {
	Host string // ID
	Arch string // as Go names it
	// Installs says that a step installs parts of the release, and does not only write their names.
	Installs bool
	// Found says that the host has all that is needed, under kubeone's own names if the caller gives no others.
	Found bool
}

// Needs returns what must be known about releases before the plan can run, one for each host, in the plan's order. It
// is the same for a plan that was built without artifacts.
func (p Plan) Needs() []Need {
	var out []Need
	at := map[string]int{}
	for _, s := range p.Steps {
		if !s.Intent.Kind.NamesRelease() {
			continue
		}
		if _, ok := at[s.Host]; !ok {
			at[s.Host] = len(out)
			out = append(out, Need{Host: s.Host, Arch: s.Intent.Arch, Found: true})
		}
		n := &out[at[s.Host]]
		n.Installs = n.Installs || s.Intent.Kind.Installs()
		n.Found = n.Found && !s.Intent.Kind.NeedsRelease()
	}
	return out
}

// Installs reports whether the plan installs parts of a release on any host.
func (p Plan) Installs() bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Intent.Kind.Installs() })
}

// Scope is what a run of the plan locks before it begins.
type Scope struct {
	// Cluster says that the plan concerns the cluster, and not only workers: the run also takes the Lease.
	Cluster bool
	// Hosts are the IDs of the hosts to lock, in the manifest's order: the hosts that the plan touches. For a plan that
	// concerns the cluster, they include every control-plane host, even one that the manifest now calls a worker. Hosts
	// that did not answer are left out.
	Hosts []string
	// ControlPlane are those of Hosts that the manifest or the cluster has in the control plane. Without the lock of
	// each of these the run stops; it can do without the others, which are workers.
	ControlPlane []string
	// Complete says that Hosts has every control-plane host of the cluster, so that no other run can work on the
	// cluster without the lock of one of these. False if that is not known.
	Complete bool
	// Ends says that every control-plane host becomes bare, so that the API ends before the plan does.
	Ends bool
}

// Dispensable returns the IDs of the hosts whose lock the run can do without: workers. It does not touch a host that it
// has not locked.
func (s Scope) Dispensable() map[string]bool {
	out := map[string]bool{}
	for _, id := range s.Hosts {
		if !slices.Contains(s.ControlPlane, id) {
			out[id] = true
		}
	}
	return out
}

// LockScope returns what a run of the plan locks. A plan concerns only workers if each of its steps concerns one worker
// that answers, or a join token for it; every other plan concerns the cluster. A host that the manifest calls a worker
// does not count as one while the cluster has its Node in the control plane or lists its etcd member, or while the host
// itself says so. The host of a Machine always counts as a worker: it gets no Node of the control plane, and must not
// hold up others.
func LockScope(p Plan, want desired.Cluster, is observed.World) Scope {
	if len(p.Steps) == 0 {
		return Scope{}
	}
	touched, hosts, nodes := map[string]bool{}, want.HostsByID(), match.IndexNodes(is.API.Nodes)
	var s Scope
	for _, of := range p.Steps {
		touched[of.Host] = true
		s.Cluster = s.Cluster || !aboutWorker(of, hosts, is, nodes)
	}
	for _, h := range want.Hosts() {
		seen := is.Hosts[h.ID]
		controlPlane := ofControlPlane(h, is, nodes.Of(&h, &seen))
		if seen.Reach != observed.Reached || !touched[h.ID] && !(s.Cluster && controlPlane) {
			continue
		}
		s.Hosts = append(s.Hosts, h.ID)
		if controlPlane {
			s.ControlPlane = append(s.ControlPlane, h.ID)
		}
	}
	s.Complete = s.Cluster && isComplete(p, want, is)
	s.Ends = !slices.ContainsFunc(want.ControlPlane, func(h desired.Host) bool {
		return !slices.ContainsFunc(p.Steps, func(s Step) bool {
			return s.Host == h.ID && s.Intent.Kind == step.ResetHost
		})
	})
	return s
}

// ClusterScope returns the scope of work that concerns the cluster and has no plan.
func ClusterScope(want desired.Cluster, is observed.World) Scope {
	return LockScope(Plan{Steps: []Step{{}}}, want, is)
}

// ControlPlaneBusy reports whether a step of another run is running on a control-plane host: no plan can predict its
// result. A worker's own claim does not count, unless the cluster has it in the control plane.
func ControlPlaneBusy(want desired.Cluster, is observed.World) bool {
	nodes := match.IndexNodes(is.API.Nodes)
	return slices.ContainsFunc(want.Hosts(), func(h desired.Host) bool {
		seen := is.Hosts[h.ID]
		return seen.Step != nil && ofControlPlane(h, is, nodes.Of(&h, &seen))
	})
}

// aboutWorker reports whether the lock of one worker suffices for the step.
func aboutWorker(s Step, hosts map[string]desired.Host, is observed.World, nodes match.Nodes) bool {
	switch s.Intent.Kind.Concerns() {
	case step.ItsRun:
		return true
	case step.ItsHost:
		h, ok := hosts[s.Host]
		seen := is.Hosts[h.ID]
		return ok && seen.Reach == observed.Reached && !ofControlPlane(h, is, nodes.Of(&h, &seen)) &&
			(h.Machine != "" || !seen.SaysControlPlane())
	}
	return false
}

// ofControlPlane reports whether the manifest has the host in the control plane, or the cluster has it there, by its
// Node (nil if it has none) or by an etcd member. A worker that is a Machine's does not count.
func ofControlPlane(h desired.Host, is observed.World, node *observed.Node) bool {
	if h.Role == desired.ControlPlane || h.Machine != "" {
		return h.Role == desired.ControlPlane
	}
	return node != nil && node.ControlPlane ||
		match.MemberIndex(is.Etcd.Members, h, NodeName(h, is.Hosts[h.ID])) >= 0
}

// isComplete reports whether the control-plane hosts that answered are all that the cluster has. For a recovery, hosts
// that were confirmed to be destroyed do not count. Like an installation, it starts an etcd of its own.
func isComplete(p Plan, want desired.Cluster, is observed.World) bool {
	begins := func(k step.Kind) bool {
		return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Intent.Kind == k })
	}
	if begins(step.Restore) {
		return true
	}
	ours := map[string]bool{} // etcd members and Nodes of hosts that answered
	for _, h := range want.ControlPlane {
		if is.Hosts[h.ID].Reach != observed.Reached {
			return false
		}
		name := NodeName(h, is.Hosts[h.ID])
		ours[name] = true
		if i := match.MemberIndex(is.Etcd.Members, h, name); i >= 0 {
			ours[is.Etcd.Members[i].ID] = true
		}
	}
	return (is.Etcd.Reached == observed.Yes || begins(step.Init)) &&
		!slices.ContainsFunc(is.Etcd.Members, func(m observed.Member) bool { return !ours[m.ID] }) &&
		!slices.ContainsFunc(is.API.Nodes, func(n observed.Node) bool { return n.ControlPlane && !ours[n.Name] })
}
