package desired

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Endpoint is where clients find the API: a load balancer's address, or the first control-plane host's.
type Endpoint struct {
	Host             string   `json:"host"`
	Port             int      `json:"port"` // default 6443
	AlternativeNames []string `json:"alternativeNames,omitempty"`
	// Former are names and addresses at which the API was to be found before, and which certificates keep until the
	// operator drops them. They are not the manifest's: who proposes sets them to what the cluster says.
	Former []string `json:"former,omitempty"`
	// Later is the manifest's endpoint, "host:port", where that is not Host and Port because it cannot move there yet,
	// for the reason LaterWhy; "" if it is.
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

// URL returns the endpoint as kubeconfigs have it.
func (e Endpoint) URL() string { return "https://" + e.String() }

// Is reports whether the text is this endpoint as kubeadm has it: without a port it is port 6443.
func (e Endpoint) Is(text string) bool {
	host, port := splitEndpoint(text)
	return port == strconv.Itoa(e.Port) && SameName(host, e.Host)
}

// IsURL reports whether who is told to dial the URL dials this endpoint.
func (e Endpoint) IsURL(url string) bool {
	text, ok := strings.CutPrefix(strings.TrimSuffix(url, "/"), "https://")
	return ok && e.Is(text)
}

// AcceptsURL reports whether who is told to dial the URL dials this endpoint, or the one where it will be later.
func (e Endpoint) AcceptsURL(url string) bool {
	return e.IsURL(url) || e.Later != "" && e.At(e.Later).IsURL(url)
}

// At returns the endpoint of the same alternative names at another place, "host:port".
func (e Endpoint) At(text string) Endpoint {
	host, port := splitEndpoint(text)
	if n, err := strconv.Atoi(port); err == nil {
		e.Host, e.Port = host, n
	}
	return e
}

// splitEndpoint takes "host:port" apart. Without a port it is 6443.
func splitEndpoint(text string) (host, port string) {
	host, port = text, "6443"
	if i := strings.LastIndexByte(text, ':'); i >= 0 && !strings.HasSuffix(text, "]") {
		host, port = text[:i], text[i+1:]
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"), port
}

// IsEndpoint reports whether the API's endpoint is an address or the name of the host, so that it goes with it.
func (c Cluster) IsEndpoint(h Host) bool { return hasName(h.Names(), c.Endpoint.Host) }

// Dials reports whether the host itself is where the URL leads to.
func (h Host) Dials(url string) bool {
	text, ok := strings.CutPrefix(strings.TrimSuffix(url, "/"), "https://")
	host, _ := splitEndpoint(text)
	return ok && hasName(h.Names(), host)
}

// IsLoopback reports whether who dials the URL dials its own machine, which says nothing of where others find the API.
func IsLoopback(url string) bool {
	host, _ := splitEndpoint(strings.TrimPrefix(url, "https://"))
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

// SameName reports whether two texts are one DNS name, or one address in whatever form.
func SameName(a, b string) bool {
	if strings.EqualFold(a, b) {
		return true
	}
	if !strings.Contains(a, ":") && !strings.Contains(b, ":") {
		return false // only of IPv6 there are several forms, one of which may be that of an IPv4 address
	}
	one, err := netip.ParseAddr(a)
	other, otherErr := netip.ParseAddr(b)
	return err == nil && otherErr == nil && one.Unmap() == other.Unmap()
}

func hasName(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return SameName(n, name) })
}

// Missing returns those of the names that are not among the others.
func Missing(names, among []string) []string {
	var out []string
	for _, name := range names {
		if !hasName(among, name) && !hasName(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// Required returns the names that every API server's certificate must have: the endpoint's, its alternatives', and
// those that are kept.
func (e Endpoint) Required() []string {
	return Missing(append(append([]string{e.Host}, e.AlternativeNames...), e.Former...), []string{""})
}

// APINames returns the names and addresses by which clients may know the API: those that are required, and those of all
// control-plane hosts, so that any host can be asked through any of its addresses.
func (c Cluster) APINames() []string {
	names := c.Endpoint.Required()
	for _, h := range c.ControlPlane {
		names = append(names, h.PublicAddress, h.PrivateAddress, h.Hostname)
	}
	return Missing(append(names, "127.0.0.1", "localhost"), []string{""})
}

// FormerNames returns those names of a host's API server's certificate which nobody wants any more: neither the
// manifest, nor kubeadm, which adds the Node's name, the host's own address and those by which pods know the API.
func (c Cluster) FormerNames(h Host, node string, have []string) []string {
	pods := "kubernetes.default.svc"
	wanted := append(c.APINames(), node, h.PrivateAddress, "kubernetes", "kubernetes.default", pods,
		pods+"."+c.Network.DNSDomain)
	for _, subnet := range []string{c.Network.ServiceSubnet, c.Network.ServiceSubnetV6} {
		for part := range strings.SplitSeq(subnet, ",") {
			if prefix, err := netip.ParsePrefix(strings.TrimSpace(part)); err == nil {
				wanted = append(wanted, prefix.Masked().Addr().Next().String())
			}
		}
	}
	return Missing(have, wanted)
}
