// Package plan turns a route into steps: a directed acyclic graph of typed intents, each with its host, its reason, its
// risk and what it will change. A Plan is a value with a digest: it is what is printed, confirmed, saved, compared and
// run. Nothing runs that is not in it.
package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"kubeone/internal/model/problem"
	"kubeone/internal/plan/step"
)

// Plan is all that one run will do.
type Plan struct {
	Format  int      `json:"format"` // FormatVersion
	Cluster string   `json:"cluster"`
	Routes  []string `json:"routes"` // the exit states that led here, in order
	Steps   []Step   `json:"steps"`
	// Operator is what a person must do; apply cannot.
	Operator []problem.Instruction `json:"operator,omitempty"`
	// Notes are facts that the reader should know before saying yes: warnings, first contacts, fields not carried out.
	Notes []string `json:"notes,omitempty"`
	// NotCarriedOut are the manifest's fields that are set and that this version does nothing about, as paths; Unlike
	// is what else is, or may be, other than it must be, and no step changes: components that could not be compared, or
	// do not run, files that somebody has edited. With either of them the cluster does not simply match the manifest,
	// however little there is to do.
	NotCarriedOut []string `json:"notCarriedOut,omitempty"`
	Unlike        []string `json:"unlike,omitempty"`
	// Again says why the plan ends before the cluster is as wanted: what follows cannot be known before it has run.
	Again string `json:"again,omitempty"`
	// Blocked is a route that this version plans and does not carry out; apply stops before the first step.
	Blocked string `json:"blocked,omitempty"`
	// Unresolved says, line by line, what could not be found out of what the steps install. Such a plan is for
	// reading: it has no digest, and is not carried out.
	Unresolved []string `json:"unresolved,omitempty"`
	// FirstContacts are fingerprints of host keys, by host ID, that approval of this plan records.
	FirstContacts map[string]string `json:"firstContacts,omitempty"`
	Hosts         map[string]string `json:"hosts"` // display name by host ID
	// Nodes are the names that hosts have, or are to have, as Nodes, by host ID. A host whose own name is refused, or
	// not known, has none.
	Nodes map[string]string `json:"nodes,omitempty"`
}

// NodeOf is the name of the host's Node; where that is not known, the host's ID, which is the name of no Node.
func (p Plan) NodeOf(host string) string { return cmp.Or(p.Nodes[host], strings.ToLower(host)) }

// FormatVersion is the version of a saved plan's format.
const FormatVersion = 2

// Step is one intent on one host, or on the cluster when Host is empty.
type Step struct {
	ID     string      `json:"id"` // unique in the plan and stable: "join-etcd/cp-2"
	Host   string      `json:"host,omitempty"`
	Intent step.Intent `json:"intent"`
	Needs  []string    `json:"needs,omitempty"` // IDs of steps that must have succeeded
	After  []string    `json:"after,omitempty"` // IDs of steps that must be over, however they ended
	Action Action      `json:"action"`
	Title  string      `json:"title"`  // "join as control plane"
	Reason string      `json:"reason"` // "not a member of the cluster"
	Risk   Risk        `json:"risk"`
	// Changes is what a reader will find changed: files, units, members, objects.
	Changes []string `json:"changes,omitempty"`
}

// Action is what a step means for its host; its value is the symbol that is printed.
type Action string

// The actions.
const (
	Create  Action = "+"
	Change  Action = "~"
	Replace Action = "-/+"
	Remove  Action = "-"
	MustAct Action = "!"
)

// Risk is what running workloads notice of a step.
type Risk string

// The risks, least first.
const (
	NoRisk   Risk = "none"
	Restarts Risk = "restarts a component"
	Drains   Risk = "drains a node"
)

// Decode reads a plan that was written as JSON. Of another format, or with a step that this version does not know
// to the last parameter, it is an error.
func Decode(text []byte) (Plan, error) {
	var head struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return Plan{}, err
	}
	if head.Format != FormatVersion {
		return Plan{},
			fmt.Errorf("it has format %d, this version reads format %d; plan again", head.Format, FormatVersion)
	}
	var p Plan
	if err := json.Unmarshal(text, &p); err != nil {
		return Plan{}, err
	}
	return p, nil
}

// Empty reports whether there is nothing to do and nothing for the operator.
func (p Plan) Empty() bool {
	return len(p.Steps) == 0 && len(p.Operator) == 0 && p.Blocked == ""
}

// Exceptions are what the cluster may be otherwise in than the manifest says when every step has succeeded.
func (p Plan) Exceptions() []string {
	return slices.Concat(p.NotCarriedOut, p.Unlike)
}

// Complete reports whether nothing remains to be done when every step has succeeded, as far as that can be known.
func (p Plan) Complete() bool {
	return len(p.Operator) == 0 && p.Blocked == "" && p.Again == ""
}

// Digest is the sha256 (hex) of the plan's steps and what they do; notes and wording do not count. Two plans with equal
// digests do the same. It is empty for a plan with something unresolved: nobody knows what that does.
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

// orNil is nil for what is empty: a plan that was written and read again is the same plan.
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
