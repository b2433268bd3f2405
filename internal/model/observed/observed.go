// Package observed holds the value types of what is: the probes' answer about hosts, the API and etcd. It does no I/O.
//
// Unknown is never absent: every fact that decides anything has a value for "not known" (its zero value), and what
// cannot be known is left at it. docs/facts.md lists the facts, how each is found, and what it means when unknown.
package observed

import (
	"fmt"
	"slices"
	"time"
)

// World is all that one round of probes found out.
type World struct {
	Hosts map[string]Host `json:"hosts"` // by desired.Host.ID; a host that was not asked has no entry
	API   API             `json:"api"`
	Etcd  Etcd            `json:"etcd"`
}

// Tri is yes, no, or not known.
type Tri string

// The values of Tri. The zero value is Unknown.
const (
	Unknown Tri = ""
	Yes     Tri = "yes"
	No      Tri = "no"
)

// Of returns Yes or No.
func Of(b bool) Tri {
	if b {
		return Yes
	}
	return No
}

// Reach is whether a host answered.
type Reach string

// The values of Reach. The zero value, NotAsked, is as good as unreachable.
const (
	NotAsked    Reach = ""
	Reached     Reach = "reached"
	Unreachable Reach = "unreachable" // no answer: refused, timed out, no route, no such name
	Denied      Reach = "denied"      // answered, but login, host key or sudo failed
)

// ClassHanging is the class of a host that took a connection, or not even that, and said nothing until the time for the
// handshake was up.
const ClassHanging = "hanging"

// OtherKey is an SSH host key that is shown in place of known ones.
type OtherKey struct {
	Name    string   `json:"name"`    // whose: as it is called where another key is accepted
	Known   []string `json:"known"`   // "SHA256:... (file:line)"
	Offered string   `json:"offered"` // "SHA256:..."
}

// ControllerFiles is what a control-plane host has for the controllers, by its own word.
type ControllerFiles struct {
	// Image is the name of their image and its digest, with a space between, as it was imported last.
	Image string `json:"image,omitempty"`
	// Bundles are the sizes of bundles, in bytes, by their names.
	Bundles map[string]int64 `json:"bundles,omitempty"`
}

// Host is what one host said. All but ID, Reach, Problem, Class, FirstContact and OtherKeys are zero
// unless Reach is Reached.
type Host struct {
	ID      string `json:"id"`
	Reach   Reach  `json:"reach"`
	Problem string `json:"problem,omitempty"` // why it was not reached
	// Class is the class of Problem, one of host's error classes ("unreachable", "auth", "hostkey", "sudo", "config",
	// "lost", "exit"), or ClassHanging.
	Class string `json:"class,omitempty"`
	// fingerprint of a host key that nobody has approved yet; with bastions, all such, ", " between
	FirstContact string `json:"firstContact,omitempty"`
	// OtherKeys are the keys on the way to the host, its own and its bastions', that are not the known ones: refused
	// where Reach is Denied, else accepted.
	OtherKeys []OtherKey `json:"otherKeys,omitempty"`

	Hostname  string        `json:"hostname,omitempty"` // of a host that did not say it: its Node's, by the record
	MachineID string        `json:"machineID,omitempty"`
	BootID    string        `json:"bootID,omitempty"`
	OS        OS            `json:"os"`
	Arch      string        `json:"arch,omitempty"` // as Go names it
	Kernel    string        `json:"kernel,omitempty"`
	CPUs      int           `json:"cpus,omitempty"`
	MemoryMiB int           `json:"memoryMiB,omitempty"`
	DiskMiB   int           `json:"diskMiB,omitempty"` // free below /var/lib
	ClockSkew time.Duration `json:"clockSkew"`         // host's clock less the operator's, nanoseconds
	Addresses []string      `json:"addresses,omitempty"`
	Swaps     []string      `json:"swaps,omitempty"`        // devices and files in use as swap: at most 16
	Tools     []string      `json:"missingTools,omitempty"` // those of kubeadm's preflight that are missing
	Unguarded []string      `json:"unguarded,omitempty"`    // what the guard after a recovery needs and is missing
	Firewalls []Firewall    `json:"firewalls,omitempty"`    // active ones, and those that we switched off
	Ports     []Port        `json:"ports,omitempty"`        // of ours, those taken, and by whom
	// Cgroups is the version of control groups, 1 or 2; 0 if that is not known.
	Cgroups int `json:"cgroups,omitempty"`
	// SwapAllowed and CgroupV1Allowed report whether an operator's own setting, in a drop-in of the kubelet's
	// configuration or a flag, lets the kubelet start with swap in use, and with control groups v1.
	SwapAllowed     bool `json:"swapAllowed,omitempty"`
	CgroupV1Allowed bool `json:"cgroupV1Allowed,omitempty"`
	// CNIFiles are the names of CNI configuration in /etc/cni/net.d, sorted: at most 32.
	CNIFiles []string `json:"cniFiles,omitempty"`
	// OtherKubernetes are the units of other Kubernetes distributions, and of CRI-O, that run or start at boot.
	OtherKubernetes []string `json:"otherKubernetes,omitempty"`
	// Impostors are the ports at which a component of this host tells how it is, and a process of another user than
	// root listens: Process is the component, which counts as not well.
	Impostors []Port `json:"impostors,omitempty"`

	Containerd Unit `json:"containerd"`
	Kubelet    Unit `json:"kubelet"`
	Healthz    Tri  `json:"kubeletHealthz,omitempty"` // the kubelet's own /healthz
	// installed version by name: kubeadm, kubectl, runc, ...
	Binaries map[string]string `json:"binaries,omitempty"`

	// ControllerFiles is what a control-plane host has for the controllers.
	ControllerFiles ControllerFiles `json:"controllerFiles,omitzero"`

	// Marker is our own note on the host; nil if there is none.
	Marker *Marker `json:"marker,omitempty"`

	KubeletConf Tri `json:"kubeletConf,omitempty"` // /etc/kubernetes/kubelet.conf exists
	// the client certificate that kubelet.conf names is there and not empty
	KubeletCert Tri      `json:"kubeletCert,omitempty"`
	AdminConf   Tri      `json:"adminConf,omitempty"`
	PKI         Tri      `json:"pki,omitempty"`       // /etc/kubernetes/pki/ca.key exists
	EtcdData    Tri      `json:"etcdData,omitempty"`  // /var/lib/etcd/member exists
	Manifests   []string `json:"manifests,omitempty"` // static pods' files without extension: "kube-apiserver"
	// "sha256:…" of the cluster CA's public key, as kubeadm's --discovery-token-ca-cert-hash
	CAHash string `json:"caHash,omitempty"`
	// AdminCA is the same of the CA in its admin.conf, where that is not the one that is known to be the cluster's:
	// nothing is asked through the host then.
	AdminCA       string `json:"adminCA,omitempty"`
	Endpoint      string `json:"endpoint,omitempty"`      // the server named in kubelet.conf
	AdminEndpoint string `json:"adminEndpoint,omitempty"` // the server named in admin.conf
	// APINames are the names and addresses in its API server's certificate; nil if there is none, or it is not
	// known.
	APINames []string `json:"apiNames,omitempty"`

	// Control-plane components, from the host itself. Unknown on workers.
	APIServer         Tri `json:"apiServer,omitempty"` // /readyz of this host's own
	ControllerManager Tri `json:"controllerManager,omitempty"`
	Scheduler         Tri `json:"scheduler,omitempty"`
	EtcdHealth        Tri `json:"etcdHealth,omitempty"` // the local member's /readyz
	// Versions of static pods, from their images; "" if that says none.
	APIServerVersion         string `json:"apiServerVersion,omitempty"`
	ControllerManagerVersion string `json:"controllerManagerVersion,omitempty"`
	SchedulerVersion         string `json:"schedulerVersion,omitempty"`
	// EtcdLost is what its etcd said of its data when it could not start with it, in its own words; "" when it said
	// nothing of that sort, or is well.
	EtcdLost string `json:"etcdLost,omitempty"`

	// Encryption is how its API server stores Secrets; nil if it is told nothing of that, and on workers.
	Encryption *Encryption `json:"encryption,omitempty"`

	// Authorities are what a control-plane host has of those who sign, by name: those of Authorities().
	Authorities  map[string]Authority `json:"authorities,omitempty"`
	Certificates []Certificate        `json:"certificates,omitempty"`
	// Digests are what our last step on this host left: the sha256 of the configuration by name; drift is a difference.
	Digests map[string]string `json:"digests,omitempty"`
	// Credentials are those for registries and proxies that are not on the host as the caller has them, sorted.
	Credentials []Credential `json:"credentials,omitempty"`
	// Edited are paths of files that our last step made, and that are others now, or gone.
	Edited []string `json:"edited,omitempty"`
	// Restorable are those of them of which the host has kept what they were.
	Restorable []string `json:"restorable,omitempty"`
	// PodEdits say of those of them that are static pods what is other there, by path, as far as that is known: names
	// of flags ("--audit-log-path") and of fields ("cpu"), mounts and images ("mountPath: /etc/audit"). Values of flags
	// are not among them.
	PodEdits map[string][]string `json:"podEdits,omitempty"`
	// Exposed are files with keys that others than root may read or change: at most 32.
	Exposed []FileAccess `json:"exposed,omitempty"`
	// Upgrading is the version to which an upgrade of the host has begun and not ended; "" is none.
	Upgrading string `json:"turn,omitempty"`
	// HooksOwed are what has been done to the host and whose hooks have not all succeeded since: "upgrade".
	HooksOwed []string `json:"hooksOwed,omitempty"`

	Step *Step `json:"step,omitempty"` // a step of ours that runs right now
	Lock *Lock `json:"lock,omitempty"`
	// Unwritable says why nothing can be written below /var/lib/kubeone, so that the host cannot be locked: "its file
	// system is read-only"; "" if it can be, or that is not known.
	Unwritable string `json:"unwritable,omitempty"`
	// Kept are directories in which a reset, a repair or a recovery has kept what it took away: at most 64.
	Kept []string `json:"kept,omitempty"`
}

// SaysControlPlane reports whether the host says that it is one of the control plane, or that it has what only those
// have.
func (h Host) SaysControlPlane() bool {
	return h.EtcdData == Yes || slices.Contains(h.Manifests, "kube-apiserver") ||
		h.Marker != nil && h.Marker.Role == "control-plane"
}

// FirewallNames returns those of the firewalls that are known.
func FirewallNames() []string { return []string{"ufw", "firewalld"} }

// Firewall is a firewall that is active on a host, or that a step of ours has switched off.
type Firewall struct {
	Name string `json:"name"` // one of FirewallNames
	// Ours says that it has the rules that our last step on this host added, and all of them.
	Ours bool `json:"ours,omitempty"`
	Off  bool `json:"off,omitempty"` // a step of ours has switched it off
}

// OS is the host's distribution, from /etc/os-release.
type OS struct {
	ID        string `json:"id,omitempty"`
	VersionID string `json:"versionID,omitempty"`
	Name      string `json:"name,omitempty"`
}

// Port is a TCP port that something listens on.
type Port struct {
	Number  int    `json:"number"`
	Process string `json:"process,omitempty"`
	User    int    `json:"user,omitempty"` // uid of whom it runs as; 0 is root, or is not known
}

// FileAccess is who may read and change a file.
type FileAccess struct {
	Path string `json:"path"`
	Mode string `json:"mode"`           // octal, as stat prints it: "644"
	User int    `json:"user,omitempty"` // uid of its owner
}

// String returns the file and what is wrong with its access: "/etc/kubernetes/admin.conf (mode 0644, owner 1000)".
func (f FileAccess) String() string {
	if f.User == 0 {
		return fmt.Sprintf("%s (mode %04s)", f.Path, f.Mode)
	}
	return fmt.Sprintf("%s (mode %04s, owner %d)", f.Path, f.Mode, f.User)
}

// Unit is a systemd unit and the program it runs.
type Unit struct {
	Installed bool   `json:"installed"`
	Version   string `json:"version,omitempty"` // of the program, without v
	Enabled   bool   `json:"enabled"`
	Active    bool   `json:"active"`
	// systemd's ActiveState/SubState; "" when systemd did not answer: nothing is known
	State string `json:"state,omitempty"`
	Since string `json:"since,omitempty"` // systemd's ActiveEnterTimestampMonotonic: same value, same start
}

// Known reports whether systemd said anything of the unit, be it that there is none.
func (u Unit) Known() bool { return u.State != "" }

// Marker is the file with which a host says whose it is.
type Marker struct {
	Cluster string `json:"cluster"`
	Role    string `json:"role"`
	// ID is the host's identity, and Derived says that no manifest gave it; "" on hosts that were installed before
	// there were IDs. Node is the name of the Node that the host joins as; "" likewise.
	ID       string `json:"id,omitempty"`
	Derived  bool   `json:"derivedID,omitempty"`
	Node     string `json:"node,omitempty"`
	Machine  string `json:"machine,omitempty"` // "namespace/name" of the Machine that has it; "": the manifest has it
	RunID    string `json:"runID,omitempty"`
	Complete bool   `json:"complete"` // the host finished joining; false: an installation of ours that has not ended
	// Fenced is the run of a recovery that stopped etcd and API server here and moved their data aside, or that began
	// to restore them here and has not finished; empty otherwise.
	Fenced string `json:"fenced,omitempty"`
	// Restoring says that the cluster was to begin again on this host.
	Restoring bool `json:"restoring,omitempty"`
	// Epoch counts the recoveries of the cluster as of this host's join: a complete control-plane host of a lower epoch
	// than another's holds the data of the cluster's life before.
	Epoch int `json:"epoch,omitempty"`
}

// Certificate is one certificate of /etc/kubernetes.
type Certificate struct {
	Name      string    `json:"name"`               // "apiserver", "etcd/server", "kubelet-client", "ca"
	NotBefore time.Time `json:"notBefore,omitzero"` // of one that kubeadm signed, perhaps that of its authority
	NotAfter  time.Time `json:"notAfter"`
	Signer    string    `json:"signer,omitempty"`  // common name of who signed it; "" if it is none that is shown
	Expired   bool      `json:"expired,omitempty"` // by the host's own clock, when it was asked
	Soon      bool      `json:"soon,omitempty"`    // it expires within 30 days, by the same clock
	// Left is how long it was still valid, by the same clock, nanoseconds; 0 of an expired one, or where that is not
	// known.
	Left time.Duration `json:"left,omitempty"`
}

// Step is a step of ours that runs on a host as a transient unit.
type Step struct {
	Unit  string `json:"unit"`
	RunID string `json:"runID,omitempty"`
	Stage string `json:"stage,omitempty"`
}

// Lock is the lock of an operator on a host.
type Lock struct {
	Holder     string    `json:"holder"` // user@machine
	RunID      string    `json:"runID"`
	Generation int64     `json:"generation"`
	Since      time.Time `json:"since"`
	Live       bool      `json:"live"` // its holder was heard of within the last seconds
}
