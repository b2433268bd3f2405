// Package world is a cluster's simulated truth: machines with disks, units and containers, etcd with members,
// learners and a quorum, API servers, kubelets, Nodes and pods, as plain values that obey the rules of
// Kubernetes and etcd.
//
// The steps of a plan are carried out here by their intent, phase by phase (stage.go for what a host's script
// does, api.go for what goes through the API), and the world becomes what its rules make of that (settle.go).
// What probes would find is made by Observe. Everything is deterministic, and nothing here knows the packages
// that decide.
//
// Whatever a step changes is told to World.Watch as an Effect before it happens; the safety rules are checked
// there.
package world

import (
	"fmt"

	"kubeone/internal/model/desired"
)

// World is one cluster and its machines. It is not for concurrent use.
type World struct {
	Name  string
	Now   int64 // seconds
	Hosts []*Host
	Rings []*EtcdCluster // every etcd cluster that was ever begun, the newest last
	// Watch is told of every effect of a step before it happens; nil tells nobody.
	Watch func(Effect)
	// Flaws are rules of the world or of the scripts that are switched off, for tests that must find that out.
	Flaws Flaws
	// Version counts changes: as long as it is the same, the world is.
	Version  int
	wrote    int64 // when somebody last wrote a Secret
	settled  int   // the version that Settle has dealt with
	machines int
	// authorities counts the CAs of etcd that were made.
	authorities int
	want        desired.Cluster // whose names and addresses the hosts have
	// orders are what runs work for.
	orders map[string]Order
}

// Flaws are guards that are off.
type Flaws struct {
	NoFence   bool // a host runs steps of a lock that is not the latest
	NoBudget  bool // pods are deleted, not evicted
	WipeData  bool // preparing a host deletes the etcd data that it finds
	FreshInit bool // init begins a new etcd although there is data
	// HastyPromotion makes learners voters before they have started.
	HastyPromotion bool
	NoQuorum       bool // a host stops its etcd whatever the others do
	NoRoom         bool // a drain does not count the Nodes that other runs have closed
	OpenAll        bool // Nodes that a person closed are opened too
	Delete         bool // a reset deletes what it is to keep
	Anyhow         bool // a recovery stops members although they serve
	Forget         bool // a working directory is removed although another run has its lock
	NoOwner        bool // a host does not look whose it is
	Unwritten      bool // Secrets are not written again before a key is dropped, and nobody looks
	Untold         bool // etcd does not start anew when it is to trust another CA
}

// Host is a place for a machine: its name and address stay when the machine is replaced.
type Host struct {
	ID, Name, Address string
	ControlPlane      bool
	Outside           bool // the manifest does not have it
	Machine           int  // the machine that is there now; another number after a replacement
	Boots             int  // how often a machine here has stopped: no connection outlives that

	Up     bool // it runs
	Cut    bool // no operator reaches it
	Part   int  // 1, 2: only operators of odd, even number reach it; 0: all do
	Hidden bool // the operator that acts now does not reach it
	Split  bool // no other host reaches it
	Side   int  // only hosts of the same side reach it
	Full   bool // its disk is full
	Slow   bool // its steps get on slowly, its etcd lags

	Unready bool // its kubelet says that it is not ready, for a reason of its own

	FailNext bool // the next phase of a step fails
	FailAll  bool // every phase fails

	Disk Disk
	Run  Running
	Held *Keeper // the lock of an operator; nil when nobody has it
}

// Disk is what survives a restart.
type Disk struct {
	Marker *Marker
	CA     int // the CA whose keys are in /etc/kubernetes/pki; 0 is none
	// ClientCA is the CA under which kubelet.conf and admin.conf were made; 0 means that there are none.
	KubeletCA, AdminCA int
	Local              bool     // kubelet.conf names this host's own API server
	Dials, Admin       string   // the endpoint that kubelet.conf, and admin.conf, name
	Names              []string // for which the API server's certificate was made
	Data               *Data    // /var/lib/etcd
	Aside              []Data
	AsideCA            []int

	Kubelet     string   // the version that is linked as the kubelet in use; "" is none
	Fetched     []string // versions whose binaries and images are there
	Enabled     bool     // containerd and kubelet start with the machine
	Etcd        bool     // its manifest is there
	API         string   // the version in the API server's manifest; "" is none
	Keys, Told  []string // for Secrets: of the patch, and of the API server's manifest; nil: none
	KeysGone    bool     // they were deleted
	Authority   Authority
	Controllers bool     // the manifests of controller manager and scheduler are there
	Expired     bool     // the certificates of its control plane and of its kubelet
	Lost        string   // the version of the API server whose manifest was deleted
	Owed        []string // what has hooks to follow that have not all succeeded
	Upgrading   string   // the version to which an upgrade has begun; "" is none
	Digest      string   // of the configuration that the last step noted
	Settings    string   // the digest of the configuration that the kubelet's own file is of; "" is none
	Edited      bool     // the kubelet's configuration is somebody else's, and ours is kept beside it
	Snapshots   []int    // revisions
	Restored    bool     // a restore that has not ended has put its data in place

	Generation int64   // of the lock
	Result     *Result // of the last step
}

// Lacks reports whether a member has lost something of what makes it one, although all may still be running: its
// kubelet.conf, the manifest of a static pod, etcd's data, its own configuration, or certificates that are valid.
func (h *Host) Lacks() bool {
	d := &h.Disk
	return d.Expired || d.Edited || d.KubeletCA == 0 ||
		h.ControlPlane && (!d.Etcd || d.API == "" || !d.Controllers || d.Data == nil)
}

// Marker says whose the host is, and what it has joined as.
type Marker struct {
	Cluster  string
	Complete bool
	Role     desired.Role
	ID, Node string
	Machine  string // the UID of the Machine that has the host; empty: the manifest has it
	// Fenced is the recovery that took the host out of service, Restoring whether the cluster begins anew on it,
	// and Epoch how often the cluster had been recovered when the host joined.
	Fenced    string
	Restoring bool
	Epoch     int
}

// Data is etcd's data directory.
type Data struct {
	EtcdCluster, Member int
	Revision            int // the newest entry of its log
}

// Result is how the last step on the host ended; Code is its exit status.
type Result struct {
	Run, Step string
	Code      int
}

// Running is what a restart ends.
type Running struct {
	Containerd, Kubelet bool
	KubeletVersion      string // of the kubelet that runs
	Registered          bool   // this kubelet has made its Node
	Edited              bool   // it was started with somebody else's configuration
	Etcd                bool
	API                 string   // the version of the API server that runs; "" is none
	Told                []string // its keys for Secrets
	Trusts              []string // whom its etcd trusts
	Unit                *Unit
}

// Keeper is the lock of a run on a host.
type Keeper struct {
	Run  string
	Beat int64 // when its holder was last heard of
}

// StaleAfter is after how many seconds of silence a lock may be taken.
const StaleAfter = 20

// New is the world of the manifest's hosts, all bare and running.
func New(want desired.Cluster) *World {
	w := &World{Name: want.Name, want: want}
	for _, h := range want.Hosts() {
		w.machines++
		w.Hosts = append(w.Hosts, &Host{
			ID: h.ID, Name: h.Hostname, Address: h.PrivateAddress, ControlPlane: h.Role == desired.ControlPlane,
			Machine: w.machines, Up: true,
		})
	}
	return w
}

// Host is the host with that ID or name; nil when there is none.
func (w *World) Host(name string) *Host {
	for _, h := range w.Hosts {
		if h.ID == name || h.Name == name {
			return h
		}
	}
	return nil
}

// EtcdCluster is the etcd cluster that counts: the newest. It is nil before there is one.
func (w *World) EtcdCluster() *EtcdCluster {
	if len(w.Rings) == 0 {
		return nil
	}
	return w.Rings[len(w.Rings)-1]
}

// Reached reports whether the operator that acts now reaches the host.
func (h *Host) Reached() bool { return h.Up && !h.Cut && !h.Hidden }

// Has reports whether the binaries and images of that version are on the host.
func (d *Disk) Has(version string) bool {
	for _, v := range d.Fetched {
		if v == version {
			return true
		}
	}
	return false
}

// Holds reports whether the host holds data of a cluster.
func (d *Disk) Holds() bool { return d.CA != 0 || d.KubeletCA != 0 || d.AdminCA != 0 || d.Data != nil }

// Joined reports whether the host finished joining.
func (d *Disk) Joined() bool { return d.Marker != nil && d.Marker.Complete }

// String is the host in a trace.
func (h *Host) String() string {
	state := "up"
	switch {
	case !h.Up:
		state = "down"
	case h.Cut:
		state = "cut"
	}
	etcd := "-"
	if d := h.Disk.Data; d != nil {
		etcd = fmt.Sprintf("%d@%d", d.Member, d.Revision)
	}
	return fmt.Sprintf("%s %s joined=%v etcd=%s/%v api=%s kubelet=%s/%v", h.Name, state, h.Disk.Joined(), etcd,
		h.Run.Etcd, h.Run.API, h.Run.KubeletVersion, h.Run.Kubelet)
}
