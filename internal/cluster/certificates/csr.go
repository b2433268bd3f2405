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

// Expected contains the names and addresses that the certificates of each host may contain, by node name. The node name
// itself is also allowed, unless it belongs to another host (nodename.Names.Holder). Do not add addresses from Node
// objects: the kubelet that requests the certificate writes them.
type Expected map[string]nodename.Claim

// nodeUser and nodeGroup identify a kubelet.
// Source: https://kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests/#kubernetes-signers
const (
	nodeUser       = "system:node:"
	nodeGroup      = "system:nodes"
	bootstrapGroup = "system:bootstrappers" // the group of kubelets that use a join token
)

// CheckServing checks a request for a kubelet serving certificate. It returns the node name, and nil if the request may
// be approved: the kubelet of an expected node requests a server certificate for itself, and all names and addresses in
// it are expected for this node. Otherwise the error is the reason. The caller checks the signer and that the request
// is undecided.
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

// CheckBootstrap checks a request for the first client certificate of a kubelet, which is the identity of a Node. It
// returns nil if the request may be approved: the requester has a join token for this expected node and requests only
// the identity of this node. Otherwise the error is the reason. The caller checks that the token is valid and belongs
// to the requester.
func CheckBootstrap(csr *certificatesv1.CertificateSigningRequest, node string, expected Expected) error {
	if !slices.Contains(csr.Spec.Groups, bootstrapGroup) {
		return fmt.Errorf("it was created by %q, which is not a join token user", csr.Spec.Username)
	}
	claim, known := expected[node]
	if !known {
		return fmt.Errorf("its join token is for node %q, which is not a host in the manifest", node)
	}
	if err := claim.Check(); err != nil {
		return err
	}
	request, err := checkRequest(csr, certificatesv1.UsageClientAuth, node)
	if err != nil {
		return err
	}
	if len(request.DNSNames)+len(request.IPAddresses)+len(request.EmailAddresses)+len(request.URIs) > 0 {
		return errors.New("it requests names or addresses, which are not allowed in a client certificate")
	}
	return nil
}

// requestingNode returns the name of the node whose kubelet created the request. It fails for other users.
func requestingNode(csr *certificatesv1.CertificateSigningRequest) (string, error) {
	node, isNode := strings.CutPrefix(csr.Spec.Username, nodeUser)
	if !isNode || node == "" || !slices.Contains(csr.Spec.Groups, nodeGroup) {
		return "", fmt.Errorf("it was created by %q, which is not a node", csr.Spec.Username)
	}
	return node, nil
}

// ServingNames returns the node that requests a serving certificate, and the requested names and addresses. The error
// says why such a request cannot be approved for any node.
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
	// checks everything except whether the names belong to the node
	return node, names, checkNames(request, node, names)
}

// checkRequest parses the request, and checks its usages and that its subject is the node.
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

// parseRequest parses a single PEM request and verifies its signature, which proves that the requester has the key.
func parseRequest(text []byte) (*x509.CertificateRequest, error) {
	block, rest := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(strings.TrimSpace(string(rest))) > 0 {
		return nil, errors.New("it is not a single PEM certificate request")
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
		return fmt.Errorf("it does not request the usages digital signature and %s", use)
	}
	for _, usage := range usages {
		switch usage {
		case use, certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment:
		default:
			return fmt.Errorf("it requests the usage %q, which is not allowed", usage)
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

// checkNames checks that all requested names and addresses are allowed. It compares names case-insensitively and
// addresses by value.
func checkNames(request *x509.CertificateRequest, node string, allowed []string) error {
	if len(request.EmailAddresses)+len(request.URIs) > 0 {
		return errors.New("it requests e-mail addresses or URIs, which are not allowed in a serving certificate")
	}
	if len(request.DNSNames)+len(request.IPAddresses) == 0 {
		return errors.New("it does not request any name or address")
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
			return fmt.Errorf("it requests the name %q, which the manifest does not assign to node %q", name, node)
		}
	}
	for _, raw := range request.IPAddresses {
		ip, ok := netip.AddrFromSlice(raw)
		if !ok || !addresses[ip.Unmap()] {
			return fmt.Errorf("it requests the address %s, which the manifest does not assign to node %q", raw, node)
		}
	}
	return nil
}
