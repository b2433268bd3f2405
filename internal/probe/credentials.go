package probe

import (
	"fmt"

	"kubeone/internal/etcd"
	"kubeone/internal/keys/authority"
)

// Credentials are what a control-plane host knows of its cluster: admin.conf and the API server's etcd client
// certificate. They are kept apart from the facts, and never print, log or encode themselves.
type Credentials struct {
	Kubeconfig []byte // "" where the host has none
	Etcd       etcd.Credentials
	Succession []byte // the CAs that have followed each other in the cluster, as authority.Succession; public
}

const redacted = "probe.Credentials(redacted)"

// String says nothing of the content.
func (Credentials) String() string { return redacted }

// GoString says nothing of the content.
func (Credentials) GoString() string { return redacted }

// Format says nothing of the content, whatever the verb.
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
	signing       = pkiDir + "ca-signing.crt" // the cluster's CA that signs, while there are several
	pkiDir        = "/etc/kubernetes/pki/"
	kubeletPKI    = "/var/lib/kubelet/pki/"
	kubeletClient = kubeletPKI + "kubelet-client-current.pem"
)

// credentials reads the files of the name "secret"; the certificates come with the public ones.
func credentials(l lines, pem map[string][]byte) Credentials {
	secrets := l.contents("secret")
	return Credentials{
		Kubeconfig: secrets[adminConf], Succession: secrets[succession],
		Etcd: etcd.Credentials{CA: pem[etcdCA], Cert: pem[etcdCert], Key: secrets[etcdKey]},
	}
}
