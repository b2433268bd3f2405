package v1beta2

// Features is additional features of the cluster.
type Features struct {
	// CoreDNS configures the cluster's DNS server.
	CoreDNS *CoreDNS `json:"coreDNS,omitempty"`
	// AlwaysPullImages has the kubelet check credentials for every image.
	AlwaysPullImages *Switch `json:"alwaysPullImages,omitempty" carried:"no" security:"yes"`
	// EventRateLimit limits how many events the API server takes.
	EventRateLimit *AdmissionPlugin `json:"eventRateLimit,omitempty" carried:"no" security:"yes"`
	// PodNodeSelector limits the nodes on which pods of a namespace run.
	PodNodeSelector *AdmissionPlugin `json:"podNodeSelector,omitempty" carried:"no" security:"yes"`
	// PodSecurityPolicy was removed from Kubernetes in 1.25. Deprecated: remove it.
	PodSecurityPolicy *Switch `json:"podSecurityPolicy,omitempty" carried:"no" security:"yes"`
	// StaticAuditLog has the API server write an audit log to a file.
	StaticAuditLog *StaticAuditLog `json:"staticAuditLog,omitempty" carried:"no" security:"yes"`
	// DynamicAuditLog was removed from Kubernetes in 1.19. Deprecated: remove it.
	DynamicAuditLog *Switch `json:"dynamicAuditLog,omitempty" carried:"no" security:"yes"`
	// MetricsServer installs metrics-server.
	MetricsServer *Switch `json:"metricsServer,omitempty" carried:"no"`
	// NodeLocalDNS installs a DNS cache on every node.
	NodeLocalDNS *NodeLocalDNS `json:"nodeLocalDNS,omitempty" carried:"no"`
	// OpenIDConnect has the API server accept an OpenID provider's tokens.
	OpenIDConnect *OpenIDConnect `json:"openidConnect,omitempty" carried:"no" security:"yes"`
	// EncryptionProviders encrypts Secrets in etcd.
	EncryptionProviders *EncryptionProviders `json:"encryptionProviders,omitempty" carried:"no" security:"yes"`
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
	// DeployPodDisruptionBudget keeps one DNS server running during drains.
	DeployPodDisruptionBudget *bool `json:"deployPodDisruptionBudget,omitempty" carried:"no,idle=false"`
	// ImageRepository is where the image comes from.
	ImageRepository string `json:"imageRepository,omitempty" carried:"no"`
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
	// ConfigFilePath is its configuration file on the operator's machine.
	ConfigFilePath string `json:"configFilePath,omitempty"`
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
	// PolicyFilePath is the audit policy on the operator's machine.
	PolicyFilePath string `json:"policyFilePath,omitempty"`
	// LogPath is the log file on the hosts.
	LogPath string `json:"logPath,omitempty"`
	// LogMaxAge is how many days old files are kept.
	LogMaxAge int `json:"logMaxAge,omitempty"`
	// LogMaxBackup is how many old files are kept.
	LogMaxBackup int `json:"logMaxBackup,omitempty"`
	// LogMaxSize is the size in megabytes at which the file is rotated.
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
	// ClientID is the client that tokens must be issued for.
	ClientID string `json:"clientId,omitempty"`
	// UsernameClaim is the claim with the user's name.
	UsernameClaim string `json:"usernameClaim,omitempty"`
	// UsernamePrefix is put before the user's name; "-" means nothing is.
	UsernamePrefix string `json:"usernamePrefix,omitempty"`
	// GroupsClaim is the claim with the user's groups.
	GroupsClaim string `json:"groupsClaim,omitempty"`
	// GroupsPrefix is put before each group; "-" means nothing is.
	GroupsPrefix string `json:"groupsPrefix,omitempty"`
	// RequiredClaim is a claim=value that tokens must have.
	RequiredClaim string `json:"requiredClaim,omitempty"`
	// SigningAlgs is the accepted signature algorithms.
	SigningAlgs string `json:"signingAlgs,omitempty"`
	// CAFile is the authority of the provider's certificate.
	CAFile string `json:"caFile,omitempty"`
}

// EncryptionProviders encrypts Secrets in etcd.
type EncryptionProviders struct {
	// Enable switches it on. Default: false.
	Enable bool `json:"enable,omitempty"`
	// CustomEncryptionConfiguration is an EncryptionConfiguration of the operator's own, with its keys.
	CustomEncryptionConfiguration string `json:"customEncryptionConfiguration,omitempty" secret:"true" lines:"yes"`
}
