// Package world is the simulated truth about a cluster: machines with disks, units and containers, etcd with members,
// learners and a quorum, API servers, kubelets, Nodes and pods. They are plain values that obey the rules of Kubernetes
// and etcd.
//
// Steps of a plan are carried out by their intent, phase by phase (stage.go for scripts on hosts, api.go for requests
// to the API), and Settle then applies the rules (settle.go). Observe returns what probes would find. Everything is
// deterministic, and independent of the packages that decide.
//
// World.Watch gets every change by a step as an Effect before it happens. The safety rules are checked there.
package world

import (
	"fmt"

	"kubeone/internal/model/desired"
)

// World is one cluster with its machines. It is not safe for concurrent use.
type World struct {
	Name  string
	Now   int64 // seconds
	Hosts []*Host
	Rings []*EtcdCluster // every etcd cluster so far, the newest last
	// Watch is called with every effect of a step before it happens. Nil disables it.
	Watch func(Effect)
	// Flaws are disabled rules of the world or of the scripts, for tests that must find the violation.
	Flaws Flaws
	// Version counts changes. The world is unchanged while it is equal.
	Version  int
	wrote    int64 // time of the last write of a Secret
	settled  int   // the version after the last Settle
	machines int
	// authorities counts the CAs of etcd that were created.
	authorities int
	want        desired.Cluster // the source of the hosts' names and addresses
	// orders are the goals of runs.
	orders map[string]Order
}

// Flaws are guards that are off.
type Flaws struct {
	NoFence   bool // a host runs steps of an outdated lock
	NoBudget  bool // pods are deleted, not evicted
	WipeData  bool // preparing a host deletes existing etcd data
	FreshInit bool // init starts a new etcd despite existing data
	// HastyPromotion makes learners voters before they have started.
	HastyPromotion bool
	NoQuorum       bool // a host stops its etcd whatever the state of the others
	NoRoom         bool // a drain ignores Nodes that other runs have cordoned
	OpenAll        bool // Nodes that a person cordoned are uncordoned too
	Delete         bool // a reset deletes what it should keep
	Anyhow         bool // a recovery stops serving members
	Forget         bool // a working directory is removed although another run has its lock
	NoOwner        bool // a host does not check its owner
	Unwritten      bool // Secrets are not rewritten before a key is dropped, and not checked
	Untold         bool // etcd does not restart to trust another CA
}

// Host is a place for a machine. Its name and address stay when the machine is replaced.
type Host struct {
	ID, Name, Address string
	ControlPlane      bool
	Outside           bool // not in the manifest
	Machine           int  // number of the current machine; changes with a replacement
	Boots             int  // number of stops; each one ends all connections

	Up     bool // it runs
	Cut    bool // no operator reaches it
	Part   int  // 1: only odd operators reach it, 2: only even ones, 0: all
	Hidden bool // the acting operator does not reach it
	Split  bool // no other host reaches it
	Side   int  // only hosts of the same side reach it
	Full   bool // its disk is full
	Slow   bool // its steps and its etcd are slow

	Unready bool // its kubelet reports that it is not ready, for its own reason

	FailNext bool // the next phase of a step fails
	FailAll  bool // every phase fails

	Disk Disk
	Run  Running
	Held *Keeper // an operator's lock, or nil
}

// Disk is what survives a restart.
type Disk struct {
	Marker *Marker
	CA     int // the CA whose keys are in /etc/kubernetes/pki, or 0
	// KubeletCA and AdminCA are the CAs of kubelet.conf and admin.conf, or 0 without the file.
	KubeletCA, AdminCA int
	Local              bool     // kubelet.conf names this host's own API server
	Dials, Admin       string   // the endpoints in kubelet.conf and admin.conf
	Names              []string // the names in the API server's certificate
	Data               *Data    // /var/lib/etcd
	Aside              []Data
	AsideCA            []int

	Kubelet     string   // the version of the active kubelet, or ""
	Fetched     []string // versions with binaries and images here
	Enabled     bool     // containerd and kubelet start at boot
	Etcd        bool     // its manifest exists
	API         string   // the version in the API server's manifest, or ""
	Keys, Told  []string // keys for Secrets, in the patch and in the API server's manifest
	KeysGone    bool     // they were deleted
	Authority   Authority
	Controllers bool     // the manifests of controller manager and scheduler exist
	Expired     bool     // the certificates of its control plane and of its kubelet
	Lost        string   // the version of the API server whose manifest was deleted
	Owed        []string // activities with pending hooks
	Upgrading   string   // the version of a begun upgrade, or ""
	Digest      string   // of the configuration that the last step recorded
	Settings    string   // the configuration digest of the kubelet's own file, or ""
	Edited      bool     // the kubelet's configuration was edited, and kubeone's is kept beside it
	Snapshots   []int    // revisions
	Restored    bool     // an unfinished restore has put its data in place

	Generation int64   // of the lock
	Result     *Result // of the last step
}

// Lacks reports whether a member has lost a part of its state, although everything may still be running: its
// kubelet.conf, a static pod's manifest, etcd's data, its own configuration, or valid certificates.
func (h *Host) Lacks() bool {
	d := &h.Disk
	return d.Expired || d.Edited || d.KubeletCA == 0 ||
		h.ControlPlane && (!d.Etcd || d.API == "" || !d.Controllers || d.Data == nil)
}

// Marker contains the host's owner and the role with which it joined.
type Marker struct {
	Cluster  string
	Complete bool
	Role     desired.Role
	ID, Node string
	Machine  string // UID of the Machine that owns the host; empty for the manifest
	// Fenced is the recovery that took the host out of service. Restoring means that the cluster restarts on it. Epoch
	// is the number of recoveries before the host joined.
	Fenced    string
	Restoring bool
	Epoch     int
}

// Data is etcd's data directory.
type Data struct {
	EtcdCluster, Member int
	Revision            int // newest entry of its log
}

// Result is the result of the last step on the host. Code is its exit status.
type Result struct {
	Run, Step string
	Code      int
}

// Running is the state that a reboot ends.
type Running struct {
	Containerd, Kubelet bool
	KubeletVersion      string // version of the running kubelet
	Registered          bool   // this kubelet has created its Node
	Edited              bool   // it started with an edited configuration
	Etcd                bool
	API                 string   // version of the running API server, or ""
	Told                []string // its keys for Secrets
	Trusts              []string // keys that its etcd trusts
	Unit                *Unit
}

// Keeper is the lock of a run on a host.
type Keeper struct {
	Run  string
	Beat int64 // time of its holder's last heartbeat
}

// StaleAfter is the silence in seconds after which a lock may be taken.
const StaleAfter = 20

// New returns the world of the manifest's hosts, all bare and running.
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

// Host returns the host with that ID or name, or nil.
func (w *World) Host(name string) *Host {
	for _, h := range w.Hosts {
		if h.ID == name || h.Name == name {
			return h
		}
	}
	return nil
}

// EtcdCluster returns the current etcd cluster, which is the newest, or nil.
func (w *World) EtcdCluster() *EtcdCluster {
	if len(w.Rings) == 0 {
		return nil
	}
	return w.Rings[len(w.Rings)-1]
}

// Reached reports whether the acting operator reaches the host.
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

// String describes the host for a trace.
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
