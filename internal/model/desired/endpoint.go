package desired

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Endpoint is the API's address for clients: a load balancer's, or the first control-plane host's.
type Endpoint struct {
	Host             string   `json:"host"`
	Port             int      `json:"port"` // default 6443
	AlternativeNames []string `json:"alternativeNames,omitempty"`
	// Former lists former names and addresses of the API that certificates keep until the operator drops them. They
	// come from the cluster, not from the manifest.
	Former []string `json:"former,omitempty"`
	// Later is the manifest's endpoint, "host:port", if the API cannot move there yet, and LaterWhy says why. It is ""
	// if Host and Port are the manifest's.
	Later    string `json:"later,omitempty"`
	LaterWhy string `json:"laterWhy,omitempty"`
}

// String returns the endpoint as "host:port", an IPv6 address in brackets.
func (e Endpoint) String() string {
	host := e.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + strconv.Itoa(e.Port)
}

// URL returns the endpoint as in kubeconfigs.
func (e Endpoint) URL() string { return "https://" + e.String() }

// Is reports whether the text is this endpoint in kubeadm's notation, where port 6443 can be omitted.
func (e Endpoint) Is(text string) bool {
	host, port := splitEndpoint(text)
	return port == strconv.Itoa(e.Port) && SameName(host, e.Host)
}

// IsURL reports whether the URL leads to this endpoint.
func (e Endpoint) IsURL(url string) bool {
	text, ok := strings.CutPrefix(strings.TrimSuffix(url, "/"), "https://")
	return ok && e.Is(text)
}

// AcceptsURL reports whether the URL leads to this endpoint, or to its later one.
func (e Endpoint) AcceptsURL(url string) bool {
	return e.IsURL(url) || e.Later != "" && e.At(e.Later).IsURL(url)
}

// At returns the endpoint moved to "host:port", with the same alternative names.
func (e Endpoint) At(text string) Endpoint {
	host, port := splitEndpoint(text)
	if n, err := strconv.Atoi(port); err == nil {
		e.Host, e.Port = host, n
	}
	return e
}

// splitEndpoint splits "host:port". The default port is 6443.
func splitEndpoint(text string) (host, port string) {
	host, port = text, "6443"
	if i := strings.LastIndexByte(text, ':'); i >= 0 && !strings.HasSuffix(text, "]") {
		host, port = text[:i], text[i+1:]
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"), port
}

// IsEndpoint reports whether the API endpoint is an address or the name of the host, so that it fails with the host.
func (c Cluster) IsEndpoint(h Host) bool { return hasName(h.Names(), c.Endpoint.Host) }

// Dials reports whether the URL leads to the host itself.
func (h Host) Dials(url string) bool {
	text, ok := strings.CutPrefix(strings.TrimSuffix(url, "/"), "https://")
	host, _ := splitEndpoint(text)
	return ok && hasName(h.Names(), host)
}

// IsLoopback reports whether the URL leads to the local machine, which says nothing about the address for others.
func IsLoopback(url string) bool {
	host, _ := splitEndpoint(strings.TrimPrefix(url, "https://"))
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

// SameName reports whether a and b are the same DNS name, or the same IP address even if it is written differently.
func SameName(a, b string) bool {
	if strings.EqualFold(a, b) {
		return true
	}
	if !strings.Contains(a, ":") && !strings.Contains(b, ":") {
		// Only IPv6 notation, including IPv4-mapped addresses, allows several spellings of one address.
		return false
	}
	one, err := netip.ParseAddr(a)
	other, otherErr := netip.ParseAddr(b)
	return err == nil && otherErr == nil && one.Unmap() == other.Unmap()
}

func hasName(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return SameName(n, name) })
}

// Missing returns the names that are not among the others.
func Missing(names, among []string) []string {
	var out []string
	for _, name := range names {
		if !hasName(among, name) && !hasName(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// Required returns the names that every API server certificate must have: the endpoint's, its alternative names, and
// those that are kept.
func (e Endpoint) Required() []string {
	return Missing(append(append([]string{e.Host}, e.AlternativeNames...), e.Former...), []string{""})
}

// APINames returns the names and addresses of the API for clients: the required ones, and those of all control-plane
// hosts, so that every host can be reached at each of its addresses. kubeadm itself adds the first Service address of
// one family; a dual-stack cluster has two.
func (c Cluster) APINames() []string {
	names := c.Endpoint.Required()
	for _, h := range c.ControlPlane {
		names = append(names, h.PublicAddress, h.PrivateAddress, h.Hostname)
		names = append(names, c.Network.NodeAddresses(h)...)
	}
	if c.Network.IsDualStack() {
		names = append(names, c.Network.FirstServiceAddresses()...)
	}
	return Missing(append(names, "127.0.0.1", "localhost"), []string{""})
}

// FormerNames returns the names in a host's API server certificate that are no longer desired. The manifest does not
// have them, and kubeadm does not add them as the Node's name, the host's own address or the API's names for pods.
func (c Cluster) FormerNames(h Host, node string, have []string) []string {
	pods := "kubernetes.default.svc"
	wanted := append(c.APINames(), node, h.PrivateAddress, "kubernetes", "kubernetes.default", pods,
		pods+"."+c.Network.DNSDomain)
	return Missing(have, append(wanted, c.Network.FirstServiceAddresses()...))
}
