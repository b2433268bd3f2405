// Package desired holds the value types of the desired state: a validated Cluster with defaults, made from a manifest,
// Terraform's output and the digests of its Kubernetes version's artifacts. It does no I/O, so that decide and plan,
// which read it, cannot either.
package desired

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Cluster is everything that the operator desires of one cluster, with defaults filled in.
type Cluster struct {
	Name              string   `json:"name"`
	KubernetesVersion string   `json:"kubernetesVersion"` // without the leading v: "1.36.3"
	Endpoint          Endpoint `json:"endpoint"`
	Network           Network  `json:"network"`

	// ControlPlane and Workers keep the order of the manifest. A new cluster begins on the control-plane host marked
	// IsLeader, else on the first.
	ControlPlane []Host `json:"controlPlane"`
	Workers      []Host `json:"workers,omitempty"`

	Containerd      Containerd      `json:"containerd"`
	Proxy           Proxy           `json:"proxy"`
	Registry        Registry        `json:"registry"`
	Logging         Logging         `json:"logging"`
	Kubelet         Kubelet         `json:"kubelet"`
	TLSCipherSuites TLSCipherSuites `json:"tlsCipherSuites"`
	Components      Components      `json:"components"`
	Extras          []Extra         `json:"extras,omitempty"`   // of the control plane's components
	CABundle        string          `json:"caBundle,omitempty"` // PEM; public certificates, not a secret
	// EncryptSecrets makes the API servers encrypt Secrets in etcd.
	EncryptSecrets bool                 `json:"encryptSecrets,omitempty"`
	Certificates   Certificates         `json:"certificates"`
	Preflight      Preflight            `json:"preflight"`
	Artifacts      map[string]Artifacts `json:"artifacts,omitempty"` // by ArtifactsKey; see ArtifactsFor

	// Hardening is HardeningBaseline, HardeningNone, or "" for a cluster where it was never set, which is like
	// HardeningNone but leaves no note. If the manifest does not set it, it is "" until decide.Hardening determines it.
	Hardening string `json:"hardening,omitempty"`
	// Firewall says what happens to the hosts' firewalls: FirewallManage, FirewallDisable or FirewallIgnore.
	Firewall string `json:"firewall,omitempty"`
	// NoAuditLog removes the audit log from the baseline.
	NoAuditLog bool `json:"noAuditLog,omitempty"`

	Upgrade Upgrade `json:"upgrade"`
	Backup  Backup  `json:"backup"`
	Hooks   []Hook  `json:"hooks,omitempty"`

	// MetricsServer says whether metrics-server runs in the cluster; false removes it. If the manifest does not say, it
	// is nil until decide.DefaultAddons; then nil leaves the cluster as it is.
	MetricsServer *bool `json:"metricsServer,omitempty"`
	// NodeLocalDNS likewise says whether every host has a DNS cache.
	NodeLocalDNS *bool `json:"nodeLocalDNS,omitempty"`
	// EmbeddedAddons lists the other addons of kubeone that the manifest names.
	EmbeddedAddons []string `json:"embeddedAddons,omitempty"`
	// HostAddons lists the addons of the manifest that are timers on hosts.
	HostAddons []HostAddon `json:"hostAddons,omitempty"`
	// ReplacedAddons lists the addons of kubeone that the operator has replaced with custom addons of the same names.
	ReplacedAddons []string `json:"replacedAddons,omitempty"`

	// WorkloadImages is a digest (hex) of the images in bundles that pods of addons and Helm releases use; "" if there are
	// none. Hosts get these images before the pods start.
	WorkloadImages string `json:"workloadImages,omitempty"`
	// ExternalCloud is the provider in the manifest whose controller manager initializes the Nodes; "" if there is none.
	ExternalCloud string `json:"externalCloud,omitempty"`

	// Controllers are the controllers of Machines to run in the cluster; nil if they are not desired, or stay as they
	// are.
	Controllers *Controllers `json:"controllers,omitempty"`

	// Objects says that the desired state is a Cluster and its Machines, which ClusterAddon stores in the cluster.
	Objects bool `json:"objects,omitempty"`

	// NoControllers says that the controllers must not run in the cluster; they are removed.
	NoControllers bool `json:"noControllers,omitempty"`
	// MachineDeployments are created if they do not exist.
	MachineDeployments []MachineDeployment `json:"machineDeployments,omitempty"`

	// NotCarriedOut lists the fields set in the manifest that this version ignores, as paths.
	NotCarriedOut []string `json:"notCarriedOut,omitempty"`
	// SecurityNotCarriedOut lists those of NotCarriedOut that make the cluster less safe than the manifest intends.
	SecurityNotCarriedOut []string `json:"securityNotCarriedOut,omitempty"`
	// Digest is the sha256 (hex) of the manifest without secrets. The order and the IDs of its hosts do not matter.
	// Equal digests describe the same cluster.
	Digest string `json:"digest"`
}

// Network configures the cluster's networks, and the routing of Services and pods.
type Network struct {
	PodSubnet        string `json:"podSubnet"`        // default 10.244.0.0/16
	ServiceSubnet    string `json:"serviceSubnet"`    // default 10.96.0.0/12
	NodeCIDRMaskSize int    `json:"nodeCIDRMaskSize"` // default 24

	// The IPv6 networks of a dual-stack cluster; zero in an IPv4 cluster.
	PodSubnetIPv6        string `json:"podSubnetIPv6,omitempty"`        // default fd01::/48
	ServiceSubnetIPv6    string `json:"serviceSubnetIPv6,omitempty"`    // default fd02::/120
	NodeCIDRMaskSizeIPv6 int    `json:"nodeCIDRMaskSizeIPv6,omitempty"` // default 64

	IPFamily      string    `json:"ipFamily"`      // default IPv4
	DNSDomain     string    `json:"dnsDomain"`     // default cluster.local
	NodePortRange string    `json:"nodePortRange"` // default 30000-32767
	CNI           CNI       `json:"cni"`
	KubeProxy     KubeProxy `json:"kubeProxy"`
	DNS           DNS       `json:"dns,omitzero"`
}

// ExternalCNI is a network plugin that kubeone does not deploy.
const ExternalCNI = "external"

// CNI is the network plugin.
type CNI struct {
	Name string `json:"name"` // its field in the manifest's clusterNetwork.cni
	// Version is the version of the plugin, without v; "" for ExternalCNI.
	Version string `json:"version,omitempty"`
	MTU     int    `json:"mtu,omitempty"`
	// Supported lists the possible network plugins: those that this program deploys, each as an addon of its name, and
	// ExternalCNI.
	Supported []string `json:"supported,omitempty"`
	// Files lists the plugin's own configuration files in /etc/cni/net.d; none for ExternalCNI.
	Files []string `json:"files,omitempty"`
	// Ports lists the ports at which the plugin reaches other hosts.
	Ports    []PortRange `json:"ports,omitempty"`
	Features CNIFeatures `json:"features,omitzero"`
	// Values are the manifest's own values for the chart of the plugin. They may contain secrets.
	Values map[string]any `json:"-"`
	// Releases lists the plugins among Supported that are Helm releases, of their name in NetworkNamespace.
	Releases []string `json:"releases,omitempty"`
}

// NetworkNamespace is the namespace of the Helm release of a network plugin.
const NetworkNamespace = "kube-system"

// CNIFeatures are what a network plugin does in addition to the pod network.
type CNIFeatures struct {
	ReplacesKubeProxy bool `json:"replacesKubeProxy,omitempty"`
	Hubble            bool `json:"hubble,omitempty"` // an overview of the traffic
	L2Announcements   bool `json:"l2Announcements,omitempty"`
	GatewayAPI        bool `json:"gatewayAPI,omitempty"`
	LocalRedirects    bool `json:"localRedirects,omitempty"` // allows local redirect policies
}

// IsRelease reports whether the Helm release with that key, "namespace/name", is a network plugin of this program.
func (c CNI) IsRelease(key string) bool {
	name, found := strings.CutPrefix(key, NetworkNamespace+"/")
	return found && slices.Contains(c.Releases, name)
}

// CarriedOut reports whether kubeone can make a cluster with this network plugin.
func (c CNI) CarriedOut() bool { return slices.Contains(c.Supported, c.Name) }

// Deployed returns the network plugins that this program deploys.
func (c CNI) Deployed() []string {
	return slices.DeleteFunc(slices.Clone(c.Supported), func(name string) bool { return name == ExternalCNI })
}

// KubeProxy configures how Services are routed on the hosts.
type KubeProxy struct {
	Skip      bool       `json:"skip,omitempty"`
	Mode      string     `json:"mode"` // iptables (default), ipvs, nftables
	IPVS      *IPVS      `json:"ipvs,omitempty"`
	Conntrack *Conntrack `json:"conntrack,omitempty"` // nil: kube-proxy's own defaults
}

// IPVS holds kube-proxy's ipvs settings, with durations in its notation ("10s").
type IPVS struct {
	Scheduler     string   `json:"scheduler,omitempty"`
	ExcludeCIDRs  []string `json:"excludeCIDRs,omitempty"`
	StrictARP     bool     `json:"strictARP,omitempty"`
	TCPTimeout    string   `json:"tcpTimeout,omitempty"`
	TCPFinTimeout string   `json:"tcpFinTimeout,omitempty"`
	UDPTimeout    string   `json:"udpTimeout,omitempty"`
}

// Conntrack holds kube-proxy's table sizes; 0 leaves the kernel's setting as it is.
type Conntrack struct {
	MaxPerCore int `json:"maxPerCore"`
	Min        int `json:"min"`
}

// Role is the role of a host.
type Role string

// The roles of hosts.
const (
	ControlPlane Role = "control-plane"
	Worker       Role = "worker"
)

// Host is one machine of the manifest.
type Host struct {
	// ID is the host's identity in plans, probes and records: opaque, and stable as long as the machine is the host.
	// The manifest gives it (HasOwnID); else it is derived once, from the address of the first installation.
	ID       string `json:"id"`
	HasOwnID bool   `json:"-"` // the manifest gives the ID
	// Machine is the "namespace/name" of the host's Machine, whose UID is the ID; "" for a host in the manifest.
	Machine        string            `json:"machine,omitempty"`
	Role           Role              `json:"role"`
	PublicAddress  string            `json:"publicAddress"`
	PrivateAddress string            `json:"privateAddress"`
	IPv6Addresses  []string          `json:"ipv6Addresses,omitempty"`
	Hostname       string            `json:"hostname,omitempty"` // "" means the host's own
	IsLeader       bool              `json:"isLeader,omitempty"`
	Labels         map[string]string `json:"labels,omitempty"` // a key that ends in "-" is removed
	Annotations    map[string]string `json:"annotations,omitempty"`
	// Taints are by default, on the control plane, node-role.kubernetes.io/control-plane:NoSchedule.
	Taints   []Taint  `json:"taints"`
	Kubelet  Kubelet  `json:"kubelet"`
	Versions Versions `json:"versions,omitzero"`
	SSH      SSH      `json:"ssh"`
}

// OwnerLabel on a Node holds the UID of its Machine, which is the host's ID.
const OwnerLabel = "machine-controller/owned-by"

// Names returns all names and addresses that the manifest gives the host.
func (h Host) Names() []string {
	var out []string
	for _, name := range append([]string{h.PublicAddress, h.PrivateAddress, h.Hostname}, h.IPv6Addresses...) {
		if name != "" {
			out = append(out, name)
		}
	}
	return out
}

// Versions holds versions set for one host, without a leading v. The zero value sets none.
type Versions struct {
	Kubernetes string `json:"kubernetes,omitempty"` // of the kubelet; "" is the cluster's
	Containerd string `json:"containerd,omitempty"` // "" is any: the one that comes with an installation or upgrade
}

// Taint is a taint of a Node.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"`
}

// SSH says how to reach a host. Zero values are not set in the manifest: ~/.ssh/config and defaults apply.
type SSH struct {
	Port                 int    `json:"port,omitempty"`
	User                 string `json:"user,omitempty"`
	KeyFile              string `json:"keyFile,omitempty"`
	CertFile             string `json:"certFile,omitempty"`
	AgentSocket          string `json:"agentSocket,omitempty"`
	HostPublicKey        string `json:"hostPublicKey,omitempty"` // base64 of the wire format
	Bastion              string `json:"bastion,omitempty"`
	BastionPort          int    `json:"bastionPort,omitempty"`
	BastionUser          string `json:"bastionUser,omitempty"`
	BastionHostPublicKey string `json:"bastionHostPublicKey,omitempty"`
	BastionKeyFile       string `json:"bastionKeyFile,omitempty"`
}

// Containerd configures the container runtime.
type Containerd struct {
	SandboxImage string              `json:"sandboxImage,omitempty"` // "" means the release's own pause image
	Registries   map[string]Mirrored `json:"registries,omitempty"`   // by registry host, "*" for all
	// DeviceOwnershipFromSecurityContext is containerd's setting with that name.
	DeviceOwnershipFromSecurityContext bool `json:"deviceOwnershipFromSecurityContext,omitempty"`
}

// Mirrored says where images of one registry come from, without credentials, which are secrets.
type Mirrored struct {
	Mirrors            []string `json:"mirrors,omitempty"`
	OverridePath       bool     `json:"overridePath,omitempty"`
	InsecureSkipVerify bool     `json:"insecureSkipVerify,omitempty"`
	HasAuth            bool     `json:"hasAuth,omitempty"`
}

// Proxy is the HTTP proxy of the hosts.
type Proxy struct {
	HTTP    string `json:"http,omitempty"`
	HTTPS   string `json:"https,omitempty"`
	NoProxy string `json:"noProxy,omitempty"` // with the cluster's own networks added
	HasAuth bool   `json:"hasAuth,omitempty"` // a URL includes a user, which is a secret
}

// Registry replaces the registry of all images.
type Registry struct {
	Overwrite string `json:"overwrite,omitempty"`
	Insecure  bool   `json:"insecure,omitempty"`
}

// Logging configures the rotation of container logs.
type Logging struct {
	MaxSize  string `json:"maxSize"`  // default 100Mi
	MaxFiles int    `json:"maxFiles"` // default 5
}

// Kubelet holds the kubelet's settings, of the cluster or of one host, whose set fields win. Zero means "not set".
type Kubelet struct {
	SystemReserved              map[string]string `json:"systemReserved,omitempty"`
	KubeReserved                map[string]string `json:"kubeReserved,omitempty"`
	EvictionHard                map[string]string `json:"evictionHard,omitempty"`
	MaxPods                     *int32            `json:"maxPods,omitempty"`
	PodPidsLimit                *int64            `json:"podPidsLimit,omitempty"`
	ImageGCHighThresholdPercent *int32            `json:"imageGCHighThresholdPercent,omitempty"`
	ImageGCLowThresholdPercent  *int32            `json:"imageGCLowThresholdPercent,omitempty"`
	ImageMinimumGCAge           string            `json:"imageMinimumGCAge,omitempty"`
	ImageMaximumGCAge           string            `json:"imageMaximumGCAge,omitempty"`
}

// TLSCipherSuites holds the TLS 1.2 suites of each component; empty means its own defaults.
type TLSCipherSuites struct {
	APIServer []string `json:"apiServer,omitempty"`
	Etcd      []string `json:"etcd,omitempty"`
	Kubelet   []string `json:"kubelet,omitempty"`
}

// Components holds overrides of the control plane's flags and feature gates.
type Components struct {
	APIServer         Component     `json:"apiServer"`
	ControllerManager Component     `json:"controllerManager"`
	Scheduler         Component     `json:"scheduler"`
	Etcd              EtcdComponent `json:"etcd"`
}

// Component holds one component's overrides.
type Component struct {
	Flags        map[string]string `json:"flags,omitempty"`
	FeatureGates map[string]bool   `json:"featureGates,omitempty"`
}

// EtcdComponent tunes etcd; zero means etcd's own default.
type EtcdComponent struct {
	QuotaBackendBytes       int64  `json:"quotaBackendBytes,omitempty"`
	AutoCompactionRetention string `json:"autoCompactionRetention,omitempty"`
	AutoCompactionMode      string `json:"autoCompactionMode,omitempty"`
}

// Certificates sets how long certificates are valid, as Go durations; "" means kubeadm's own (8760h, 87600h).
type Certificates struct {
	ValidityPeriod   string `json:"validityPeriod,omitempty"`
	CAValidityPeriod string `json:"caValidityPeriod,omitempty"`
}

// Preflight lists the kubeadm preflight errors to ignore on these hosts.
type Preflight struct {
	IgnoreErrors []string `json:"ignoreErrors,omitempty"`
}

// NetworkDigest is the name of the configuration that never changes: the cluster's subnets and DNS domain.
const NetworkDigest = "network"

// CredentialsConfiguration is the name of the hosts' credentials for registries and proxies. It has no digest, because
// a password's digest would help to guess it.
const CredentialsConfiguration = "credentials"

// SwapConfiguration is the name of the setting that swap is off. It has no digest: a host with swap in use differs.
const SwapConfiguration = "swap"

// ComponentsDigest is the name of the configuration of etcd, API server, controller manager and scheduler.
const ComponentsDigest = "components"

// Hosts returns all hosts, control plane first, in the manifest's order.
func (c *Cluster) Hosts() []Host {
	return append(append(make([]Host, 0, len(c.ControlPlane)+len(c.Workers)), c.ControlPlane...), c.Workers...)
}

// Host returns the host with that ID, else the first with that address or hostname, and whether there is one. The
// address of a moved host may be another host's ID.
func (c *Cluster) Host(name string) (Host, bool) {
	if name == "" {
		return Host{}, false
	}
	for _, is := range []func(*Host) bool{
		func(h *Host) bool { return h.ID == name },
		func(h *Host) bool { return hasName(h.Names(), name) },
	} {
		for _, hosts := range [][]Host{c.ControlPlane, c.Workers} {
			for i := range hosts {
				if is(&hosts[i]) {
					return hosts[i], true
				}
			}
		}
	}
	return Host{}, false
}

// HostsByID returns all hosts by ID.
func (c *Cluster) HostsByID() map[string]Host {
	out := make(map[string]Host, len(c.ControlPlane)+len(c.Workers))
	for _, h := range c.Hosts() {
		if _, known := out[h.ID]; !known {
			out[h.ID] = h
		}
	}
	return out
}

// KubeletVersion returns the version of the host's kubelet, without a leading v.
func (c *Cluster) KubeletVersion(h Host) string {
	return cmp.Or(h.Versions.Kubernetes, c.KubernetesVersion)
}

// Leader returns the control-plane host where a new cluster begins: the one marked as leader, else the first.
func (c *Cluster) Leader() Host {
	for _, h := range c.ControlPlane {
		if h.IsLeader {
			return h
		}
	}
	return c.ControlPlane[0]
}

// MachineDeployment is a MachineDeployment to create. Once created, it belongs to its users.
type MachineDeployment struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Object    string `json:"object"` // as JSON
}

// kubeadmValidity is kubeadm's default validity of certificates.
const kubeadmValidity = 365 * 24 * time.Hour

// Validity returns how long new certificates are valid.
func (c Certificates) Validity() time.Duration {
	if d, err := time.ParseDuration(c.ValidityPeriod); err == nil && d > 0 {
		return d
	}
	return kubeadmValidity
}
