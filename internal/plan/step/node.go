package step

import (
	"fmt"
	"kubeone/internal/decide/quorum"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"maps"
	"slices"
	"strings"
)

// Kinds that concern a Node and its pods.
const (
	NodeReady Kind = "node-ready"
	DrainNode Kind = "drain-node"
	Uncordon  Kind = "uncordon"
)

// NodeReadyParams are the manifest's labels, annotations and taints for a Node.
type NodeReadyParams struct {
	Labels      map[string]string `json:"labels,omitempty"` // a key that ends in "-" is removed
	Annotations map[string]string `json:"annotations,omitempty"`
	Taints      []desired.Taint   `json:"taints,omitempty"`
}

// Kind returns NodeReady.
func (NodeReadyParams) Kind() Kind { return NodeReady }

func nodeReadyRow() row {
	return row{
		kind: NodeReady, about: "approves serving certificates, sets labels, annotations and taints, waits for Ready",
		place: ThroughAPI, concerns: ItsHost, group: groupReady, params: paramsOf[NodeReadyParams](),
		event: "KubeOneReady", partOf: desired.Joining, effect: nodeLabelled,
	}
}

func nodeLabelled(w *World, _ desired.Host, i Intent) {
	w.changeNode(i.NodeName, func(n *observed.Node) { *n = withMeta(*n, ParamsOf[NodeReadyParams](i)) })
}

// withMeta adds the manifest's labels, annotations and taints to a Node.
func withMeta(n observed.Node, want NodeReadyParams) observed.Node {
	n.Labels = withKeys(n.Labels, want.Labels)
	n.Annotations = withKeys(n.Annotations, want.Annotations)
	for _, t := range want.Taints {
		if taint := (observed.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect}); !slices.Contains(n.Taints, taint) {
			n.Taints = append(slices.Clone(n.Taints), taint)
		}
	}
	return n
}

func withKeys(have, want map[string]string) map[string]string {
	out := maps.Clone(have)
	if out == nil {
		out = map[string]string{}
	}
	for k, v := range want {
		if gone, remove := strings.CutSuffix(k, "-"); remove {
			delete(out, gone)
			continue
		}
		out[k] = v
	}
	return out
}

// DrainNodeParams say how a node is drained.
type DrainNodeParams struct {
	TimeoutSeconds int `json:"timeoutSeconds,omitempty"` // 0 means five minutes
	// OnTimeout says what happens with pods that do not leave in time; "" means StopOnTimeout.
	OnTimeout    string `json:"onTimeout,omitempty"`
	GraceSeconds *int   `json:"graceSeconds,omitempty"` // nil means each pod's own
	// Upgrade says that the node returns to service: its etcd member must be dispensable meanwhile, and if the drain
	// fails, no other node's upgrade begins.
	Upgrade bool `json:"upgrade,omitempty"`
	// MaxUnavailable is how many workers, including this one, all runs together may have out of service; 0 means any
	// number. If there are more, the step waits: other runs may be working on other workers.
	MaxUnavailable int `json:"maxUnavailable,omitempty"`
}

// The values of OnTimeout.
const (
	StopOnTimeout  = "stop"  // the node is uncordoned, and the run ends
	SkipOnTimeout  = "skip"  // the node is uncordoned, and the next one follows
	ForceOnTimeout = "force" // the pods are deleted
)

// Kind returns DrainNode.
func (DrainNodeParams) Kind() Kind { return DrainNode }

func drainNodeRow() row {
	return row{
		kind: DrainNode, about: "cordons and drains the node",
		traits: cordonsNode | coreOfActivity,
		place:  ThroughAPI, concerns: ItsHost, group: groupDrain, params: paramsOf[DrainNodeParams](),
		event:  "KubeOneDrained",
		partOf: desired.Draining,
		halts: func(i Intent) bool {
			how := ParamsOf[DrainNodeParams](i)
			return how.Upgrade && how.OnTimeout != SkipOnTimeout
		},
		disrupts: func(i Intent) quorum.Disruption {
			if ParamsOf[DrainNodeParams](i).Upgrade {
				return quorum.Stop
			}
			return quorum.NoDisruption // if the member leaves, its own step asks etcd
		},
		effect: noEffect, // a later step uncordons or deletes the Node
	}
}

// UncordonParams say what comes before the uncordon.
type UncordonParams struct {
	Resume bool `json:"resume,omitempty"` // an interrupted run, and no upgrade
	// Containerd is the version of the container runtime that the node must report; "" means any.
	Containerd string `json:"containerd,omitempty"`
}

// Kind returns Uncordon.
func (UncordonParams) Kind() Kind { return Uncordon }

func uncordonRow() row {
	return row{
		kind: Uncordon, about: "waits until the node is Ready in the desired version, and uncordons it",
		traits: uncordonsNode,
		place:  ThroughAPI, concerns: ItsHost, group: groupUpgrade, params: paramsOf[UncordonParams](),
		event: "KubeOneUncordoned",
		halts: always, effect: afterUncordon,
	}
}

func afterUncordon(w *World, h desired.Host, i Intent) {
	w.changeNode(i.NodeName, func(n *observed.Node) {
		n.KubeletVersion, n.Ready = w.Want.KubeletVersion(h), observed.Yes
		if v := h.Versions.Containerd; v != "" {
			n.Runtime = "containerd://" + v
		}
		if n.Annotations[observed.CordonAnnotation] != "" {
			n.Unschedulable = false
			n.Annotations = withKeys(n.Annotations, map[string]string{observed.CordonAnnotation + "-": ""})
		}
	})
}

// Kinds that run the operator's own commands.
const (
	Hooks         Kind = "hooks"
	OperatorHooks Kind = "operator-hooks"
)

// Moment says when hooks run: before or after an activity.
type Moment struct {
	When     desired.When     `json:"when,omitempty"`
	Activity desired.Activity `json:"activity,omitempty"`
}

// String returns "before-drain".
func (m Moment) String() string { return string(m.When) + "-" + string(m.Activity) }

// Noted reports whether a host records the hooks of the moment as pending: if they fail, the activity is not repeated,
// so without a note they would not run again.
func (m Moment) Noted() bool {
	switch m.Activity {
	case desired.Installing, desired.Joining, desired.Upgrading, desired.Reconfiguring:
		return m.When == desired.After
	}
	return false
}

// PendingHooks returns the activities in the steps of one host that hooks must follow, by kind of step. The host
// records these hooks as pending before each step.
func PendingHooks(steps []Intent) map[Kind]desired.Activity {
	out := map[Kind]desired.Activity{}
	for _, hooks := range steps {
		m := hooks.Moment()
		if !m.Noted() {
			continue
		}
		part := m.Activity
		if part == desired.Installing {
			part = desired.Joining
		}
		for _, s := range steps {
			if of, core := s.Kind.PartOf(); core && of == part {
				out[s.Kind] = m.Activity
			}
		}
	}
	return out
}

// Command is one hook.
type Command struct {
	Name           string   `json:"name"`
	Command        []string `json:"command"`
	TimeoutSeconds int      `json:"timeoutSeconds"`
}

// String returns the command for display; words with special characters are quoted as in Go.
func (c Command) String() string {
	words := make([]string, len(c.Command))
	for i, word := range c.Command {
		words[i] = word
		if word == "" || strings.ContainsAny(word, " \"'`\\") {
			words[i] = fmt.Sprintf("%q", word)
		}
	}
	return strings.Join(words, " ")
}

// Commands returns these hooks.
func Commands(hooks []desired.Hook) []Command {
	var out []Command
	for _, h := range hooks {
		out = append(out, Command{h.Name, h.Command, int(h.Timeout.Seconds())})
	}
	return out
}

// HooksParams are the hooks that run on a host at a moment, in order. Without hooks, the step only removes the
// host's note of them.
type HooksParams struct {
	Moment
	Hooks []Command `json:"hooks,omitempty"`
}

// Kind returns Hooks.
func (HooksParams) Kind() Kind { return Hooks }

func hooksRow() row {
	return row{
		kind: Hooks, about: "runs the operator's commands on the host",
		place: OnHost, concerns: ItsHost, group: groupHooks, params: paramsOf[HooksParams](),
		begins: beforeUpgrade, halts: aroundUpgrade, effect: hooksRun,
	}
}

// hooksRun removes the record of pending hooks.
func hooksRun(w *World, h desired.Host, i Intent) {
	m := ParamsOf[HooksParams](i).Moment
	if !m.Noted() {
		return
	}
	seen := w.Is.Hosts[h.ID]
	seen.HooksOwed = slices.DeleteFunc(slices.Clone(seen.HooksOwed), func(a string) bool {
		return a == string(m.Activity)
	})
	w.Is.Hosts[h.ID] = seen
}

// OperatorHooksParams are the hooks that run on the operator's machine at a moment, in order.
type OperatorHooksParams struct {
	Moment
	Hooks []Command `json:"hooks,omitempty"`
}

// Kind returns OperatorHooks.
func (OperatorHooksParams) Kind() Kind { return OperatorHooks }

func operatorHooksRow() row {
	return row{
		kind: OperatorHooks, about: "runs the operator's commands on the operator's machine",
		place: OnOperator, concerns: ItsHost, group: groupHooks, params: paramsOf[OperatorHooksParams](),
		begins: beforeUpgrade, halts: aroundUpgrade, effect: noEffect,
	}
}

// aroundUpgrade reports whether the step's hooks belong to the upgrade or change of a node: if they fail, no other node
// follows.
func aroundUpgrade(i Intent) bool {
	switch i.Moment().Activity {
	case desired.Upgrading, desired.Draining, desired.Reconfiguring:
		return true
	}
	return false
}

func beforeUpgrade(i Intent) bool { return aroundUpgrade(i) && i.Moment().When == desired.Before }

// EndsUpgrade reports whether the step is between the upgrade of a node and its uncordon.
func (i Intent) EndsUpgrade() bool {
	m := i.Moment()
	return m.When == desired.After && m.Activity == desired.Upgrading
}

// Moment returns when the step's hooks run; zero for a step of another kind.
func (i Intent) Moment() Moment {
	switch p := i.Params.(type) {
	case HooksParams:
		return p.Moment
	case OperatorHooksParams:
		return p.Moment
	}
	return Moment{}
}
