//go:build e2e

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"kubeone/internal/cluster/certificates"
	"kubeone/internal/cluster/jointoken"
)

// attempt is a request for a certificate of another identity.
type attempt struct {
	name   string
	as     []string // the requesting user and groups
	signer string
	usage  certificatesv1.KeyUsage
	wants  x509.CertificateRequest
}

func certificateAttempts(s *scenario) []attempt {
	own, other := s.Lab.Workers()[0], s.Lab.Host("cp-1")
	bearer := func(token string) []string {
		return []string{
			"--as=system:bootstrap:" + token, "--as-group=system:bootstrappers",
			"--as-group=system:bootstrappers:kubeadm:default-node-token", "--as-group=system:authenticated",
		}
	}
	node := func(name string) pkix.Name {
		return pkix.Name{CommonName: "system:node:" + name, Organization: []string{"system:nodes"}}
	}
	worker := []string{"--as=system:node:" + own.Hostname, "--as-group=system:nodes", "--as-group=system:authenticated"}
	const client, serving = certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.KubeletServingSignerName
	return []attempt{
		{"own-token-other-node", bearer("owntok"), client, certificatesv1.UsageClientAuth,
			x509.CertificateRequest{Subject: node(other.Hostname)}},
		{"somebodys-token", bearer("anytok"), client, certificatesv1.UsageClientAuth,
			x509.CertificateRequest{Subject: node(own.Hostname)}},
		{"no-such-token", bearer("notthe"), client, certificatesv1.UsageClientAuth,
			x509.CertificateRequest{Subject: node(own.Hostname)}},
		{"address-of-the-api", worker, serving, certificatesv1.UsageServerAuth, x509.CertificateRequest{
			Subject: node(own.Hostname), IPAddresses: []net.IP{net.ParseIP(s.Lab.Endpoint)},
		}},
		{"address-of-a-peer", worker, serving, certificatesv1.UsageServerAuth, x509.CertificateRequest{
			Subject: node(own.Hostname), IPAddresses: []net.IP{net.ParseIP(other.Address)},
		}},
		{"name-of-a-service", worker, serving, certificatesv1.UsageServerAuth, x509.CertificateRequest{
			Subject: node(own.Hostname), DNSNames: []string{"kubernetes.default.svc"},
		}},
	}
}

// sendRequest sends the request as the given user. It returns nothing: the answer depends on the approver.
func (a attempt) sendRequest(s *scenario) {
	s.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	s.must(err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &a.wants, key)
	s.must(err)
	csr := certificatesv1.CertificateSigningRequest{
		Spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: a.signer,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, a.usage},
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
		},
	}
	csr.APIVersion, csr.Kind, csr.Name = "certificates.k8s.io/v1", "CertificateSigningRequest", a.name
	text, err := json.Marshal(csr)
	s.must(err)
	_, err = s.Feed(s.Context(), string(text), append([]string{"create", "-f", "-"}, a.as...)...)
	s.must(err)
}

// createToken creates a join token in the cluster. Only its ID is used.
func (s *scenario) createToken(id, node string) {
	s.Helper()
	data := map[string]string{
		"token-id": id, "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true",
		"auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token",
		"expiration":        time.Now().Add(time.Hour).UTC().Format(time.RFC3339),
	}
	for key, value := range data {
		data[key] = base64.StdEncoding.EncodeToString([]byte(value))
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "bootstrap.kubernetes.io/token", "data": data,
		"metadata": map[string]any{
			"name": "bootstrap-token-" + id, "namespace": "kube-system",
			"annotations": map[string]string{jointoken.NodeAnnotation: node},
		},
	})
	s.must(err)
	_, err = s.Feed(s.Context(), string(text), "create", "-f", "-")
	s.must(err)
}

// identitiesAreAsked requests certificates of other identities while do lets a host join. No such request succeeds, and
// the host gets its own certificate.
func (s *scenario) identitiesAreAsked(do func()) {
	s.Helper()
	s.createToken("owntok", s.Lab.Workers()[0].Hostname)
	s.createToken("anytok", "")
	for _, a := range certificateAttempts(s) {
		a.sendRequest(s)
	}
	do()
	var list certificatesv1.CertificateSigningRequestList
	s.must(s.Object(s.Context(), &list, "csr"))
	open := map[string]bool{}
	for _, csr := range list.Items {
		open[csr.Name] = len(csr.Status.Conditions)+len(csr.Status.Certificate) == 0
	}
	for _, a := range certificateAttempts(s) {
		if !open[a.name] {
			s.Errorf("request %s was answered, or is gone", a.name)
		}
		_, err := s.Kube(s.Context(), "delete", "csr", a.name)
		s.must(err)
	}
	_, err := s.Kube(s.Context(), "-n", "kube-system", "delete", "secret", "bootstrap-token-owntok",
		"bootstrap-token-anytok")
	s.must(err)
	said, err := s.Kube(s.Context(), "get", "clusterrolebinding", "--ignore-not-found",
		certificates.AutoApprovalBinding)
	if s.must(err); strings.TrimSpace(said) != "" {
		s.Errorf("kubeadm's approval of any Node is there: %s", said)
	}
}
