package world

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"kubeone/internal/plan"
)

// Call is how far a step has got that goes through the API or etcd.
type Call struct {
	Began  int64 // when its first request was made
	looks  int   // how often a member was found dead
	looked int64
}

// Digests are what steps through the API bring.
type Digests struct {
	Manifest string
	Addons   map[string]string
}

// confirmEvery and confirmations are how often, and how many times, a member must be found dead before it is removed.
const (
	confirmEvery  = 15
	confirmations = 3
)

// Through carries a step out by one request. It is not done as long as it waits, or while nothing answers.
func (w *World) Through(by Author, in plan.Intent, c *Call, d Digests) (done bool, err error) {
	if in.Kind == plan.RemoveEtcd {
		return w.removeMember(by, in, c)
	}
	if !w.APIReached() {
		return false, nil
	}
	r := w.Ring()
	n := r.Objects.Node(in.NodeName)
	switch in.Kind {
	case plan.JoinToken, plan.RevokeToken, plan.AwaitWorkloads:
		return true, nil
	case plan.ApplyAddon:
		w.effect(Effect{Verb: Applied, By: by})
		r.Objects.Addons[in.Addon] = d.Addons[in.Addon]
		return w.Write(), nil
	case plan.SaveRecord:
		w.effect(Effect{Verb: Applied, By: by})
		r.Objects.Record = d.Manifest
		return w.Write(), nil
	case plan.NodeReady:
		return w.nodeReady(by, in, n)
	case plan.DrainNode:
		return w.drain(r, by, in, c, n)
	case plan.Uncordon:
		return w.uncordon(by, in, n)
	case plan.DeleteNode:
		if in.Confirm && n != nil && n.Ready {
			return false, nil
		}
		w.effect(Effect{Verb: NodeDeleted, By: by, Host: w.Host(in.NodeName)})
		r.Objects.Nodes = slices.DeleteFunc(r.Objects.Nodes, func(n *Node) bool { return n.Name == in.NodeName })
		return true, nil
	}
	return false, errors.New("the API knows no step " + string(in.Kind))
}

func (w *World) nodeReady(by Author, in plan.Intent, n *Node) (bool, error) {
	if n == nil {
		return false, nil
	}
	if !metaEqual(n, in) {
		w.effect(Effect{Verb: Labelled, By: by, Host: w.Host(n.Name)})
		n.Labels, n.Annotations = merged(n.Labels, in.Labels), merged(n.Annotations, in.Annotation)
		for _, t := range in.Taints {
			if !slices.Contains(n.Taints, t.Key) {
				n.Taints = append(n.Taints, t.Key)
			}
		}
	}
	return n.Ready, nil
}

func metaEqual(n *Node, in plan.Intent) bool {
	return maps.Equal(n.Labels, merged(n.Labels, in.Labels)) && maps.Equal(n.Annotations, merged(n.Annotations, in.Annotation)) &&
		!slices.ContainsFunc(in.Taints, func(t taint) bool { return !slices.Contains(n.Taints, t.Key) })
}

// merged is have with what is wanted; a key that ends in "-" goes.
func merged(have, want map[string]string) map[string]string {
	if len(want) == 0 {
		return have
	}
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

// drain closes the Node, then asks one pod after the other to leave. Pods that do not leave in time decide how it ends.
func (w *World) drain(r *Ring, by Author, in plan.Intent, c *Call, n *Node) (bool, error) {
	if n == nil {
		return true, nil
	}
	h := w.Host(n.Name)
	how := in.Drain
	if how == nil {
		how = &plan.Drain{}
	}
	if !n.Cordoned {
		w.effect(Effect{Verb: Cordoned, By: by, Host: h})
		n.Cordoned, n.CordonedBy = true, by.Run
		return false, nil
	}
	late := w.Now-c.Began > int64(max(how.TimeoutSeconds, 1))
	empty, err := w.evict(r, h, n.Name, by, late && how.OnTimeout == plan.ForceOnTimeout)
	if err == nil || !late {
		return empty, nil
	}
	w.Reopen(by, n.Name)
	return false, err
}

// uncordon waits for the Node in its new version, and opens it if a run of ours closed it.
func (w *World) uncordon(by Author, in plan.Intent, n *Node) (bool, error) {
	if n == nil || !n.Ready || n.Kubelet != in.Version {
		return false, nil
	}
	w.Reopen(by, n.Name)
	return true, nil
}

// Reopen lets pods onto the Node again, if a run of ours closed it and the API can be reached.
func (w *World) Reopen(by Author, node string) bool {
	if !w.APIReached() {
		return false
	}
	n := w.Ring().Objects.Node(node)
	if n == nil || !n.Cordoned || n.CordonedBy == "" && !w.Flaws.OpenAll {
		return false
	}
	w.effect(Effect{Verb: Uncordoned, By: by, Host: w.Host(node)})
	n.Cordoned, n.CordonedBy = false, ""
	return true
}

// removeMember takes a member out through a member that operators reach. One that is to be dead is looked at several times
// first.
func (w *World) removeMember(by Author, in plan.Intent, c *Call) (bool, error) {
	via := w.etcdVia()
	if via == nil {
		return false, nil
	}
	r, _ := w.member(via)
	i := slices.IndexFunc(r.Members, func(m Member) bool { return m.Hex() == in.Member })
	if i < 0 {
		return true, nil
	}
	m := r.Members[i]
	if in.Confirm {
		if w.answers(via, r, m) {
			return false, errors.New("the member answers")
		}
		if c.looks == 0 || w.Now-c.looked >= confirmEvery {
			c.looks, c.looked = c.looks+1, w.Now
		}
		if c.looks < confirmations {
			return false, nil
		}
	}
	if !w.Quorum(r) {
		return false, nil
	}
	w.effect(Effect{Verb: Removed, By: by, Host: w.HostOf(r, m.ID), Member: m.ID})
	return true, w.remove(r, m.ID)
}

// answers reports whether the member answers when it is asked through that host.
func (w *World) answers(via *Host, r *Ring, m Member) bool {
	h := w.HostOf(r, m.ID)
	return h != nil && h.Run.Etcd && (h == via || !h.Split && !via.Split)
}

// etcdVia is the host through whose voting member operators reach etcd, one that serves first; nil when there is none.
func (w *World) etcdVia() *Host {
	var other *Host
	for _, h := range w.Hosts {
		if !h.ControlPlane || h.Outside || !h.Reached() || h.Disk.AdminCA == 0 {
			continue
		}
		if w.Voting(h) {
			return h
		}
		if _, m := w.member(h); m != nil && !m.Learner && other == nil {
			other = h
		}
	}
	return other
}

// Keep notes what was applied.
func (w *World) Keep(manifest string, addons map[string]string) {
	w.Version++
	o := &w.Ring().Objects
	o.Record = manifest
	for name, digest := range addons {
		o.Addons[name] = digest
	}
}
