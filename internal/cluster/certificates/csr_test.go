package certificates

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"net/url"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// serving is a correct request of node cp-1, changed as given.
type serving struct {
	template x509.CertificateRequest
	spec     certificatesv1.CertificateSigningRequestSpec
	text     func([]byte) []byte // changes the PEM
}

func request(t *testing.T, change func(*serving)) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	s := serving{
		template: x509.CertificateRequest{
			Subject:  pkix.Name{CommonName: "system:node:cp-1", Organization: []string{"system:nodes"}},
			DNSNames: []string{"cp-1"}, IPAddresses: []net.IP{net.ParseIP("10.0.0.1"), net.ParseIP("fd00::1")},
		},
		spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: certificatesv1.KubeletServingSignerName, Username: "system:node:cp-1",
			Groups: []string{"system:nodes", "system:authenticated"},
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth},
		},
		text: func(b []byte) []byte { return b },
	}
	if change != nil {
		change(&s)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &s.template, key)
	if err != nil {
		t.Fatal(err)
	}
	s.spec.Request = s.text(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
	return &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "csr-1"}, Spec: s.spec}
}

func expectedHosts() Expected {
	return Expected{
		"cp-1": {
			Node: "cp-1", Known: true, Names: []string{"10.0.0.1", "192.0.2.1", "fd00:0:0::1", "CP-1.example.com"},
		},
		"cp-2": {Node: "cp-2", Names: []string{"10.0.0.2"}},
		// The host has no hostname in the manifest, and reports one that is not its own.
		"api.example.com": {
			Node: "api.example.com", Names: []string{"10.0.0.3"}, Holder: "the API endpoint",
		},
	}
}

func TestServingRequestsAreApprovedOnlyForTheNodesOwnNamesAndAddresses(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		change func(*serving)
		reason string // part of the refusal; "" means approved
	}{
		"as a kubelet makes it": {nil, ""},
		"with key encipherment": {
			func(s *serving) { s.spec.Usages = append(s.spec.Usages, certificatesv1.UsageKeyEncipherment) }, "",
		},
		"fewer addresses":           {func(s *serving) { s.template.IPAddresses = s.template.IPAddresses[:1] }, ""},
		"a listed name, other case": {func(s *serving) { s.template.DNSNames = []string{"cp-1.EXAMPLE.com"} }, ""},
		"IPv4 in 16 bytes": {
			func(s *serving) { s.template.IPAddresses = []net.IP{net.ParseIP("::ffff:192.0.2.1")} }, "",
		},

		"not a node":            {func(s *serving) { s.spec.Username = "alice" }, "not a node"},
		"a node without a name": {func(s *serving) { s.spec.Username = "system:node:" }, "not a node"},
		"outside the nodes":     {func(s *serving) { s.spec.Groups = []string{"system:authenticated"} }, "not a node"},
		"a host we do not know": {func(s *serving) { s.spec.Username = "system:node:evil" }, "manifest"},
		"for another node":      {func(s *serving) { s.spec.Username = "system:node:cp-2" }, "common name"},
		"another common name": {func(s *serving) { s.template.Subject.CommonName = "kubernetes-admin" },
			"common name"},
		"another organization": {func(s *serving) { s.template.Subject.Organization = []string{"system:masters"} },
			"organizations"},
		"one organization more": {
			func(s *serving) { s.template.Subject.Organization = []string{"system:nodes", "system:masters"} },
			"organizations",
		},
		"client certificate": {
			func(s *serving) { s.spec.Usages = append(s.spec.Usages, certificatesv1.UsageClientAuth) }, "client auth",
		},
		"no server certificate": {func(s *serving) { s.spec.Usages = s.spec.Usages[:1] }, "server auth"},
		"another host's address": {func(s *serving) { s.template.IPAddresses = []net.IP{net.ParseIP("10.0.0.2")} },
			"10.0.0.2"},
		"the API's name": {
			func(s *serving) { s.template.DNSNames = append(s.template.DNSNames, "kubernetes.default") },
			"kubernetes.default",
		},
		"an address as a name": {func(s *serving) { s.template.DNSNames = []string{"10.0.0.1"} }, "10.0.0.1"},
		"a wildcard":           {func(s *serving) { s.template.DNSNames = []string{"*"} }, `"*"`},
		"an e-mail address":    {func(s *serving) { s.template.EmailAddresses = []string{"a@b"} }, "e-mail"},
		"a URI": {func(s *serving) { s.template.URIs = []*url.URL{{Scheme: "spiffe", Host: "x"}} },
			"URIs"},
		"no name at all": {func(s *serving) { s.template.DNSNames, s.template.IPAddresses = nil, nil }, "any name"},
		"no PEM":         {func(s *serving) { s.text = func([]byte) []byte { return []byte("x") } }, "PEM"},
		"two requests": {func(s *serving) { s.text = func(b []byte) []byte { return append(b, b...) } },
			"single PEM"},
		"a node that has the API's name": {func(s *serving) {
			s.spec.Username = "system:node:api.example.com"
			s.template.Subject.CommonName = "system:node:api.example.com"
			s.template.DNSNames, s.template.IPAddresses = []string{"api.example.com"}, nil
		}, "api.example.com"},
		"a broken request": {func(s *serving) {
			s.text = func([]byte) []byte {
				return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: []byte{1}})
			}
		}, "cannot be read"},
		"a stolen request": {func(s *serving) { s.text = forged }, "own key"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node, err := CheckServing(request(t, c.change), expectedHosts())
			switch {
			case c.reason == "" && (err != nil || node != "cp-1"):
				t.Errorf("got %q, %v; want cp-1 approved", node, err)
			case c.reason != "" && (err == nil || !strings.Contains(err.Error(), c.reason)):
				t.Errorf("got %v, want a refusal about %q", err, c.reason)
			}
		})
	}
}

// bootstrap changes a request for a serving certificate to one that cp-1's kubelet makes with a join token.
func bootstrap(s *serving) {
	s.template = x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:node:cp-1", Organization: []string{"system:nodes"}},
	}
	s.spec.SignerName, s.spec.Username = certificatesv1.KubeAPIServerClientKubeletSignerName, "system:bootstrap:aaaaaa"
	s.spec.Groups = []string{
		"system:bootstrappers", "system:bootstrappers:kubeadm:default-node-token", "system:authenticated",
	}
	s.spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}
}

func TestAJoinTokenIsGoodForOneNodesIdentityAndNothingElse(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		node   string // the token's node
		change func(*serving)
		reason string // part of the refusal; "" means approved
	}{
		"as a kubelet makes it": {"cp-1", nil, ""},
		"with key encipherment": {"cp-1", func(s *serving) {
			s.spec.Usages = append(s.spec.Usages, certificatesv1.UsageKeyEncipherment)
		}, ""},
		"with another node's token": {"cp-2", nil, "common name"},
		"with the token of a stranger": {"evil", func(s *serving) {
			s.template.Subject.CommonName = "system:node:evil"
		}, "manifest"},
		"for another node": {"cp-1", func(s *serving) { s.template.Subject.CommonName = "system:node:cp-2" },
			"common name"},
		"for an administrator": {"cp-1", func(s *serving) {
			s.template.Subject.Organization = []string{"system:nodes", "system:masters"}
		}, "organizations"},
		"by a node": {"cp-1", func(s *serving) { s.spec.Groups = []string{"system:nodes"} },
			"not a join token user"},
		"for a server": {"cp-1", func(s *serving) { s.spec.Usages[1] = certificatesv1.UsageServerAuth }, "client auth"},
		"for a server too": {"cp-1", func(s *serving) {
			s.spec.Usages = append(s.spec.Usages, certificatesv1.UsageServerAuth)
		}, "server auth"},
		"with a name": {"cp-1", func(s *serving) { s.template.DNSNames = []string{"cp-1"} }, "names or addresses"},
		"with an address": {"cp-1", func(s *serving) { s.template.IPAddresses = []net.IP{net.ParseIP("10.0.0.1")} },
			"names or addresses"},
		"a name that is the API's": {"api.example.com", func(s *serving) {
			s.template.Subject.CommonName = "system:node:api.example.com"
		}, "the API endpoint"},
		"a stolen request": {"cp-1", func(s *serving) { s.text = forged }, "own key"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			csr := request(t, func(s *serving) {
				bootstrap(s)
				if c.change != nil {
					c.change(s)
				}
			})
			err := CheckBootstrap(csr, c.node, expectedHosts())
			switch {
			case c.reason == "" && err != nil:
				t.Errorf("got %v; want it approved", err)
			case c.reason != "" && (err == nil || !strings.Contains(err.Error(), c.reason)):
				t.Errorf("got %v, want a refusal about %q", err, c.reason)
			}
		})
	}
}

// forged changes a request's last byte, which is part of its signature.
func forged(text []byte) []byte {
	block, _ := pem.Decode(text)
	block.Bytes[len(block.Bytes)-1] ^= 1
	return pem.EncodeToMemory(block)
}
