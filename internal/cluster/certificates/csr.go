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

// Expected are the hosts that may have certificates as Nodes, by node name, with the names and addresses that each may
// be reached at. The node's own name is allowed where it is not another's (nodename.Names.Holder). What a Node object
// says of its addresses does not belong here: the kubelet, who asks for the certificate, wrote it.
type Expected map[string]nodename.Claim

// nodeUser and nodeGroup are how a kubelet presents itself.
// Source: https://kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests/#kubernetes-signers
const (
	nodeUser       = "system:node:"
	nodeGroup      = "system:nodes"
	bootstrapGroup = "system:bootstrappers" // of one that has a join token only
)

// CheckServing decides about one request for a kubelet's serving certificate. It returns the node's name, and nil if
// the request may be approved: the kubelet of an expected node asks, for itself, for a server certificate, with only
// names and addresses that are expected of this node. Otherwise the error is the reason. It looks at nothing but its
// arguments; whether the request is for this signer and still open is not its subject.
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

// CheckBootstrap decides about one request for a kubelet's first client certificate, which is a Node's identity. It
// returns nil if the request may be approved: who asks has the join token that is for this expected node, and asks for
// this node's identity, and for nothing else. Otherwise the error is the reason. It looks at nothing but its
// arguments; whether the token is that of the request, and still good, is not its subject.
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

// requestingNode is the node that asks.
func requestingNode(csr *certificatesv1.CertificateSigningRequest) (string, error) {
	node, isNode := strings.CutPrefix(csr.Spec.Username, nodeUser)
	if !isNode || node == "" || !slices.Contains(csr.Spec.Groups, nodeGroup) {
		return "", fmt.Errorf("it was made by %q, which is not a node", csr.Spec.Username)
	}
	return node, nil
}

// ServingNames are the node that asks for a serving certificate, and the names and addresses that it asks for, as the
// request has them. The error is why nobody could have that certificate, whoever's the names are.
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
	return node, names, checkNames(request, node, names) // all of them would be allowed
}

// checkRequest reads a request that may be for a certificate of the node's, to be used for that and what goes with it.
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
