package v1beta2

// Features configures additional features.
type Features struct {
	// CoreDNS configures the cluster's DNS server.
	CoreDNS *CoreDNS `json:"coreDNS,omitempty"`
	// AlwaysPullImages makes every new pod pull its images, so that the registry checks its credentials. This does not
	// work on a host that gets its images only from a bundle.
	AlwaysPullImages *Switch `json:"alwaysPullImages,omitempty"`
	// EventRateLimit limits how many events the API server accepts.
	EventRateLimit *AdmissionPlugin `json:"eventRateLimit,omitempty"`
	// PodNodeSelector limits the nodes for pods of a namespace. kubeone exempts kube-system and its own namespaces from
	// clusterDefaultNodeSelector.
	PodNodeSelector *AdmissionPlugin `json:"podNodeSelector,omitempty"`
	// PodSecurityPolicy is an error if enabled: Kubernetes 1.25 removed it. Deprecated: remove it.
	PodSecurityPolicy *Switch `json:"podSecurityPolicy,omitempty" carried:"no" security:"yes"`
	// StaticAuditLog writes an audit log to a file.
	StaticAuditLog *StaticAuditLog `json:"staticAuditLog,omitempty"`
	// WebhookAuditLog sends audit events to a server.
	WebhookAuditLog *WebhookAuditLog `json:"webhookAuditLog,omitempty"`
	// DynamicAuditLog is an error if enabled: Kubernetes 1.19 removed it. Deprecated: remove it.
	DynamicAuditLog *Switch `json:"dynamicAuditLog,omitempty" carried:"no" security:"yes"`
	// MetricsServer deploys metrics-server, which kubectl top and the HorizontalPodAutoscaler need.
	MetricsServer *MetricsServer `json:"metricsServer,omitempty"`
	// NodeLocalDNS deploys a DNS cache on every node.
	NodeLocalDNS *NodeLocalDNS `json:"nodeLocalDNS,omitempty"`
	// OpenIDConnect accepts tokens of an OpenID provider.
	OpenIDConnect *OpenIDConnect `json:"openidConnect,omitempty"`
	// AuthenticationConfiguration configures authentication of API requests, in place of openidConnect: several
	// providers, rules about claims, and anonymous requests.
	AuthenticationConfiguration *AuthenticationConfiguration `json:"authenticationConfiguration,omitempty"`
	// EncryptionProviders encrypts Secrets in etcd.
	EncryptionProviders *EncryptionProviders `json:"encryptionProviders,omitempty"`
}

// Switch turns a feature on or off.
type Switch struct {
	// Enable turns the feature on. Default: false.
	Enable bool `json:"enable,omitempty"`
}

// MetricsServer deploys metrics-server.
type MetricsServer struct {
	// Enable deploys metrics-server; false removes it. If unset, new clusters get it, and existing clusters stay as they
	// are.
	Enable *bool `json:"enable,omitempty"`
}

// CoreDNS configures the cluster's DNS server.
type CoreDNS struct {
	// Replicas is the number of DNS servers, at least 1. If unset, kubeone starts with 2 and keeps a number that you
	// scale to.
	Replicas *int32 `json:"replicas,omitempty"`
	// DeployPodDisruptionBudget creates a PodDisruptionBudget that lets drains evict one DNS server at a time; false
	// deletes it. If unset, kubeone creates none and keeps an existing one.
	DeployPodDisruptionBudget *bool `json:"deployPodDisruptionBudget,omitempty"`
	// ImageRepository is the repository of the image coredns, as host[:port][/path]: registry.example.com/dns means
	// registry.example.com/dns/coredns. It overrides overwriteRegistry. insecureRegistry applies only if the host is
	// the same. If unset, it is registry.k8s.io/coredns, or coredns below overwriteRegistry.
	ImageRepository string `json:"imageRepository,omitempty"`
}

// AdmissionPlugin configures an admission plugin.
type AdmissionPlugin struct {
	// Enable turns the plugin on. Default: false.
	Enable bool `json:"enable,omitempty"`
	// Config is the plugin's configuration.
	Config AdmissionPluginConfig `json:"config,omitzero"`
}

// AdmissionPluginConfig is the configuration of an admission plugin.
type AdmissionPluginConfig struct {
	// ConfigFilePath is a file on the operator's machine, relative to the manifest's folder.
	ConfigFilePath string `json:"configFilePath,omitempty"`
	// Configuration is the content of the file, instead of a path.
	Configuration string `json:"configuration,omitempty" lines:"yes"`
}

// StaticAuditLog writes an audit log to a file.
type StaticAuditLog struct {
	// Enable turns the audit log on. Default: false.
	Enable bool `json:"enable,omitempty"`
	// Config is the configuration.
	Config StaticAuditLogConfig `json:"config,omitzero"`
}

// StaticAuditLogConfig configures the audit log.
type StaticAuditLogConfig struct {
	// PolicyFilePath is an audit policy (Policy of audit.k8s.io/v1) on the operator's machine, relative to the
	// manifest's folder.
	PolicyFilePath string `json:"policyFilePath,omitempty"`
	// Policy is the content of the policy, instead of a path.
	Policy string `json:"policy,omitempty" lines:"yes"`
	// LogPath is the log file on the control-plane hosts. It needs a directory of its own. Default:
	// /var/log/kubernetes/audit.log.
	LogPath string `json:"logPath,omitempty"`
	// LogMaxAge is the number of days to keep old files. Default: 30.
	LogMaxAge int `json:"logMaxAge,omitempty"`
	// LogMaxBackup is the number of old files to keep. Default: 3.
	LogMaxBackup int `json:"logMaxBackup,omitempty"`
	// LogMaxSize is the size in megabytes that triggers rotation. Default: 100.
	LogMaxSize int `json:"logMaxSize,omitempty"`
}

// NodeLocalDNS is a DNS cache on every node.
type NodeLocalDNS struct {
	// Deploy deploys the cache; false removes it. If unset, new clusters get it, and existing clusters stay as they are.
	// It cannot be combined with clusterNetwork.cni.cilium.enableLocalRedirectPolicy.
	Deploy *bool `json:"deploy,omitempty"`
}

// OpenIDConnect accepts tokens of an OpenID provider.
type OpenIDConnect struct {
	// Enable turns it on. Default: false.
	Enable bool `json:"enable,omitempty"`
	// Config is the configuration.
	Config OpenIDConnectConfig `json:"config,omitzero"`
}

// OpenIDConnectConfig configures an OpenID provider.
type OpenIDConnectConfig struct {
	// IssuerURL is the provider's URL.
	IssuerURL string `json:"issuerUrl,omitempty"`
	// ClientID is the client ID that tokens must be issued for. Default: kubernetes.
	ClientID string `json:"clientId,omitempty"`
	// UsernameClaim is the claim that holds the user name. Default: sub.
	UsernameClaim string `json:"usernameClaim,omitempty"`
	// UsernamePrefix is the prefix of user names; "-" means none. Default: oidc:.
	UsernamePrefix string `json:"usernamePrefix,omitempty"`
	// GroupsClaim is the claim that holds the groups. Default: groups.
	GroupsClaim string `json:"groupsClaim,omitempty"`
	// GroupsPrefix is the prefix of groups; "-" means none. Default: oidc:.
	GroupsPrefix string `json:"groupsPrefix,omitempty"`
	// RequiredClaim is a claim=value pair that tokens must have.
	RequiredClaim string `json:"requiredClaim,omitempty"`
	// SigningAlgs are the accepted signature algorithms, separated by commas. Default: RS256.
	SigningAlgs string `json:"signingAlgs,omitempty"`
	// CAFile is the CA of the provider's certificate. An absolute path is a file on the hosts, in a directory that the
	// API server mounts (/etc/kubernetes/pki, /etc/ssl/certs, /etc/pki). Any other path is a file on the operator's
	// machine, relative to the manifest's folder.
	CAFile string `json:"caFile,omitempty"`
	// CA holds the CA certificates as PEM, instead of a path.
	CA string `json:"ca,omitempty" lines:"yes"`
}

// AuthenticationConfiguration configures authentication of API requests by a file.
type AuthenticationConfiguration struct {
	// Enable turns it on. Default: false.
	Enable bool `json:"enable,omitempty"`
	// Config names the file.
	Config AuthenticationConfigurationConfig `json:"config,omitzero"`
}

// AuthenticationConfigurationConfig names the file.
type AuthenticationConfigurationConfig struct {
	// ConfigFilePath is an AuthenticationConfiguration (apiserver.config.k8s.io/v1) on the operator's machine, relative
	// to the manifest's folder.
	ConfigFilePath string `json:"configFilePath,omitempty"`
	// Configuration is the content of the file, instead of a path.
	Configuration string `json:"configuration,omitempty" lines:"yes"`
}

// EncryptionProviders encrypts Secrets in etcd.
type EncryptionProviders struct {
	// Enable makes the API servers encrypt Secrets with a key that kubeone generates. Default: false.
	Enable bool `json:"enable,omitempty"`
	// CustomEncryptionConfiguration is your own EncryptionConfiguration, with its keys or with KMS.
	CustomEncryptionConfiguration string `json:"customEncryptionConfiguration,omitempty" carried:"no" secret:"true" security:"yes" lines:"yes"` //nolint:lll // tags
}
