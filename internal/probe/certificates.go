package probe

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"k8s.io/apimachinery/pkg/util/validation"
	"kubeone/internal/etcd"
	"kubeone/internal/keys/authority"
	"kubeone/internal/model/observed"
	"kubeone/internal/text/pattern"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

// soon is how long before its expiry a certificate counts as expiring soon. A kubelet renews its certificate, which is
// valid for a year, 36 to 110 days before it expires.
const soon = 30 * 24 * time.Hour

// certificateNamed matches the name of a certificate: "apiserver", "etcd/server", "admin.conf".
var certificateNamed = pattern.Lazy(`^[0-9A-Za-z][0-9A-Za-z./_-]{0,63}$`)

// parseCertificates returns the certificates in the files and kubeconfigs of a host, by name, at most maxValues. now is
// the time on the host. If it is unknown, no certificate counts as expired.
func parseCertificates(files map[string][]byte, kubeconfigs map[string][]string, now time.Time) []observed.Certificate {
	var out []observed.Certificate
	add := func(name string, content []byte) {
		if len(out) == maxValues || !certificateNamed().MatchString(name) {
			return
		}
		if c := firstCertificate(content); c != nil {
			out = append(out, parseCertificate(name, c, now))
		}
	}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if strings.HasPrefix(file, nextDir) || file == succession || file == signing {
			continue // a CA that does not sign yet, or a copy of a current or previous one
		}
		add(certificateName(file), files[file])
	}
	for _, file := range slices.Sorted(maps.Keys(kubeconfigs)) {
		encoded := yamlValue(kubeconfigs[file], "client-certificate-data")
		if content, err := base64.StdEncoding.DecodeString(encoded); err == nil {
			add(path.Base(file), content)
		}
	}
	slices.SortFunc(out, func(a, b observed.Certificate) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// signerNamed matches the name of an authority: "kubernetes", "etcd-ca".
var signerNamed = pattern.Lazy(`^[0-9A-Za-z][0-9A-Za-z .:@_-]{0,63}$`)

// parseCertificate returns the facts about a certificate. now is the time on the host, or zero if unknown.
func parseCertificate(name string, c *x509.Certificate, now time.Time) observed.Certificate {
	out := observed.Certificate{Name: name, NotBefore: c.NotBefore.UTC(), NotAfter: c.NotAfter.UTC()}
	if signerNamed().MatchString(c.Issuer.CommonName) {
		out.Signer = c.Issuer.CommonName
	}
	if now.IsZero() {
		return out
	}
	out.Expired = now.After(c.NotAfter)
	out.Soon = !out.Expired && now.Add(soon).After(c.NotAfter)
	out.Left = max(0, c.NotAfter.Sub(now))
	return out
}

// certificateName returns the name that package observed uses for a certificate file, such as "apiserver",
// "etcd/server" or "kubelet-client".
func certificateName(file string) string {
	file = strings.TrimSuffix(strings.TrimSuffix(file, path.Ext(file)), "-current")
	file = strings.TrimPrefix(file, pkiDir)
	return strings.TrimPrefix(file, kubeletPKI)
}

// firstCertificate returns the first certificate in PEM content, or nil if there is none or it is invalid.
func firstCertificate(content []byte) *x509.Certificate {
	block, _ := pem.Decode(content)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil
	}
	return c
}

// maxNames limits the names kept of a certificate.
const maxNames = 256

// certificateNames returns the DNS names and addresses in a certificate, without invalid names.
func certificateNames(content []byte) []string {
	c := firstCertificate(content)
	if c == nil {
		return nil
	}
	var out []string
	for _, name := range c.DNSNames {
		if name = strings.ToLower(name); isName(name) {
			out = append(out, name)
		}
	}
	for _, address := range c.IPAddresses {
		out = append(out, address.String())
	}
	return out[:min(len(out), maxNames)]
}

// isName reports whether a text is a DNS name in lower case, or a pattern of such names.
func isName(name string) bool {
	return len(validation.IsDNS1123Subdomain(name)) == 0 || len(validation.IsWildcardDNS1123Subdomain(name)) == 0
}

// CAHash returns the digest of the public key of a CA in the format of kubeadm's --discovery-token-ca-cert-hash: the
// sha256 of the SubjectPublicKeyInfo in hex, as in the pins of RFC 7469. It returns "" if content is not a certificate.
func CAHash(content []byte) string {
	c := firstCertificate(content)
	if c == nil {
		return ""
	}
	return authority.KeyID(c.RawSubjectPublicKeyInfo)
}

// yamlValue returns the value of the first line "key: value" in a file that a program wrote.
func yamlValue(text []string, key string) string {
	for _, t := range text {
		if value, ok := strings.CutPrefix(strings.TrimSpace(t), key+": "); ok {
			return strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	return ""
}

const (
	rotationFile = "/etc/kubeone/rotation"
	nextDir      = pkiDir + "next/" // the next keys, with their certificates
)

// parseAuthorities returns the state of each authority on the host, by name, or nil if the host reports none.
func parseAuthorities(pem map[string][]byte, begun []string) map[string]observed.Authority {
	out := map[string]observed.Authority{}
	for _, name := range observed.Authorities() {
		files := authority.FilesOf(name)
		a := authority.Parse(name, pem[pkiDir+files.Public], pem[nextDir+files.Next()], begun)
		if a.Signer() == "" {
			continue
		}
		out[name] = a
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// Credentials give access to the API and etcd through a control-plane host: its admin.conf and the etcd client
// certificate of its API server. They are kept separate from the facts. Printing, logging or encoding shows a
// placeholder.
type Credentials struct {
	Kubeconfig []byte // nil if the host has none
	Etcd       etcd.Credentials
	Succession []byte // statements in which CAs of the cluster sign their successors; public
}

const redacted = "probe.Credentials(redacted)"

// String returns a placeholder.
func (Credentials) String() string { return redacted }

// GoString returns a placeholder.
func (Credentials) GoString() string { return redacted }

// Format prints a placeholder for every verb.
func (Credentials) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte(redacted)) }

// MarshalText encodes a placeholder, for JSON, YAML and structured logs too.
func (Credentials) MarshalText() ([]byte, error) { return []byte(redacted), nil }

const (
	adminConf     = "/etc/kubernetes/admin.conf"
	apiServerCert = "/etc/kubernetes/pki/apiserver.crt"
	kubeletConf   = "/etc/kubernetes/kubelet.conf"
	etcdKey       = "/etc/kubernetes/pki/apiserver-etcd-client.key"
	etcdCert      = "/etc/kubernetes/pki/apiserver-etcd-client.crt"
	etcdCA        = "/etc/kubernetes/pki/etcd/ca.crt"
	clusterCA     = "/etc/kubernetes/pki/ca.crt"
	succession    = pkiDir + authority.Succession
	signing       = pkiDir + "ca-signing.crt" // the cluster's signing CA, if there are several
	pkiDir        = "/etc/kubernetes/pki/"
	kubeletPKI    = "/var/lib/kubelet/pki/"
	kubeletClient = kubeletPKI + "kubelet-client-current.pem"
)

// parseCredentials parses the files named "secret"; the certificates come with the public ones.
func parseCredentials(l lines, pem map[string][]byte) Credentials {
	secrets := l.fileContents("secret")
	return Credentials{
		Kubeconfig: secrets[adminConf], Succession: secrets[succession],
		Etcd: etcd.Credentials{CA: pem[etcdCA], Cert: pem[etcdCert], Key: secrets[etcdKey]},
	}
}
