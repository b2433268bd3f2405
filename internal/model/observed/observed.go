// Package observed holds the value types of the observed state: the probes' results for hosts, the API and etcd. It
// does no I/O.
//
// Unknown is never absent: every fact that decides anything has a value for "not known", which is its zero value.
// docs/facts.md lists the facts, how each is found, and what it means if unknown.
package observed

import (
	"fmt"
	"slices"
	"time"
)

// World is the result of one round of probes.
type World struct {
	Hosts map[string]Host `json:"hosts"` // by desired.Host.ID; a host that was not probed has no entry
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

// Reach says whether a host answered.
type Reach string

// The values of Reach. The zero value, NotAsked, counts as unreachable.
const (
	NotAsked    Reach = ""
	Reached     Reach = "reached"
	Unreachable Reach = "unreachable" // no answer: refused, timed out, no route, no such name
	Denied      Reach = "denied"      // answered, but login, host key or sudo failed
)

// ClassHanging is the class of a host that sent nothing until the handshake timed out, whether or not it accepted a
// connection.
const ClassHanging = "hanging"

// OtherKey is an SSH host key that a host presents instead of the known ones.
type OtherKey struct {
	Name    string   `json:"name"`    // of the host, as --accept-host-key takes it
	Known   []string `json:"known"`   // "SHA256:... (file:line)"
	Offered string   `json:"offered"` // "SHA256:..."
}

// ControllerFiles is what a control-plane host has for the controllers, as the host reports it.
type ControllerFiles struct {
	// Image is the name and digest of the last imported image of the controllers, separated by a space.
	Image string `json:"image,omitempty"`
	// Bundles holds the sizes of bundles, in bytes, by name.
	Bundles map[string]int64 `json:"bundles,omitempty"`
}

// Host is what one host said. Unless Reach is Reached, all fields are zero except ID, Reach, Problem, Class,
// FirstContact and OtherKeys.
type Host struct {
	ID      string `json:"id"`
	Reach   Reach  `json:"reach"`
	Problem string `json:"problem,omitempty"` // why it was not reached
	// Class is the class of Problem, one of host's error classes ("unreachable", "auth", "hostkey", "sudo", "config",
	// "lost", "exit"), or ClassHanging.
	Class string `json:"class,omitempty"`
	// FirstContact is the fingerprint of a host key that is not approved yet; with bastions, all of them, ", " between.
	FirstContact string `json:"firstContact,omitempty"`
	// OtherKeys lists the keys on the way to the host, its own and its bastions', that differ from the known ones. They
	// were refused if Reach is Denied, else accepted.
	OtherKeys []OtherKey `json:"otherKeys,omitempty"`

	Hostname  string        `json:"hostname,omitempty"` // for a host that did not say it: its Node's, from the record
	MachineID string        `json:"machineID,omitempty"`
	BootID    string        `json:"bootID,omitempty"`
	OS        OS            `json:"os"`
	Arch      string        `json:"arch,omitempty"` // as Go names it
	Kernel    string        `json:"kernel,omitempty"`
	CPUs      int           `json:"cpus,omitempty"`
	MemoryMiB int           `json:"memoryMiB,omitempty"`
	DiskMiB   int           `json:"diskMiB,omitempty"` // free space in /var/lib
	ClockSkew time.Duration `json:"clockSkew"`         // host's clock minus the operator's, nanoseconds
	Addresses []string      `json:"addresses,omitempty"`
	Swaps     []string      `json:"swaps,omitempty"`        // devices and files in use as swap: at most 16
	Tools     []string      `json:"missingTools,omitempty"` // tools of kubeadm's preflight that are missing
	Unguarded []string      `json:"unguarded,omitempty"`    // missing tools of the guard that a recovery installs
	Firewalls []Firewall    `json:"firewalls,omitempty"`    // active ones, and those that kubeone switched off
	Ports     []Port        `json:"ports,omitempty"`        // kubeone's ports that are taken, with the process
	// Cgroups is the version of cgroups, 1 or 2; 0 if not known.
	Cgroups int `json:"cgroups,omitempty"`
	// SwapAllowed and CgroupV1Allowed report whether an operator's own setting, in a drop-in of the kubelet's
	// configuration or a flag, lets the kubelet start with swap in use, or with cgroup v1.
	SwapAllowed     bool `json:"swapAllowed,omitempty"`
	CgroupV1Allowed bool `json:"cgroupV1Allowed,omitempty"`
	// CNIFiles lists the CNI configuration files in /etc/cni/net.d, sorted: at most 32.
	CNIFiles []string `json:"cniFiles,omitempty"`
	// OtherKubernetes lists the units of other Kubernetes distributions, and of CRI-O, that run or start at boot.
	OtherKubernetes []string `json:"otherKubernetes,omitempty"`
	// Impostors lists the ports of components' health checks where a process of a user other than root listens. Process
	// is the component, which counts as unhealthy.
	Impostors []Port `json:"impostors,omitempty"`

	Containerd Unit `json:"containerd"`
	Kubelet    Unit `json:"kubelet"`
	Healthz    Tri  `json:"kubeletHealthz,omitempty"` // the kubelet's own /healthz
	// Binaries holds the installed versions by name: kubeadm, kubectl, runc, ...
	Binaries map[string]string `json:"binaries,omitempty"`

	ControllerFiles ControllerFiles `json:"controllerFiles,omitzero"`

	// Marker is kubeone's marker on the host; nil if there is none.
	Marker *Marker `json:"marker,omitempty"`

	KubeletConf Tri `json:"kubeletConf,omitempty"` // /etc/kubernetes/kubelet.conf exists
	// KubeletCert reports whether the client certificate that kubelet.conf names exists and is not empty.
	KubeletCert Tri      `json:"kubeletCert,omitempty"`
	AdminConf   Tri      `json:"adminConf,omitempty"`
	PKI         Tri      `json:"pki,omitempty"`       // /etc/kubernetes/pki/ca.key exists
	EtcdData    Tri      `json:"etcdData,omitempty"`  // /var/lib/etcd/member exists
	Manifests   []string `json:"manifests,omitempty"` // static pods' files without extension: "kube-apiserver"
	// CAHash is "sha256:…" of the cluster CA's public key, like kubeadm's --discovery-token-ca-cert-hash.
	CAHash string `json:"caHash,omitempty"`
	// AdminCA is the same hash of the CA in its admin.conf, if that is not the cluster's known CA: then no request goes
	// through the host.
	AdminCA       string `json:"adminCA,omitempty"`
	Endpoint      string `json:"endpoint,omitempty"`      // the server named in kubelet.conf
	AdminEndpoint string `json:"adminEndpoint,omitempty"` // the server named in admin.conf
	// APINames lists the names and addresses in its API server certificate; nil if there is none, or it is not known.
	APINames []string `json:"apiNames,omitempty"`

	// Control-plane components, from the host itself. Unknown on workers.
	APIServer         Tri `json:"apiServer,omitempty"` // /readyz of this host's own API server
	ControllerManager Tri `json:"controllerManager,omitempty"`
	Scheduler         Tri `json:"scheduler,omitempty"`
	EtcdHealth        Tri `json:"etcdHealth,omitempty"` // the local member's /readyz
	// Versions of static pods, from their images; "" if an image has no version.
	APIServerVersion         string `json:"apiServerVersion,omitempty"`
	ControllerManagerVersion string `json:"controllerManagerVersion,omitempty"`
	SchedulerVersion         string `json:"schedulerVersion,omitempty"`
	// EtcdLost is what its etcd logged about its data when it could not start with it; "" if it logged nothing of the
	// kind, or is healthy.
	EtcdLost string `json:"etcdLost,omitempty"`

	// Encryption is how its API server stores Secrets; nil without a configuration, and on workers.
	Encryption *Encryption `json:"encryption,omitempty"`

	// Authorities is a control-plane host's state of each authority, by name: those of Authorities().
	Authorities  map[string]Authority `json:"authorities,omitempty"`
	Certificates []Certificate        `json:"certificates,omitempty"`
	// Digests holds what the last step on this host noted: the sha256 of each configuration, by name. A difference is
	// drift.
	Digests map[string]string `json:"digests,omitempty"`
	// StoppedTimers lists the addons among Digests that are timers and do not run.
	StoppedTimers []string `json:"stoppedTimers,omitempty"`
	// Credentials lists the credentials for registries and proxies that differ from the caller's, sorted.
	Credentials []Credential `json:"credentials,omitempty"`
	// Edited lists files of the last step that have changed since, or are missing.
	Edited []string `json:"edited,omitempty"`
	// Restorable lists those of Edited whose original content the host has kept.
	Restorable []string `json:"restorable,omitempty"`
	// PodEdits holds the known changes to the static pods among Edited, by path: names of flags ("--audit-log-path")
	// and fields ("cpu"), mounts and images ("mountPath: /etc/audit"), but not values of flags.
	PodEdits map[string][]string `json:"podEdits,omitempty"`
	// Exposed lists files with keys that users other than root can read or change: at most 32.
	Exposed []FileAccess `json:"exposed,omitempty"`
	// Upgrading is the target version of an upgrade of the host that has begun and not ended; "" is none.
	Upgrading string `json:"turn,omitempty"`
	// HooksOwed lists the activities on the host whose hooks have not all succeeded since: "upgrade".
	HooksOwed []string `json:"hooksOwed,omitempty"`

	Step *Step `json:"step,omitempty"` // the step that is running now
	Lock *Lock `json:"lock,omitempty"`
	// Unwritable says why nothing can be written in /var/lib/kubeone, so that the host cannot be locked: "its file
	// system is read-only"; "" if it is writable, or that is not known.
	Unwritable string `json:"unwritable,omitempty"`
	// Kept lists directories with what a reset, repair or recovery moved aside: at most 64.
	Kept []string `json:"kept,omitempty"`
}

// SaysControlPlane reports whether the host claims to be of the control plane, or has what only such hosts have.
func (h Host) SaysControlPlane() bool {
	return h.EtcdData == Yes || slices.Contains(h.Manifests, "kube-apiserver") ||
		h.Marker != nil && h.Marker.Role == "control-plane"
}

// FirewallNames returns the names of the known firewalls.
func FirewallNames() []string { return []string{"ufw", "firewalld"} }

// Firewall is a firewall that is active on a host, or that kubeone has switched off.
type Firewall struct {
	Name string `json:"name"` // one of FirewallNames
	// Ours says that it has all the rules of the last step on this host.
	Ours bool `json:"ours,omitempty"`
	Off  bool `json:"off,omitempty"` // kubeone has switched it off
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
	User    int    `json:"user,omitempty"` // uid of its process; 0 is root, or not known
}

// FileAccess says who can read and change a file.
type FileAccess struct {
	Path string `json:"path"`
	Mode string `json:"mode"`           // octal, from stat: "644"
	User int    `json:"user,omitempty"` // uid of its owner
}

// String returns the file and its access: "/etc/kubernetes/admin.conf (mode 0644, owner 1000)".
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
	// State is systemd's ActiveState/SubState; "" if systemd did not answer: nothing is known.
	State string `json:"state,omitempty"`
	Since string `json:"since,omitempty"` // systemd's ActiveEnterTimestampMonotonic: same value, same start
}

// Known reports whether systemd reported the unit, including that it does not exist.
func (u Unit) Known() bool { return u.State != "" }

// Marker is the file on a host with its cluster and identity.
type Marker struct {
	Cluster string `json:"cluster"`
	Role    string `json:"role"`
	// ID is the host's identity, and Derived says that no manifest gave it; "" on hosts installed before IDs existed.
	// Node is the name under which the host joins as a Node; "" likewise.
	ID       string `json:"id,omitempty"`
	Derived  bool   `json:"derivedID,omitempty"`
	Node     string `json:"node,omitempty"`
	Machine  string `json:"machine,omitempty"` // "namespace/name" of its Machine; "" for a host of the manifest
	RunID    string `json:"runID,omitempty"`
	Complete bool   `json:"complete"` // the host finished joining; false: an unfinished installation
	// Fenced is the run of a recovery that stopped etcd and API server here and moved their data aside, or that began
	// to restore them here and has not finished; else empty.
	Fenced string `json:"fenced,omitempty"`
	// Restoring says that a recovery restores the cluster on this host first.
	Restoring bool `json:"restoring,omitempty"`
	// Epoch is the number of the cluster's recoveries when this host joined. A complete control-plane host with a lower
	// epoch than another's holds data from before a recovery.
	Epoch int `json:"epoch,omitempty"`
}

// Certificate is one certificate of /etc/kubernetes.
type Certificate struct {
	Name      string    `json:"name"`               // "apiserver", "etcd/server", "kubelet-client", "ca"
	NotBefore time.Time `json:"notBefore,omitzero"` // kubeadm's certificates may have that of their CA
	NotAfter  time.Time `json:"notAfter"`
	Signer    string    `json:"signer,omitempty"`  // common name of its signer; "" if the host does not report one
	Expired   bool      `json:"expired,omitempty"` // by the host's own clock, at the time of the probe
	Soon      bool      `json:"soon,omitempty"`    // it expires within 30 days, by the same clock
	// Left is its remaining validity, by the same clock, nanoseconds; 0 if it is expired, or that is not known.
	Left time.Duration `json:"left,omitempty"`
}

// Step is a step that runs on a host as a transient unit.
type Step struct {
	Unit  string `json:"unit"`
	RunID string `json:"runID,omitempty"`
	Stage string `json:"stage,omitempty"`
}

// Lock is a run's lock on a host or on the cluster.
type Lock struct {
	Holder     string    `json:"holder"` // user@machine
	RunID      string    `json:"runID"`
	Generation int64     `json:"generation"`
	Since      time.Time `json:"since"`
	Live       bool      `json:"live"` // its holder was active within the last seconds
}
