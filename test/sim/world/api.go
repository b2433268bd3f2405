package world

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"kubeone/internal/model/observed"
	"kubeone/internal/plan/step"
)

// Call is the progress of a step through the API or etcd.
type Call struct {
	Began int64 // time of its first request
}

// Digests are the digests that steps through the API apply.
type Digests struct {
	Manifest string
	Addons   map[string]string
}

// query is a step's request with its subject.
type query struct {
	by          Author
	in          step.Intent
	call        *Call
	digests     Digests
	etcdCluster *EtcdCluster // the etcd cluster of the API; nil for a request to etcd
	node        *Node        // the intent's Node, or nil
}

// request makes a step's request once. done is false while it waits.
type request func(w *World, q query) (done bool, err error)

// Through carries out a step with one request. done is false while it waits or while the API does not answer.
func (w *World) Through(by Author, in step.Intent, c *Call, d Digests) (done bool, err error) {
	q := query{by: by, in: in, call: c, digests: d}
	ask := works[in.Kind].request
	switch {
	case ask == nil:
		return false, errUnknown(in.Kind)
	case in.Kind.ChangesMembership(): // a request to etcd
		return ask(w, q)
	case !w.APIReached():
		return false, nil
	}
	q.etcdCluster = w.EtcdCluster()
	q.node = q.etcdCluster.Objects.Node(in.NodeName)
	return ask(w, q)
}

func removeAutoApproval(w *World, q query) (bool, error) {
	w.reportEffect(Effect{Verb: Restricted, By: q.by})
	q.etcdCluster.Objects.AnyToken = false
	return w.Write(), nil
}

func requestAnswered(*World, query) (bool, error) { return true, nil }

func applyAddon(w *World, q query) (bool, error) {
	w.reportEffect(Effect{Verb: Applied, By: q.by})
	name := step.ParamsOf[step.ApplyAddonParams](q.in).Addon
	q.etcdCluster.Objects.Addons[name] = q.digests.Addons[name]
	return w.Write(), nil
}

func saveRecord(w *World, q query) (bool, error) {
	w.reportEffect(Effect{Verb: Applied, By: q.by})
	objects := &q.etcdCluster.Objects
	objects.Record, objects.Known = q.digests.Manifest, w.knownNodes(objects.Known)
	return w.Write(), nil
}

// knownNodes returns the names of the hosts' Nodes as the hosts report them. For hosts that do not answer, it keeps the
// former names.
func (w *World) knownNodes(before map[string]string) map[string]string {
	now := map[string]string{}
	for _, h := range w.Hosts {
		switch name, recorded := before[h.ID]; {
		case h.Outside:
		case h.Disk.Marker != nil && w.observeHost(h).Reach == observed.Reached:
			now[cmp.Or(h.Disk.Marker.ID, h.ID)] = h.Disk.Marker.Node
		case recorded:
			now[h.ID] = name
		}
	}
	return now
}

func deleteNode(w *World, q query) (bool, error) {
	if q.node == nil {
		return true, nil
	}
	owner := w.Host(q.in.NodeName)
	if owner != nil && owner.Disk.Marker == nil {
		owner = w.Host(q.by.Host) // a new machine has replaced the owner of the Node
	}
	w.reportEffect(Effect{Verb: NodeDeleted, By: q.by, Host: owner})
	q.etcdCluster.Objects.Nodes = slices.DeleteFunc(q.etcdCluster.Objects.Nodes, func(n *Node) bool {
		return n.Name == q.in.NodeName
	})
	return true, nil
}

// Unconfirmed returns the intent without the confirmation that a member is dead.
func Unconfirmed(in step.Intent) step.Intent {
	switch p := in.Params.(type) {
	case step.RemoveEtcdParams:
		p.Confirm = false
		in.Params = p
	case step.DeleteNodeParams:
		p.Confirm = false
		in.Params = p
	case step.ResetHostParams:
		in.Params = step.ResetHostParams{}
	}
	return in
}

func nodeReady(w *World, q query) (bool, error) {
	n, want := q.node, step.ParamsOf[step.NodeReadyParams](q.in)
	if n == nil {
		return false, nil
	}
	if !metaEqual(n, want) {
		w.reportEffect(Effect{Verb: Labelled, By: q.by, Host: w.Host(n.Name)})
		n.Labels, n.Annotations = mergeKeys(n.Labels, want.Labels), mergeKeys(n.Annotations, want.Annotations)
		for _, t := range want.Taints {
			if !slices.Contains(n.Taints, t.Key) {
				n.Taints = append(n.Taints, t.Key)
			}
		}
	}
	return n.Ready, nil
}

func metaEqual(n *Node, want step.NodeReadyParams) bool {
	return maps.Equal(n.Labels, mergeKeys(n.Labels, want.Labels)) &&
		maps.Equal(n.Annotations, mergeKeys(n.Annotations, want.Annotations)) &&
		!slices.ContainsFunc(want.Taints, func(t taint) bool { return !slices.Contains(n.Taints, t.Key) })
}

// mergeKeys returns have with the changes of want. A key that ends in "-" is removed.
func mergeKeys(have, want map[string]string) map[string]string {
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

// drainNode cordons the Node, then evicts one pod after the other. After the timeout, the remaining pods decide the
// result.
func drainNode(w *World, q query) (bool, error) {
	n := q.node
	if n == nil {
		return true, nil
	}
	h := w.Host(n.Name)
	how := step.ParamsOf[step.DrainNodeParams](q.in)
	if !n.Cordoned {
		if most := how.MaxUnavailable; most > 0 && !w.Flaws.NoRoom && q.etcdCluster.Objects.closedWorkers() >= most {
			return false, nil // retry
		}
		w.reportEffect(Effect{Verb: Cordoned, By: q.by, Host: h})
		n.Cordoned, n.CordonedBy, q.call.Began = true, q.by.Run, w.Now
		return false, nil
	}
	late := w.Now-q.call.Began > int64(max(how.TimeoutSeconds, 1))
	empty, err := w.evictPod(q.etcdCluster, h, n.Name, q.by, late && how.OnTimeout == step.ForceOnTimeout)
	if err == nil || !late {
		return empty, nil
	}
	return false, err
}

// uncordonNode uncordons the Node if a run cordoned it.
func uncordonNode(w *World, q query) (bool, error) {
	w.Uncordon(q.by, q.in.NodeName)
	return true, nil
}

// Uncordon uncordons the Node if a run cordoned it and the API is reachable.
func (w *World) Uncordon(by Author, node string) bool {
	if !w.APIReached() {
		return false
	}
	n := w.EtcdCluster().Objects.Node(node)
	if n == nil || !n.Cordoned || n.CordonedBy == "" && !w.Flaws.OpenAll {
		return false
	}
	w.reportEffect(Effect{Verb: Uncordoned, By: by, Host: w.Host(node)})
	n.Cordoned, n.CordonedBy = false, ""
	return true
}

// removeMember removes a member through another one that operators reach.
func removeMember(w *World, q query) (bool, error) {
	via := w.etcdVia()
	if via == nil {
		return false, nil
	}
	r, _ := w.memberOf(via)
	i := slices.IndexFunc(r.Members, func(m Member) bool {
		return m.Hex() == step.ParamsOf[step.RemoveEtcdParams](q.in).Member
	})
	switch {
	case i < 0:
		return true, nil
	case !w.Serving(via):
		return false, nil
	}
	w.reportEffect(Effect{Verb: Removed, By: q.by, Host: w.HostOf(r, r.Members[i].ID), Member: r.Members[i].ID})
	return true, w.removeFromEtcd(r, r.Members[i].ID)
}

// memberAnswers reports whether the member answers through that host.
func (w *World) memberAnswers(via *Host, r *EtcdCluster, m Member) bool {
	h := w.HostOf(r, m.ID)
	return h != nil && h.Run.Etcd && via.Linked(h)
}

// etcdVia returns the host of a voting member that operators reach, a serving one first, or nil.
func (w *World) etcdVia() *Host {
	var other *Host
	for _, h := range w.Hosts {
		if !h.ControlPlane || h.Outside || !h.Reached() || h.Disk.AdminCA == 0 {
			continue
		}
		if w.Voting(h) {
			return h
		}
		if _, m := w.memberOf(h); m != nil && !m.Learner && other == nil {
			other = h
		}
	}
	return other
}

// Keep records what a step or, without a step, the run itself has applied.
func (w *World) Keep(by Author, manifest string, addons, nodes map[string]string) {
	if by.Step != "" {
		w.reportEffect(Effect{Verb: Applied, By: by})
	}
	o := &w.EtcdCluster().Objects
	o.Record, o.Known, o.Addons = manifest, nodes, maps.Clone(addons)
}
