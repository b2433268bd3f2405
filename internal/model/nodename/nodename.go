// Package nodename decides which host may have which name as a Node. A host only claims its own name: a Node's name is
// its identity in the cluster, and is in its kubelet's certificates.
//
// Three places that do not trust each other apply the rules: decisions, join tokens, and the approval of certificates.
//
// The package is pure: no I/O, no clock.
package nodename

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
)

// Names holds the names and addresses in a cluster that belong to a host, an object or the cluster itself. The zero
// value has none.
type Names struct {
	holders  map[string][]holder // by canonical name
	recorded map[string]string   // by host ID, the names of existing Nodes in the cluster record
	network  desired.Network
}

type holder struct {
	kind kind
	host string // a host's ID, for ofHost
	what string
}

// kind says what holds a name.
type kind int

const (
	ofCluster kind = iota // for all clients: a host cannot claim it
	ofPool                // a Machine, or a host for Machines
	ofHost                // a host in the manifest
)

// Of collects the names of a cluster: the manifest's, and those in the cluster record and pool, as far as the API
// reported them.
func Of(c desired.Cluster, api observed.API) Names {
	n := Names{holders: map[string][]holder{}, recorded: map[string]string{}, network: c.Network}
	n.addHolder(ofCluster, "", "every host's own name", "localhost")
	n.addHolder(ofCluster, "", "the API endpoint", c.Endpoint.Host)
	n.addHolder(ofCluster, "", "the API endpoint", c.Endpoint.AlternativeNames...)
	for _, h := range c.Hosts() {
		n.addHolder(ofHost, h.ID, "the name of "+h.ID+" in the manifest", h.Names()...)
	}
	if r := api.Record; r != nil {
		n.addHolder(ofCluster, "", "the former API endpoint", r.FormerEndpoints...)
		existing := map[string]bool{}
		for _, node := range api.Nodes {
			existing[node.Name] = true
		}
		for id, name := range r.Nodes {
			if existing[name] || api.Reached != observed.Yes { // a deleted Node binds no host to its name
				n.recorded[id] = name
				n.addHolder(ofHost, id, "the Node of "+id, name)
			}
		}
	}
	if p := api.Pool; p != nil {
		for _, h := range p.Hosts {
			n.addHolder(ofPool, "", "the Host "+h.Name, h.Name, h.Address)
		}
		for _, m := range p.Machines {
			n.addHolder(ofPool, "", "the Node of Machine "+m.ID(), m.Node)
		}
	}
	return n
}

// Recorded returns the Node name in the cluster record for the host with the ID; "" if there is none, or the Node does
// not exist.
func (n Names) Recorded(host string) string { return n.recorded[host] }

func (n *Names) addHolder(kind kind, host, what string, names ...string) {
	for _, name := range names {
		if name != "" {
			name = Canonical(name)
			n.holders[name] = append(n.holders[name], holder{kind, host, what})
		}
	}
}

// Holder returns the owner of a name or address that the host with the ID must not have: "the API endpoint". It returns
// "" for a free name. An ID without a host in the manifest, such as "", has no name of its own.
func (n Names) Holder(host, name string) string {
	name = Canonical(name)
	held := slices.Concat(n.holders[name], n.holders[wildcardOf(name)])
	own := slices.ContainsFunc(held, func(h holder) bool { return h.kind == ofHost && h.host == host })
	for _, h := range held {
		if h.kind == ofCluster || !own {
			return h.what
		}
	}
	if ip, err := netip.ParseAddr(name); err == nil {
		if ip.IsLoopback() || ip.IsUnspecified() || n.isOfServices(ip) {
			return "no host's address"
		}
		return ""
	}
	if name == "kubernetes" || strings.HasPrefix(name, "kubernetes.") || name == "svc" ||
		strings.HasSuffix(name, ".svc") || n.network.DNSDomain != "" && (name == n.network.DNSDomain ||
		strings.HasSuffix(name, "."+n.network.DNSDomain)) {
		return "the name of a Service"
	}
	return ""
}

// wildcardOf returns a certificate's wildcard for the name and its siblings: "*.example.com" for "api.example.com".
func wildcardOf(name string) string {
	_, parent, _ := strings.Cut(name, ".")
	return "*." + parent
}

func (n Names) isOfServices(ip netip.Addr) bool {
	for _, text := range n.network.ServiceNetworks() {
		if subnet, err := netip.ParsePrefix(text); err == nil && subnet.Contains(ip) {
			return true
		}
	}
	return false
}

// Canonical returns one spelling for all spellings of a name or address.
func Canonical(name string) string {
	if ip, err := netip.ParseAddr(name); err == nil {
		return ip.Unmap().WithZone("").String()
	}
	return strings.ToLower(strings.TrimSuffix(name, "."))
}

// Claim is a host's right to be the Node of a name.
type Claim struct {
	// Node is the name.
	Node string
	// Names holds the names and addresses of the host in the manifest or its Host object.
	Names []string
	// Known says that the manifest or the cluster record gives the host the name. Otherwise only the host claims it.
	Known bool
	// Owner is the UID of the host's Machine; "" for a host in the manifest.
	Owner string
	// Holder owns the name, if that is not the host (see Names.Holder); "" for a free name.
	Holder string
}

// Claim returns the right of a host, of the manifest or a Machine, to the name.
func (n Names) Claim(h desired.Host, node string) Claim {
	c := Claim{Node: node, Names: h.Names(), Owner: h.Labels[desired.OwnerLabel]}
	if node != "" && strings.EqualFold(h.Hostname, node) {
		c.Known = true
		return c
	}
	c.Known, c.Holder = node != "" && n.recorded[h.ID] == node, n.Holder(h.ID, node)
	_, err := netip.ParseAddr(node)
	if err == nil && c.Holder == "" && !c.Known && !ShareAddress(c.Names, []string{node}) {
		c.Holder = "an address that the manifest does not assign to it" // and its certificate would be valid for it
	}
	return c
}

// Check returns why the host must not be the Node with that name; nil if it may, as far as names tell.
func (c Claim) Check() error {
	switch {
	case c.Node == "":
		return errors.New("the host has no name")
	case c.Holder != "":
		return fmt.Errorf("the host reports the name %q, which is %s", c.Node, c.Holder)
	}
	return nil
}

// CheckNode returns why the host must not be the existing Node with that name, with these addresses and labels; nil if
// it may. A name that only the host claims does not suffice: the Node must have one of the host's addresses and belong
// to no Machine. The Node of a Machine's host must have the Machine's label or one of the host's addresses.
func (c Claim) CheckNode(addresses []string, labels map[string]string) error {
	alone := c.Owner != "" || !c.Known
	switch owner := labels[desired.OwnerLabel]; {
	case owner != "" && owner == c.Owner:
		return nil
	case owner != "" && alone:
		return fmt.Errorf("the Node %s belongs to Machine %s", c.Node, owner)
	case alone && !ShareAddress(c.Names, addresses):
		return fmt.Errorf("the addresses of the Node %s differ from those of the host: %s", c.Node,
			strings.Join(addresses, ", "))
	}
	return nil
}

// ShareAddress reports whether one of a Node's addresses is among the names of a host, or the Node has no address,
// because some have names only.
func ShareAddress(names, addresses []string) bool {
	others := false
	for _, address := range addresses {
		ip, err := netip.ParseAddr(address)
		if err != nil {
			continue
		}
		others = true
		if slices.ContainsFunc(names, func(name string) bool {
			own, err := netip.ParseAddr(name)
			return err == nil && own.Unmap() == ip.Unmap()
		}) {
			return true
		}
	}
	return !others
}
