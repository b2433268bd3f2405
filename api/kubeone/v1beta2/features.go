package v1beta2

// Features is additional features of the cluster.
type Features struct {
	// CoreDNS configures the cluster's DNS server.
	CoreDNS *CoreDNS `json:"coreDNS,omitempty"`
	// AlwaysPullImages has every new pod pull its images, which so checks its credentials for them. A host that gets
	// images from a bundle alone has no registry to pull them from.
	AlwaysPullImages *Switch `json:"alwaysPullImages,omitempty"`
	// EventRateLimit limits how many events the API server takes.
	EventRateLimit *AdmissionPlugin `json:"eventRateLimit,omitempty"`
	// PodNodeSelector limits the nodes on which pods of a namespace run. Those of kube-system and of the program's
	// own namespaces are exempt from clusterDefaultNodeSelector.
	PodNodeSelector *AdmissionPlugin `json:"podNodeSelector,omitempty"`
	// PodSecurityPolicy was removed from Kubernetes in 1.25: enabled, it is an error. Deprecated: remove it.
	PodSecurityPolicy *Switch `json:"podSecurityPolicy,omitempty" carried:"no" security:"yes"`
	// StaticAuditLog has the API server write an audit log to a file.
	StaticAuditLog *StaticAuditLog `json:"staticAuditLog,omitempty"`
	// WebhookAuditLog has the API server send its audit events to a server.
	WebhookAuditLog *WebhookAuditLog `json:"webhookAuditLog,omitempty"`
	// DynamicAuditLog was removed from Kubernetes in 1.19: enabled, it is an error. Deprecated: remove it.
	DynamicAuditLog *Switch `json:"dynamicAuditLog,omitempty" carried:"no" security:"yes"`
	// MetricsServer installs metrics-server.
	MetricsServer *Switch `json:"metricsServer,omitempty" carried:"no"`
	// NodeLocalDNS installs a DNS cache on every node.
	NodeLocalDNS *NodeLocalDNS `json:"nodeLocalDNS,omitempty" carried:"no"`
	// OpenIDConnect has the API server accept an OpenID provider's tokens.
	OpenIDConnect *OpenIDConnect `json:"openidConnect,omitempty"`
	// AuthenticationConfiguration says how the API server finds out who asks, in place of openidConnect: several
	// providers, rules about claims, and for what nobody in particular may ask.
	AuthenticationConfiguration *AuthenticationConfiguration `json:"authenticationConfiguration,omitempty"`
	// EncryptionProviders encrypts Secrets in etcd.
	EncryptionProviders *EncryptionProviders `json:"encryptionProviders,omitempty"`
}

// Switch is a feature that is on or off.
type Switch struct {
	// Enable switches it on. Default: false.
	Enable bool `json:"enable,omitempty"`
}

// CoreDNS configures the cluster's DNS server.
type CoreDNS struct {
	// Replicas is how many DNS servers there are, at least 1. Not set: 2, or as many as somebody has scaled them to.
	Replicas *int32 `json:"replicas,omitempty"`
	// DeployPodDisruptionBudget has a PodDisruptionBudget that lets drains take away one DNS server at a time. Not set:
	// none is made, and one that is there stays; false takes it away.
	DeployPodDisruptionBudget *bool `json:"deployPodDisruptionBudget,omitempty"`
	// ImageRepository is where the image coredns is, as host[:port][/path]: registry.example.com/dns has it as
	// registry.example.com/dns/coredns. It goes before overwriteRegistry, and only with the same host insecureRegistry
	// is about it. Not set: registry.k8s.io/coredns, or coredns below overwriteRegistry.
	ImageRepository string `json:"imageRepository,omitempty"`
}

// AdmissionPlugin is an admission plugin with a configuration file.
type AdmissionPlugin struct {
	// Enable switches it on. Default: false.
	Enable bool `json:"enable,omitempty"`
	// Config is its configuration.
	Config AdmissionPluginConfig `json:"config,omitzero"`
}

// AdmissionPluginConfig is an admission plugin's configuration.
type AdmissionPluginConfig struct {
	// ConfigFilePath is its configuration file on the operator's machine, relative to the manifest's folder.
	ConfigFilePath string `json:"configFilePath,omitempty"`
	// Configuration is the file's content, in its place.
	Configuration string `json:"configuration,omitempty" lines:"yes"`
}

// StaticAuditLog is an audit log that is written to a file.
type StaticAuditLog struct {
	// Enable switches it on. Default: false.
	Enable bool `json:"enable,omitempty"`
	// Config is its configuration.
	Config StaticAuditLogConfig `json:"config,omitzero"`
}

// StaticAuditLogConfig configures the audit log.
type StaticAuditLogConfig struct {
	// PolicyFilePath is the audit policy, a Policy of audit.k8s.io/v1, on the operator's machine, relative to the
	// manifest's folder.
	PolicyFilePath string `json:"policyFilePath,omitempty"`
	// Policy is that file's content, in its place.
	Policy string `json:"policy,omitempty" lines:"yes"`
	// LogPath is the log file on the control-plane hosts, in a directory of its own. Default:
	// /var/log/kubernetes/audit.log.
	LogPath string `json:"logPath,omitempty"`
	// LogMaxAge is how many days old files are kept. Default: 30.
	LogMaxAge int `json:"logMaxAge,omitempty"`
	// LogMaxBackup is how many old files are kept. Default: 3.
	LogMaxBackup int `json:"logMaxBackup,omitempty"`
	// LogMaxSize is the size in megabytes at which the file is rotated. Default: 100.
	LogMaxSize int `json:"logMaxSize,omitempty"`
}

// NodeLocalDNS is a DNS cache on every node.
type NodeLocalDNS struct {
	// Deploy installs it.
	Deploy *bool `json:"deploy,omitempty"`
}

// OpenIDConnect is an OpenID provider.
type OpenIDConnect struct {
	// Enable switches it on. Default: false.
	Enable bool `json:"enable,omitempty"`
	// Config is its configuration.
	Config OpenIDConnectConfig `json:"config,omitzero"`
}

// OpenIDConnectConfig configures an OpenID provider.
type OpenIDConnectConfig struct {
	// IssuerURL is the provider's URL.
	IssuerURL string `json:"issuerUrl,omitempty"`
	// ClientID is the client that tokens must be issued for. Default: kubernetes.
	ClientID string `json:"clientId,omitempty"`
	// UsernameClaim is the claim with the user's name. Default: sub.
	UsernameClaim string `json:"usernameClaim,omitempty"`
	// UsernamePrefix is put before the user's name; "-" means nothing is. Default: oidc:.
	UsernamePrefix string `json:"usernamePrefix,omitempty"`
	// GroupsClaim is the claim with the user's groups. Default: groups.
	GroupsClaim string `json:"groupsClaim,omitempty"`
	// GroupsPrefix is put before each group; "-" means nothing is. Default: oidc:.
	GroupsPrefix string `json:"groupsPrefix,omitempty"`
	// RequiredClaim is a claim=value that tokens must have.
	RequiredClaim string `json:"requiredClaim,omitempty"`
	// SigningAlgs is the accepted signature algorithms, separated by commas. Default: RS256.
	SigningAlgs string `json:"signingAlgs,omitempty"`
	// CAFile is the authority of the provider's certificate: an absolute path is one on the hosts, in a directory that
	// the API server has mounted (/etc/kubernetes/pki, /etc/ssl/certs, /etc/pki); any other is a file on the
	// operator's machine, relative to the manifest's folder.
	CAFile string `json:"caFile,omitempty"`
	// CA is the certificates themselves, as PEM, in the file's place.
	CA string `json:"ca,omitempty" lines:"yes"`
}

// AuthenticationConfiguration is a file that says how the API server finds out who asks.
type AuthenticationConfiguration struct {
	// Enable switches it on. Default: false.
	Enable bool `json:"enable,omitempty"`
	// Config is its configuration.
	Config AuthenticationConfigurationConfig `json:"config,omitzero"`
}

// AuthenticationConfigurationConfig is where that file is.
type AuthenticationConfigurationConfig struct {
	// ConfigFilePath is an AuthenticationConfiguration of apiserver.config.k8s.io/v1 on the operator's machine,
	// relative to the manifest's folder.
	ConfigFilePath string `json:"configFilePath,omitempty"`
	// Configuration is the file's content, in its place.
	Configuration string `json:"configuration,omitempty" lines:"yes"`
}

// EncryptionProviders encrypts Secrets in etcd.
type EncryptionProviders struct {
	// Enable has the API servers encrypt Secrets with a key that is made for it. Default: false.
	Enable bool `json:"enable,omitempty"`
	// CustomEncryptionConfiguration is an EncryptionConfiguration of the operator's own, with its keys, or with KMS.
	CustomEncryptionConfiguration string `json:"customEncryptionConfiguration,omitempty" carried:"no" secret:"true" security:"yes" lines:"yes"` //nolint:lll // tags
}
