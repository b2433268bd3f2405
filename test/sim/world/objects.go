package world

import (
	"maps"
	"slices"
)

// Objects are the relevant objects in the API.
type Objects struct {
	Nodes   []*Node
	Apps    []*App
	DNS     DNS
	Addons  map[string]string // digest by name
	Own     AddonObjects      // of the operator's own addons
	Secrets []string          // the key of each
	Record  string            // recorded digest of the manifest; empty without a record
	Known   map[string]string // recorded Node names by host ID
	// AnyToken means that every join token is valid for any Node.
	AnyToken bool
	Lease    Lease
	// Endpoint is the published endpoint of the API, and Former the previous one.
	Endpoint string
	Former   []string
}

// Lease is the cluster's lock.
type Lease struct {
	Run     string // its holder; empty for none
	Renewed int64  // time of the last renewal
	Version int    // number of writes
}

// Node is a Node object.
type Node struct {
	Name, Address string
	Kubelet       string
	Ready         bool
	Since         int64 // time of the last change of Ready
	ControlPlane  bool
	Cordoned      bool
	CordonedBy    string // the run in the Node's annotation
	Labels        map[string]string
	Annotations   map[string]string
	Taints        []string
}

// App is a Deployment with a disruption budget.
type App struct {
	Name string
	Min  int // minimum of available pods
	Pods []Pod
}

// DNS is cluster DNS: pods together on any one Node, without a budget.
type DNS struct {
	Pod
	Runs bool
}

// Pod is one pod of an App.
type Pod struct {
	Node  string // empty while it waits for one
	Since int64  // start time
}

// OwnerLabel is the label of a Node that a Machine's kubelet creates. Its value is the Machine's UID.
const OwnerLabel = "machine-controller/owned-by"

const (
	evictAfter = 300 // time until pods of a silent Node are evicted, in seconds
	podStart   = 5   // time until a pod is available, in seconds
)

// Node returns the Node with that name, or nil.
func (o *Objects) Node(name string) *Node {
	for _, n := range o.Nodes {
		if n.Name == name {
			return n
		}
	}
	return nil
}

// closedWorkers returns the number of workers that runs have cordoned.
func (o *Objects) closedWorkers() int {
	n := 0
	for _, node := range o.Nodes {
		if node.CordonedBy != "" && !node.ControlPlane {
			n++
		}
	}
	return n
}

// cloneObjects returns a deep copy.
func (o Objects) cloneObjects() Objects {
	out := o
	out.Nodes, out.Apps, out.Addons, out.Known = nil, nil, maps.Clone(o.Addons), maps.Clone(o.Known)
	out.Secrets, out.Own = slices.Clone(o.Secrets), o.Own.clone()
	for _, n := range o.Nodes {
		c := *n
		out.Nodes = append(out.Nodes, &c)
	}
	for _, a := range o.Apps {
		c := *a
		c.Pods = append([]Pod(nil), a.Pods...)
		out.Apps = append(out.Apps, &c)
	}
	return out
}

// Available counts the app's started pods on working Nodes.
func (w *World) Available(a *App) int {
	n := 0
	for _, p := range a.Pods {
		if w.isAvailable(p) {
			n++
		}
	}
	return n
}

func (w *World) isAvailable(p Pod) bool {
	if p.Node == "" || w.Now-p.Since < podStart {
		return false
	}
	n := w.EtcdCluster().Objects.Node(p.Node)
	return n != nil && n.Ready
}

// placePods assigns Nodes to waiting pods, and removes pods from Nodes that were deleted or have been silent for long.
func (w *World) placePods(r *EtcdCluster) {
	for _, a := range r.Objects.Apps {
		for i := range a.Pods {
			w.placePod(r, &a.Pods[i], false)
		}
	}
	dns := &r.Objects.DNS
	w.placePod(r, &dns.Pod, true)
	if runs := w.isAvailable(dns.Pod); runs != dns.Runs {
		dns.Runs = runs
		w.Version++
	}
}

// placePod assigns a Node to one pod, any Node or only workers.
func (w *World) placePod(r *EtcdCluster, p *Pod, anywhere bool) {
	n := r.Objects.Node(p.Node)
	if p.Node != "" && (n == nil || !n.Ready && w.Now-n.Since > evictAfter) {
		p.Node = ""
		w.Version++
	}
	if p.Node != "" {
		return
	}
	if best := w.emptiestNode(r, anywhere); best != "" {
		p.Node, p.Since = best, w.Now
		w.Version++
	}
}

// emptiestNode returns the schedulable, working Node with the fewest pods, a worker or any.
func (w *World) emptiestNode(r *EtcdCluster, anywhere bool) string {
	best, least := "", -1
	for _, n := range r.Objects.Nodes {
		if !n.Ready || n.Cordoned || n.ControlPlane && !anywhere {
			continue
		}
		if pods := r.Objects.PodsOn(n.Name); least < 0 || pods < least {
			best, least = n.Name, pods
		}
	}
	return best
}

// PodsOn counts the pods on a Node.
func (o *Objects) PodsOn(node string) int {
	n := 0
	for _, a := range o.Apps {
		for _, p := range a.Pods {
			if p.Node == node {
				n++
			}
		}
	}
	return n
}

// Relax lowers the budgets after a change of roles or hosts has left few workers.
func (w *World) Relax() {
	r := w.EtcdCluster()
	if r == nil {
		return
	}
	workers := 0
	for _, n := range r.Objects.Nodes {
		if !n.ControlPlane {
			workers++
		}
	}
	for _, a := range r.Objects.Apps {
		if workers < 2 && a.Min > 0 {
			a.Min = 0
			w.Version++
		}
	}
}

// evictPod evicts one pod from the Node, and reports whether none is left. A budget may refuse; cluster DNS has none.
func (w *World) evictPod(r *EtcdCluster, h *Host, node string, by Author, force bool) (empty bool, err error) {
	if dns := &r.Objects.DNS; dns.Node == node {
		dns.Node = ""
		w.Version++
	}
	for _, a := range r.Objects.Apps {
		for i := range a.Pods {
			p := &a.Pods[i]
			if p.Node != node {
				continue
			}
			left := w.Available(a)
			if w.isAvailable(*p) {
				left--
			}
			if !force && !w.Flaws.NoBudget && left < a.Min {
				return false, errRefused("Cannot evict pod as it would violate the pod's disruption budget.")
			}
			w.reportEffect(Effect{Verb: Evicted, By: by, Host: h, App: a, Pod: *p})
			p.Node = ""
			return r.Objects.PodsOn(node) == 0, nil
		}
	}
	return true, nil
}

// ControlPlaneNode reports whether the cluster has a control-plane Node of that name.
func (w *World) ControlPlaneNode(name string) bool {
	r := w.EtcdCluster()
	if r == nil {
		return false
	}
	n := r.Objects.Node(name)
	return n != nil && n.ControlPlane
}
