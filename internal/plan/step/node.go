package step

import (
	"maps"
	"slices"
	"strings"

	"kubeone/internal/decide/quorum"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
)

// The kinds that concern a Node and its pods.
const (
	NodeReady Kind = "node-ready"
	DrainNode Kind = "drain-node"
	Uncordon  Kind = "uncordon"
)

// NodeReadyParams are what the manifest wants on a Node.
type NodeReadyParams struct {
	Labels      map[string]string `json:"labels,omitempty"` // a key that ends in "-" is removed
	Annotations map[string]string `json:"annotations,omitempty"`
	Taints      []desired.Taint   `json:"taints,omitempty"`
}

// Kind is NodeReady.
func (NodeReadyParams) Kind() Kind { return NodeReady }

func nodeReadyRow() row {
	return row{
		kind: NodeReady, about: "serving certificates approved, labels, annotations and taints set, Ready awaited",
		place: ThroughAPI, concerns: ItsHost, group: groupReady, params: paramsOf[NodeReadyParams](),
		event: "KubeOneReady", partOf: desired.Joining, effect: nodeLabelled,
	}
}

func nodeLabelled(w *World, _ desired.Host, i Intent) {
	w.node(i.NodeName, func(n *observed.Node) { *n = withMeta(*n, ParamsOf[NodeReadyParams](i)) })
}

// withMeta gives a Node what the manifest wants on it.
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
	TimeoutSeconds int `json:"timeoutSeconds,omitempty"` // 0 is five minutes
	// what happens with pods that do not leave; "" is StopOnTimeout
	OnTimeout    string `json:"onTimeout,omitempty"`
	GraceSeconds *int   `json:"graceSeconds,omitempty"` // nil is each pod's own
	// Upgrade says that the node comes back: its etcd member must be dispensable meanwhile, and no other node's upgrade
	// begins when this fails.
	Upgrade bool `json:"upgrade,omitempty"`
	// MaxUnavailable is how many workers, this one included, runs may have out of service at a time; 0 is any number.
	// Whoever finds more waits: other runs may be at work on other workers.
	MaxUnavailable int `json:"maxUnavailable,omitempty"`
}

// What happens with pods that do not leave in time.
const (
	StopOnTimeout  = "stop"  // the node is uncordoned, and the run ends
	SkipOnTimeout  = "skip"  // the node is uncordoned, and the next one follows
	ForceOnTimeout = "force" // they are deleted
)

// Kind is DrainNode.
func (DrainNodeParams) Kind() Kind { return DrainNode }

func drainNodeRow() row {
	return row{
		kind: DrainNode, about: "the node cordoned and drained",
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
			return quorum.NoDisruption // of a member that leaves, its own step asks
		},
		effect: unchanged, // whoever drains uncordons, or deletes the Node
	}
}

// UncordonParams say after what a node is uncordoned.
type UncordonParams struct {
	Resume bool `json:"resume,omitempty"` // after a run that was interrupted, and not after an upgrade
	// Containerd is the version of the container runtime that the node must report; "" is any.
	Containerd string `json:"containerd,omitempty"`
}

// Kind is Uncordon.
func (UncordonParams) Kind() Kind { return Uncordon }

func uncordonRow() row {
	return row{
		kind: Uncordon, about: "the node Ready in the wanted version, and open for pods again",
		traits: uncordonsNode,
		place:  ThroughAPI, concerns: ItsHost, group: groupUpgrade, params: paramsOf[UncordonParams](),
		event: "KubeOneUncordoned",
		halts: always, effect: uncordoned,
	}
}

func uncordoned(w *World, h desired.Host, i Intent) {
	w.node(i.NodeName, func(n *observed.Node) {
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
