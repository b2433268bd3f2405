package world

import (
	"maps"
	"slices"
)

// Objects is what the API holds, so far as it matters.
type Objects struct {
	Nodes   []*Node
	Apps    []*App
	DNS     DNS
	Addons  map[string]string // digest by name
	Secrets []string          // by what each is stored
	Record  string            // the manifest's digest as recorded; empty where there is no record
	Known   map[string]string // by host ID, the name of its Node as recorded
	// AnyToken: whoever has a join token gets any Node's certificate.
	AnyToken bool
	Lease    Lease
	// Endpoint is where kubeadm has everybody look for the API, and Former where it was to be found before.
	Endpoint string
	Former   []string
}

// Lease is the cluster's lock.
type Lease struct {
	Run     string // that has it; empty where nobody has
	Renewed int64  // when it was last renewed
	Version int    // counts how often it was written
}

// Node is a Node object.
type Node struct {
	Name, Address string
	Kubelet       string
	Ready         bool
	Since         int64 // when Ready last changed
	ControlPlane  bool
	Cordoned      bool
	CordonedBy    string // the run that says so in the Node's annotation
	Labels        map[string]string
	Annotations   map[string]string
	Taints        []string
}

// App is a Deployment with a disruption budget.
type App struct {
	Name string
	Min  int // of its pods that must be available
	Pods []Pod
}

// DNS is cluster DNS: pods that are together on one Node, whichever that is, and that no budget keeps.
type DNS struct {
	Pod
	Runs bool
}

// Pod is one pod of an App.
type Pod struct {
	Node  string // where it is; empty: it waits for one
	Since int64  // since when
}

// OwnerLabel is what a Machine's kubelet makes its Node with; its value is the Machine's UID.
const OwnerLabel = "machine-controller/owned-by"

const (
	evictAfter = 300 // how long pods stay with a Node that does not report, in seconds
	podStart   = 5   // how long a pod takes to be available, in seconds
)

// Node is the Node with that name, nil when there is none.
func (o *Objects) Node(name string) *Node {
	for _, n := range o.Nodes {
		if n.Name == name {
			return n
		}
	}
	return nil
}

// closedWorkers is how many workers runs have closed.
func (o *Objects) closedWorkers() int {
	n := 0
	for _, node := range o.Nodes {
		if node.CordonedBy != "" && !node.ControlPlane {
			n++
		}
	}
	return n
}

// clone is a copy that shares nothing.
func (o Objects) clone() Objects {
	out := o
	out.Nodes, out.Apps, out.Addons, out.Known = nil, nil, maps.Clone(o.Addons), maps.Clone(o.Known)
	out.Secrets = slices.Clone(o.Secrets)
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

// Available counts the app's pods that have started, on Nodes that work.
func (w *World) Available(a *App) int {
	n := 0
	for _, p := range a.Pods {
		if w.available(p) {
			n++
		}
	}
	return n
}

func (w *World) available(p Pod) bool {
	if p.Node == "" || w.Now-p.Since < podStart {
		return false
	}
	n := w.EtcdCluster().Objects.Node(p.Node)
	return n != nil && n.Ready
}

// place gives every waiting pod a Node, and takes pods from Nodes that are gone or silent for long.
func (w *World) place(r *EtcdCluster) {
	for _, a := range r.Objects.Apps {
		for i := range a.Pods {
			w.placePod(r, &a.Pods[i], false)
		}
	}
	dns := &r.Objects.DNS
	w.placePod(r, &dns.Pod, true)
	if runs := w.available(dns.Pod); runs != dns.Runs {
		dns.Runs = runs
		w.Version++
	}
}

// placePod does so for one pod, which may be anywhere, or only on workers.
func (w *World) placePod(r *EtcdCluster, p *Pod, anywhere bool) {
	n := r.Objects.Node(p.Node)
	if p.Node != "" && (n == nil || !n.Ready && w.Now-n.Since > evictAfter) {
		p.Node = ""
		w.Version++
	}
	if p.Node != "" {
		return
	}
	if best := w.emptiest(r, anywhere); best != "" {
		p.Node, p.Since = best, w.Now
		w.Version++
	}
}

// emptiest is the open, working Node with the fewest pods, a worker or any.
func (w *World) emptiest(r *EtcdCluster, anywhere bool) string {
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

// Relax has the budgets allow what few workers make necessary: a role was changed, or hosts were left out.
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

// evict asks for one pod to leave the Node, and reports whether none is left. A budget that allows no
// disruption refuses; cluster DNS has none.
func (w *World) evict(r *EtcdCluster, h *Host, node string, by Author, force bool) (empty bool, err error) {
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
			if w.available(*p) {
				left--
			}
			if !force && !w.Flaws.NoBudget && left < a.Min {
				return false, errRefused("Cannot evict pod as it would violate the pod's disruption budget.")
			}
			w.effect(Effect{Verb: Evicted, By: by, Host: h, App: a, Pod: *p})
			p.Node = ""
			return r.Objects.PodsOn(node) == 0, nil
		}
	}
	return true, nil
}

// ControlPlaneNode reports whether the cluster has a Node of that name that is of the control plane.
func (w *World) ControlPlaneNode(name string) bool {
	r := w.EtcdCluster()
	if r == nil {
		return false
	}
	n := r.Objects.Node(name)
	return n != nil && n.ControlPlane
}
