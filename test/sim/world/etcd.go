package world

import (
	"fmt"
	"slices"
)

// EtcdCluster is one etcd cluster: a token, the members on which its quorum last agreed, and its writes.
type EtcdCluster struct {
	ID      int // also of its CA
	Members []Member
	Acked   int // newest acknowledged revision
	next    int // number of the last member
	Objects Objects
}

// Member is an entry of the etcd cluster's member list.
type Member struct {
	ID      int
	Name    string // empty until its first start
	Address string // in its peer URL
	Learner bool
}

// Hex returns the member's ID as etcd prints it.
func (m Member) Hex() string { return fmt.Sprintf("%x", 0xe7cd0000+m.ID) }

// findMember returns the member with that ID, or nil.
func (r *EtcdCluster) findMember(id int) *Member {
	for i := range r.Members {
		if r.Members[i].ID == id {
			return &r.Members[i]
		}
	}
	return nil
}

// memberAt returns the member with that address in its peer URL, or nil.
func (r *EtcdCluster) memberAt(address string) *Member {
	for i := range r.Members {
		if r.Members[i].Address == address {
			return &r.Members[i]
		}
	}
	return nil
}

// etcdCluster returns the etcd cluster with that ID.
func (w *World) etcdCluster(id int) *EtcdCluster {
	for _, r := range w.Rings {
		if r.ID == id {
			return r
		}
	}
	return nil
}

// memberOf returns the member that runs on the host, if any.
func (w *World) memberOf(h *Host) (*EtcdCluster, *Member) {
	if h.Disk.Data == nil || !h.Run.Etcd {
		return nil, nil
	}
	r := w.etcdCluster(h.Disk.Data.EtcdCluster)
	return r, r.findMember(h.Disk.Data.Member)
}

// HostOf returns the host whose disk has the member's data, or nil.
func (w *World) HostOf(r *EtcdCluster, id int) *Host {
	for _, h := range w.Hosts {
		if d := h.Disk.Data; d != nil && d.EtcdCluster == r.ID && d.Member == id {
			return h
		}
	}
	return nil
}

// Linked reports whether two hosts reach each other. A host always reaches itself.
func (h *Host) Linked(other *Host) bool {
	return h == other || !h.Split && !other.Split && h.Side == other.Side
}

// countHeard counts the etcd cluster's voters, and those that run within the host's reach, including its own.
func (w *World) countHeard(r *EtcdCluster, by *Host) (voters, heard int) {
	for i := range r.Members {
		if r.Members[i].Learner {
			continue
		}
		voters++
		if h := w.HostOf(r, r.Members[i].ID); h != nil && h.Run.Etcd && by.Linked(h) {
			heard++
		}
	}
	return voters, heard
}

// Quorum reports whether a majority of the etcd cluster's voters run and reach each other.
func (w *World) Quorum(r *EtcdCluster) bool {
	return r != nil && slices.ContainsFunc(w.Hosts, func(h *Host) bool {
		of, m := w.memberOf(h)
		return of == r && m != nil && !m.Learner && w.Serving(h)
	})
}

// Serving reports whether the host's member runs and hears from a quorum.
func (w *World) Serving(h *Host) bool {
	r, m := w.memberOf(h)
	if m == nil {
		return false
	}
	voters, heard := w.countHeard(r, h)
	return 2*heard > voters
}

// asksAPI reports whether the host reaches a working API server.
func (w *World) asksAPI(h *Host) bool {
	return !h.Split && slices.ContainsFunc(w.Hosts, func(other *Host) bool {
		return other.ControlPlane && h.Linked(other) && w.APIReady(other)
	})
}

// Voting reports whether the host's member serves and is not a learner.
func (w *World) Voting(h *Host) bool {
	_, m := w.memberOf(h)
	return m != nil && !m.Learner && w.Serving(h)
}

// Write writes once through an API server that answers, and reports whether it was acknowledged. Only a majority of the
// voters, those that are not slow, have the entry at once. The others get it when they catch up.
func (w *World) Write() bool {
	for _, h := range w.Hosts {
		if w.APIReady(h) {
			r, _ := w.memberOf(h)
			return w.commitEntry(r)
		}
	}
	return false
}

// commitEntry appends one entry to the logs of a majority.
func (w *World) commitEntry(r *EtcdCluster) bool {
	if !w.Quorum(r) {
		return false
	}
	voters, serving := 0, []*Host{}
	for i := range r.Members {
		if r.Members[i].Learner {
			continue
		}
		voters++
		if h := w.HostOf(r, r.Members[i].ID); h != nil && w.Serving(h) {
			serving = append(serving, h)
		}
	}
	next := w.newestRevision(r) + 1
	wrote := 0
	for _, slow := range []bool{false, true} {
		for _, h := range serving {
			if h.Slow == slow && wrote <= voters/2 {
				h.Disk.Data.Revision = next
				wrote++
			}
		}
	}
	r.Acked = max(r.Acked, next)
	return true
}

// newestRevision returns the newest revision of the serving members, which is that of an elected leader.
func (w *World) newestRevision(r *EtcdCluster) int {
	newest := 0
	for _, h := range w.Hosts {
		if d := h.Disk.Data; d != nil && d.EtcdCluster == r.ID && w.Serving(h) {
			newest = max(newest, d.Revision)
		}
	}
	return newest
}

// Newest returns the revision that a client reads now: the newest of the serving members. It returns false without a
// quorum.
func (w *World) Newest(r *EtcdCluster) (int, bool) { return w.newestRevision(r), w.Quorum(r) }

// catchUp copies missing entries to the serving members.
func (w *World) catchUp(r *EtcdCluster) {
	newest := w.newestRevision(r)
	for _, h := range w.Hosts {
		if d := h.Disk.Data; d != nil && d.EtcdCluster == r.ID && !h.Slow && w.Serving(h) {
			d.Revision = newest
		}
	}
}

// beginEtcd creates an etcd cluster with this host as its only member.
func (w *World) beginEtcd(h *Host, objects Objects, revision int) {
	r := &EtcdCluster{ID: len(w.Rings) + 1, next: 1, Objects: objects, Acked: revision}
	r.Members = []Member{{ID: r.ID*100 + 1, Name: h.Name, Address: h.Address}}
	w.Rings = append(w.Rings, r)
	h.Disk.Data = &Data{EtcdCluster: r.ID, Member: r.ID*100 + 1, Revision: revision}
}

// addLearner adds the host as a learner under etcd's conditions: a quorum, and one learner at a time.
func (w *World) addLearner(r *EtcdCluster, h *Host, by Author) error {
	for i := range r.Members {
		if r.Members[i].Learner {
			return errRefused("etcdserver: too many learner members in cluster")
		}
	}
	r.next++
	id := r.ID*100 + r.next
	w.reportEffect(Effect{Verb: Added, By: by, Host: h, Member: id})
	r.Members = append(r.Members, Member{ID: id, Address: h.Address, Learner: true})
	w.commitEntry(r)
	return nil
}

// removeFromEtcd removes a member under etcd's condition: a quorum.
func (w *World) removeFromEtcd(r *EtcdCluster, id int) error {
	if !w.Quorum(r) {
		return errRefused("etcdserver: no leader")
	}
	w.commitEntry(r)
	kept := r.Members[:0:0]
	for _, m := range r.Members {
		if m.ID != id {
			kept = append(kept, m)
		}
	}
	r.Members = kept
	return nil
}

// errRefused is a refusal by the cluster's own rules.
type errRefused string

// Error returns the refusal.
func (e errRefused) Error() string { return string(e) }
