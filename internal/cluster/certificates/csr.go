package certificates

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"

	"kubeone/internal/model/nodename"
)

// Expected has the names and addresses allowed in the certificates of each host, by node name. The node's own name is
// allowed unless it is another's (nodename.Names.Holder). The addresses in a Node object do not belong here: they were
// written by the kubelet that requests the certificate.
type Expected map[string]nodename.Claim

// nodeUser and nodeGroup identify a kubelet.
// Source: https://kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests/#kubernetes-signers
const (
	nodeUser       = "system:node:"
	nodeGroup      = "system:nodes"
	bootstrapGroup = "system:bootstrappers" // identifies a kubelet with a join token
)

// CheckServing checks one request for a kubelet's serving certificate. It returns the node's name, and nil if the
// request may be approved: the kubelet of an expected node requests, for itself, a server certificate with names and
// addresses expected of this node only. Otherwise the error is the reason. The caller checks the signer and whether the
// request is open.
func CheckServing(csr *certificatesv1.CertificateSigningRequest, expected Expected) (node string, err error) {
	if node, err = requestingNode(csr); err != nil {
		return "", err
	}
	claim, known := expected[node]
	if !known {
		return node, fmt.Errorf("node %q is not one of the manifest's hosts", node)
	}
	request, err := checkRequest(csr, certificatesv1.UsageServerAuth, node)
	if err != nil {
		return node, err
	}
	allowed := claim.Names
	if claim.Check() == nil {
		allowed = append(slices.Clone(allowed), node)
	}
	return node, checkNames(request, node, allowed)
}

// CheckBootstrap checks one request for a kubelet's first client certificate, which is a Node's identity. It returns
// nil if the request may be approved: the requester has a join token for this expected node, and requests this node's
// identity only. Otherwise the error is the reason. The caller checks that the token is the request's and valid.
func CheckBootstrap(csr *certificatesv1.CertificateSigningRequest, node string, expected Expected) error {
	if !slices.Contains(csr.Spec.Groups, bootstrapGroup) {
		return fmt.Errorf("it was made by %q, which is not the bearer of a join token", csr.Spec.Username)
	}
	claim, known := expected[node]
	if !known {
		return fmt.Errorf("its join token is for node %q, which is not one of the manifest's hosts", node)
	}
	if err := claim.Check(); err != nil {
		return err
	}
	request, err := checkRequest(csr, certificatesv1.UsageClientAuth, node)
	if err != nil {
		return err
	}
	if len(request.DNSNames)+len(request.IPAddresses)+len(request.EmailAddresses)+len(request.URIs) > 0 {
		return errors.New("it asks for names or addresses, which a client certificate must not have")
	}
	return nil
}

// requestingNode returns the node that made the request.
func requestingNode(csr *certificatesv1.CertificateSigningRequest) (string, error) {
	node, isNode := strings.CutPrefix(csr.Spec.Username, nodeUser)
	if !isNode || node == "" || !slices.Contains(csr.Spec.Groups, nodeGroup) {
		return "", fmt.Errorf("it was made by %q, which is not a node", csr.Spec.Username)
	}
	return node, nil
}

// ServingNames returns the node that requests a serving certificate, and the requested names and addresses. The error
// says why no node may have such a certificate.
func ServingNames(csr *certificatesv1.CertificateSigningRequest) (node string, names []string, err error) {
	if node, err = requestingNode(csr); err != nil {
		return "", nil, err
	}
	request, err := checkRequest(csr, certificatesv1.UsageServerAuth, node)
	if err != nil {
		return node, nil, err
	}
	names = slices.Clone(request.DNSNames)
	for _, ip := range request.IPAddresses {
		names = append(names, ip.String())
	}
	return node, names, checkNames(request, node, names) // checks all but whose names they are
}

// checkRequest parses a request, and checks its usages and that its subject is the node.
func checkRequest(csr *certificatesv1.CertificateSigningRequest, use certificatesv1.KeyUsage, node string) (
	*x509.CertificateRequest, error) {
	if err := checkUsages(csr.Spec.Usages, use); err != nil {
		return nil, err
	}
	request, err := parseRequest(csr.Spec.Request)
	if err != nil {
		return nil, err
	}
	return request, checkSubject(request, node)
}

// parseRequest reads a single PEM request and checks that its sender holds the key.
func parseRequest(text []byte) (*x509.CertificateRequest, error) {
	block, rest := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(strings.TrimSpace(string(rest))) > 0 {
		return nil, errors.New("it does not hold one PEM certificate request")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("its certificate request cannot be read: %w", err)
	}
	if err := request.CheckSignature(); err != nil {
		return nil, fmt.Errorf("its certificate request is not signed with its own key: %w", err)
	}
	return request, nil
}

func checkUsages(usages []certificatesv1.KeyUsage, use certificatesv1.KeyUsage) error {
	if !slices.Contains(usages, use) || !slices.Contains(usages, certificatesv1.UsageDigitalSignature) {
		return fmt.Errorf("it does not ask for the usages digital signature and %s", use)
	}
	for _, usage := range usages {
		switch usage {
		case use, certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment:
		default:
			return fmt.Errorf("it asks for the usage %q, which such a certificate must not have", usage)
		}
	}
	return nil
}

func checkSubject(request *x509.CertificateRequest, node string) error {
	if got := request.Subject.CommonName; got != nodeUser+node {
		return fmt.Errorf("its common name is %q, want %q", got, nodeUser+node)
	}
	if got := request.Subject.Organization; !slices.Equal(got, []string{nodeGroup}) {
		return fmt.Errorf("its organizations are %q, want only %q", got, nodeGroup)
	}
	return nil
}

// checkNames compares names without regard to case and addresses by value.
func checkNames(request *x509.CertificateRequest, node string, allowed []string) error {
	if len(request.EmailAddresses)+len(request.URIs) > 0 {
		return errors.New("it asks for e-mail addresses or URIs, which a serving certificate must not have")
	}
	if len(request.DNSNames)+len(request.IPAddresses) == 0 {
		return errors.New("it asks for no name and no address")
	}
	names, addresses := map[string]bool{}, map[netip.Addr]bool{}
	for _, one := range allowed {
		if ip, err := netip.ParseAddr(one); err == nil {
			addresses[ip.Unmap().WithZone("")] = true
		} else {
			names[strings.ToLower(one)] = true
		}
	}
	for _, name := range request.DNSNames {
		if !names[strings.ToLower(name)] {
			return fmt.Errorf("it asks for the name %q, which the manifest does not give node %q", name, node)
		}
	}
	for _, raw := range request.IPAddresses {
		ip, ok := netip.AddrFromSlice(raw)
		if !ok || !addresses[ip.Unmap()] {
			return fmt.Errorf("it asks for the address %s, which the manifest does not give node %q", raw, node)
		}
	}
	return nil
}
