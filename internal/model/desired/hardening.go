package desired

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"path"
	"slices"
	"strings"
)

// The values of Cluster.Hardening. The first is the default for a new cluster.
const (
	HardeningBaseline = "baseline"
	HardeningNone     = "none"
)

// HardeningDigest is the name under which a host notes its hardening, if that was ever set. A cluster made before the
// setting existed has no such note.
const HardeningDigest = "hardening"

// Hardened reports whether the cluster has the baseline.
func (c *Cluster) Hardened() bool { return c.Hardening == HardeningBaseline }

// HardeningNote returns the digest that a host notes for a value that is not empty.
func HardeningNote(value string) string {
	sum := sha256.Sum256([]byte(value))
	return hex.EncodeToString(sum[:])
}

// HardeningNoted returns the value of a host's note, from its digests by name; "" if there is none.
func HardeningNoted(digests map[string]string) string {
	for _, value := range []string{HardeningBaseline, HardeningNone} {
		if digests[HardeningDigest] == HardeningNote(value) {
			return value
		}
	}
	return ""
}

// MinTLSVersion is the oldest TLS version that the baseline's components accept, in Kubernetes' notation.
const MinTLSVersion = "VersionTLS12"

// StrongCiphers returns the TLS 1.2 cipher suites of the baseline's components: with forward secrecy, authenticated,
// and in the CIS benchmark's lists for both API server and kubelet. TLS 1.3 has its own.
func StrongCiphers() []string {
	return []string{
		"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
		"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
	}
}

// Harden returns the cluster with that value. The baseline adds settings to the API server; the manifest's own settings
// win.
func (c Cluster) Harden(value string) Cluster {
	c.Hardening = value
	if c.Hardened() {
		c.Extras = append(slices.Clone(c.Extras), c.baselineExtra()...)
	}
	return c
}

// baselineExtra is the name of the Extra that the baseline adds.
const baselineExtra = "hardening"

// AuditLog is the path of the baseline's audit log on control-plane hosts.
const AuditLog = "/var/log/kubernetes/audit/audit.log"

// auditPolicy logs metadata of requests only, so that no line contains a Secret. Anonymous health checks, several a
// second, are left out.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages:
- RequestReceived
rules:
- level: None
  nonResourceURLs:
  - /healthz*
  - /livez*
  - /readyz*
- level: Metadata
`

// authentication lets anonymous clients query the API server's health, which load balancers and the kubelet do, and
// nothing else.
const authentication = `apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
anonymous:
  enabled: true
  conditions:
  - path: /livez
  - path: /readyz
  - path: /healthz
`

// baselineExtra returns what the baseline adds to the API server.
func (c Cluster) baselineExtra() []Extra {
	e := Extra{Name: baselineExtra, Component: APIServer, Flags: map[string]string{}}
	for name, value := range baselineFlags() {
		if !c.setsAPIServerFlag(name) && (name != ciphersFlag || len(c.TLSCipherSuites.APIServer) == 0) {
			e.Flags[name] = value
		}
	}
	if !c.NoAuditLog && !c.setsAPIServerFlag(policyFile) {
		c.addAuditLog(&e)
	}
	if len(c.authenticationFlags()) == 0 {
		f := NewComponentFile(APIServer, "authentication.yaml", authentication)
		e.Flags["authentication-config"], e.Files = f.Path, append(e.Files, f)
	}
	return []Extra{e}
}

// addAuditLog adds an audit log, except for what the manifest sets itself. A policy in the manifest may log more than
// the baseline's default would.
func (c Cluster) addAuditLog(e *Extra) {
	for name, value := range auditFlags() {
		if !c.setsAPIServerFlag(name) {
			e.Flags[name] = value
		}
	}
	if e.Flags[auditPath] != "" {
		e.Directories = []string{path.Dir(AuditLog)}
	}
	f := NewComponentFile(APIServer, "audit-policy.yaml", auditPolicy)
	e.Flags[policyFile], e.Files = f.Path, append(e.Files, f)
}

const (
	ciphersFlag = "tls-cipher-suites"
	auditPath   = "audit-log-path"
	policyFile  = "audit-policy-file"
)

// baselineFlags returns the API server's flags that need no files.
func baselineFlags() map[string]string {
	return map[string]string{
		"service-account-extend-token-expiration": "false",
		ciphersFlag:       strings.Join(StrongCiphers(), ","),
		"tls-min-version": MinTLSVersion,
	}
}

// auditFlags returns the flags of the audit log, except for its policy.
func auditFlags() map[string]string {
	return map[string]string{
		auditPath: AuditLog, "audit-log-maxage": "30", "audit-log-maxbackup": "10", "audit-log-maxsize": "100",
	}
}

// Yields lists the settings of the baseline that the manifest overrides, sorted.
func (c Cluster) Yields() []string {
	if !c.Hardened() {
		return nil
	}
	var out []string
	for _, flags := range []map[string]string{baselineFlags(), auditFlags(), {policyFile: ""}} {
		for name := range flags {
			if c.setsAPIServerFlag(name) {
				out = append(out, "--"+name)
			}
		}
	}
	for _, name := range c.authenticationFlags() {
		out = append(out, "--"+name+" (anonymous clients may query more than the API server's health)")
	}
	for field, set := range map[string]bool{
		"features.staticAuditLog (there is no audit log)": c.NoAuditLog,
		"kubeletConfig.podPidsLimit":                      c.Kubelet.PodPidsLimit != nil,
		"tlsCipherSuites.apiServer":                       len(c.TLSCipherSuites.APIServer) > 0,
		"tlsCipherSuites.kubelet":                         len(c.TLSCipherSuites.Kubelet) > 0,
	} {
		if set {
			out = append(out, field)
		}
	}
	slices.Sort(out)
	return out
}

// authenticationFlags returns the manifest's own authentication flags of the API server. Some exclude a configuration
// file, and others name one.
func (c Cluster) authenticationFlags() []string {
	return slices.DeleteFunc(c.apiServerFlags(), func(name string) bool {
		return name != "authentication-config" && name != "anonymous-auth" && !strings.HasPrefix(name, "oidc-")
	})
}

// setsAPIServerFlag reports whether the manifest sets the API server's flag.
func (c Cluster) setsAPIServerFlag(flag string) bool {
	return slices.Contains(c.apiServerFlags(), flag)
}

// apiServerFlags returns the names of the API server's flags in the manifest.
func (c Cluster) apiServerFlags() []string {
	names := slices.Collect(maps.Keys(c.Components.APIServer.Flags))
	for _, e := range c.Extras {
		if e.Component == APIServer && e.Name != baselineExtra {
			names = slices.AppendSeq(names, maps.Keys(e.Flags))
		}
	}
	return names
}
