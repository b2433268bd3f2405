package v1beta2

import (
	"cmp"
	"encoding/hex"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
)

// The defaults of enabled features.
const (
	DefaultAuditLogPath   = "/var/log/kubernetes/audit.log"
	DefaultAuditMaxAge    = 30
	DefaultAuditMaxBackup = 3
	DefaultAuditMaxSize   = 100
	DefaultClientID       = "kubernetes"
	DefaultPrefix         = "oidc:"
	DefaultAuditBatch     = 10 << 20  // kube-apiserver's own, in bytes
	DefaultAuditEvent     = 100 << 10 // kube-apiserver's own, in bytes
)

// setDefaults fills in the settings of enabled features.
func (f *Features) setDefaults() {
	if a := f.StaticAuditLog; a != nil && a.Enable {
		fill(&a.Config.LogPath, DefaultAuditLogPath)
		fill(&a.Config.LogMaxAge, DefaultAuditMaxAge)
		fill(&a.Config.LogMaxBackup, DefaultAuditMaxBackup)
		fill(&a.Config.LogMaxSize, DefaultAuditMaxSize)
	}
	if o := f.OpenIDConnect; o != nil && o.Enable {
		fill(&o.Config.ClientID, DefaultClientID)
		fill(&o.Config.UsernameClaim, "sub")
		fill(&o.Config.UsernamePrefix, DefaultPrefix)
		fill(&o.Config.GroupsClaim, "groups")
		fill(&o.Config.GroupsPrefix, DefaultPrefix)
		fill(&o.Config.SigningAlgs, "RS256")
	}
}

// nodeLocalDNS checks that pods reach the DNS cache in one way only.
func (f *findings) nodeLocalDNS(n *NodeLocalDNS, c *CNI) {
	if n != nil && n.Deploy != nil && *n.Deploy && c != nil && c.Cilium != nil && c.Cilium.EnableLocalRedirectPolicy {
		f.errorf("features.nodeLocalDNS.deploy", "set it to false, or disable enableLocalRedirectPolicy",
			"cannot be combined with clusterNetwork.cni.cilium.enableLocalRedirectPolicy")
	}
}

// features checks enabled features. Package manifest checks the contents of files.
func (f *findings) features(c Features) {
	const path = "features"
	if on(c.PodSecurityPolicy) {
		f.errorf(path+".podSecurityPolicy.enable", "use Pod Security Admission, which is set with namespace labels",
			"Kubernetes 1.25 removed PodSecurityPolicy")
	}
	if on(c.DynamicAuditLog) {
		f.errorf(path+".dynamicAuditLog.enable", "use staticAuditLog or webhookAuditLog",
			"Kubernetes 1.19 removed the dynamic audit log")
	}
	f.admission(path+".podNodeSelector", c.PodNodeSelector)
	f.admission(path+".eventRateLimit", c.EventRateLimit)
	if a := c.StaticAuditLog; a != nil && a.Enable {
		f.auditLog(path+".staticAuditLog.config", a.Config)
	}
	if w := c.WebhookAuditLog; w != nil && w.Enable {
		f.auditWebhook(path+".webhookAuditLog.config", w.Config)
		if a := c.StaticAuditLog; a != nil && a.Enable && a.Config.Policy != "" && w.Config.Policy != "" &&
			strings.TrimSpace(a.Config.Policy) != strings.TrimSpace(w.Config.Policy) {
			f.errorf(path+".webhookAuditLog.config.policy", "use the same policy in both",
				"differs from the policy in staticAuditLog; the API server supports only one policy")
		}
	}
	if o := c.OpenIDConnect; o != nil && o.Enable {
		f.openID(path+".openidConnect.config", o.Config)
	}
	if a := c.AuthenticationConfiguration; a != nil && a.Enable {
		at := path + ".authenticationConfiguration"
		if a.Config.Configuration == "" {
			f.missing(at+".config.configFilePath", "name a file with an AuthenticationConfiguration")
		}
		if c.OpenIDConnect != nil && c.OpenIDConnect.Enable {
			f.errorf(at+".enable", "move the provider to the AuthenticationConfiguration and disable openidConnect",
				"cannot be set together with features.openidConnect")
		}
	}
}

func on(s *Switch) bool { return s != nil && s.Enable }

func (f *findings) admission(path string, p *AdmissionPlugin) {
	if p != nil && p.Enable && p.Config.Configuration == "" {
		f.missing(path+".config.configFilePath", "name the configuration file of the plugin")
	}
}

func (f *findings) auditLog(at string, c StaticAuditLogConfig) {
	if c.Policy == "" {
		f.missing(at+".policyFilePath", "name an audit policy")
	}
	for _, number := range []struct {
		name  string
		value int
	}{{"logMaxAge", c.LogMaxAge}, {"logMaxBackup", c.LogMaxBackup}, {"logMaxSize", c.LogMaxSize}} {
		f.notNegative(at+"."+number.name, number.value)
	}
	if why := badLogPath(c.LogPath); why != "" {
		f.errorf(at+".logPath", "use a path such as "+DefaultAuditLogPath, "%q %s", c.LogPath, why)
	}
}

func (f *findings) notNegative(at string, n int) {
	if n < 0 {
		f.errorf(at, "", "%d is less than 0", n)
	}
}

// badLogPath returns the mistake in the path of a log file on hosts, or "". kubeone creates the file's directory there
// and mounts it into the API server, where it hides the API server's own.
func badLogPath(file string) string {
	dir := path.Dir(file)
	switch {
	case !path.IsAbs(file):
		return "is not an absolute path"
	case path.Clean(file) != file || strings.ContainsFunc(file, unusualInPath):
		return "contains characters other than letters, digits, dots, dashes and underscores"
	case strings.Count(dir, "/") < 2 || slices.Contains([]string{"/var/log", "/var/lib"}, dir):
		return "is not in a separate directory, so the API server would get access to all of " + dir
	}
	for _, other := range []string{
		"/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/opt/cni", "/opt/kubeone", "/proc", "/root", "/run",
		"/sbin", "/sys", "/tmp", "/usr", "/var/lib/cni", "/var/lib/containerd", "/var/lib/etcd", "/var/lib/kubelet",
		"/var/lib/kubeone", "/var/lib/kubeone-old", "/var/log/containers", "/var/log/journal", "/var/log/pods",
		"/var/run",
	} {
		if dir == other || strings.HasPrefix(dir, other+"/") {
			return "is in " + other + ", which is used by other programs"
		}
	}
	return ""
}

func unusualInPath(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-", r))
}

func (f *findings) auditWebhook(at string, c WebhookAuditLogConfig) {
	if c.Policy == "" {
		f.missing(at+".policyFilePath", "name an audit policy")
	}
	if c.Kubeconfig == "" && c.KubeconfigDigest == "" {
		f.missing(at+".configFilePath", "name a kubeconfig file with the address of the audit server")
	}
	if raw, err := hex.DecodeString(c.KubeconfigDigest); c.KubeconfigDigest != "" && (err != nil || len(raw) != 32) {
		f.errorf(at+".kubeconfigDigest", "remove it; kubeone sets it", "is not a hexadecimal SHA-256 digest")
	}
	if !slices.Contains([]string{"", "batch", "blocking", "blocking-strict"}, c.Mode) {
		f.errorf(at+".mode", "use batch, blocking or blocking-strict", "%q is not supported", c.Mode)
	}
	if c.Version != "" && c.Version != "audit.k8s.io/v1" {
		f.errorf(at+".version", "use audit.k8s.io/v1", "%q is not supported", c.Version)
	}
	if c.Batch != (WebhookAuditLogBatch{}) && c.Mode != "" && c.Mode != "batch" {
		f.errorf(at+".batch", "remove it, or use mode batch", "has no effect in mode %s", c.Mode)
	}
	f.duration(at+".initialBackOff", c.InitialBackOff)
	f.duration(at+".batch.maxWait", c.Batch.MaxWait)
	f.notNegative(at+".batch.bufferSize", c.Batch.BufferSize)
	f.notNegative(at+".batch.maxSize", c.Batch.MaxSize)
	f.notNegative(at+".batch.throttle.burst", c.Batch.Throttle.Burst)
	f.notNegative(at+".truncate.maxBatchSize", c.Truncate.MaxBatchSize)
	f.notNegative(at+".truncate.maxEventSize", c.Truncate.MaxEventSize)
	if batch, event := cmp.Or(c.Truncate.MaxBatchSize, DefaultAuditBatch),
		cmp.Or(c.Truncate.MaxEventSize, DefaultAuditEvent); batch > 0 && batch < event {
		f.errorf(at+".truncate", "a batch must have room for at least one event",
			"maxBatchSize (%d) is less than maxEventSize (%d)", batch, event)
	}
	if qps := c.Batch.Throttle.QPS; qps != "" {
		if n, err := strconv.ParseFloat(qps, 32); err != nil || !(n > 0 && n < 1e6) {
			f.errorf(at+".batch.throttle.QPS", "use a number such as 10 or 0.5",
				"%q is not a number greater than 0", qps)
		}
	}
}

func (f *findings) openID(at string, c OpenIDConnectConfig) {
	if c.IssuerURL == "" {
		f.missing(at+".issuerUrl", "set the URL of the provider")
	} else if u, err := url.Parse(c.IssuerURL); err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil ||
		u.RawQuery != "" || u.Fragment != "" {
		f.errorf(at+".issuerUrl", "use a URL such as https://id.example.com",
			"is not an https:// URL without user, query and fragment")
	}
	f.openIDPrefix(at+".usernamePrefix", c.UsernamePrefix)
	f.openIDPrefix(at+".groupsPrefix", c.GroupsPrefix)
	if claim, _, ok := strings.Cut(c.RequiredClaim, "="); c.RequiredClaim != "" && (!ok || claim == "") {
		f.errorf(at+".requiredClaim", "use the form claim=value", "%q is not of the form claim=value", c.RequiredClaim)
	}
	for alg := range strings.SplitSeq(c.SigningAlgs, ",") {
		if !slices.Contains([]string{
			"RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512",
		}, alg) {
			f.errorf(at+".signingAlgs", "use RS256 or another asymmetric algorithm from RFC 7518",
				"%q is not supported", alg)
		}
	}
	if c.CAFile != "" && !mountedByKubeadm(c.CAFile) {
		f.errorf(at+".caFile", "put it in /etc/kubernetes/pki on each control-plane host, or next to the manifest",
			"%q is not in a directory that the API server mounts", c.CAFile)
	}
	f.pem(at+".ca", c.CA)
}

func (f *findings) openIDPrefix(at, prefix string) {
	if strings.HasPrefix(prefix, "system:") {
		f.errorf(at, "use another prefix, such as "+DefaultPrefix,
			"%q would give users of the provider the names of built-in cluster users", prefix)
	}
}

// mountedByKubeadm reports whether kubeadm has every API server mount the directory of a file.
func mountedByKubeadm(file string) bool {
	return path.Clean(file) == file && slices.ContainsFunc([]string{
		"/etc/kubernetes/pki/", "/etc/ssl/certs/", "/etc/pki/", "/etc/ca-certificates/", "/usr/share/ca-certificates/",
		"/usr/local/share/ca-certificates/",
	}, func(dir string) bool { return strings.HasPrefix(file, dir) })
}
