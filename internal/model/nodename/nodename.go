// Package nodename says which host may have which name as a Node. What a host says of its own name is a claim: a Node's
// name is its identity in the cluster, and stands in its kubelet's certificates.
//
// The rules are applied in three places that do not trust each other: where it is decided what a host gets, where a
// join token is made, and where certificates are approved.
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

// Names are the names and addresses in a cluster that belong to a host, an object or the cluster itself. The zero value
// knows none.
type Names struct {
	holders  map[string][]holder // by canonical name
	recorded map[string]string   // the names of Nodes by the cluster's record, by host ID; of Nodes that are there
	network  desired.Network
}

type holder struct {
	kind kind
	host string // the ID of ofHost
	what string
}

// kind is what holds a name.
type kind int

const (
	ofCluster kind = iota // for everybody: no host ever has it by its own word
	ofPool                // a Machine, or a host for Machines
	ofHost                // a host of the manifest
)

// Of collects the names of a cluster: those that its manifest gives, and those in the cluster's record and pool as far
// as the API told them.
func Of(c desired.Cluster, api observed.API) Names {
	n := Names{holders: map[string][]holder{}, recorded: map[string]string{}, network: c.Network}
	n.addHolder(ofCluster, "", "every host's own name", "localhost")
	n.addHolder(ofCluster, "", "the API's endpoint", c.Endpoint.Host)
	n.addHolder(ofCluster, "", "the API's endpoint", c.Endpoint.AlternativeNames...)
	for _, h := range c.Hosts() {
		n.addHolder(ofHost, h.ID, "that of "+h.ID+" in the manifest", h.Names()...)
	}
	if r := api.Record; r != nil {
		n.addHolder(ofCluster, "", "the API's former endpoint", r.FormerEndpoints...)
		there := map[string]bool{}
		for _, node := range api.Nodes {
			there[node.Name] = true
		}
		for id, name := range r.Nodes {
			if there[name] || api.Reached != observed.Yes { // a Node that is gone binds no host to its name
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

// Recorded returns the name of the Node that the cluster's record has of the host with the ID; "" if it has none, or
// the Node is gone.
func (n Names) Recorded(host string) string { return n.recorded[host] }

func (n *Names) addHolder(kind kind, host, what string, names ...string) {
	for _, name := range names {
		if name != "" {
			name = Canonical(name)
			n.holders[name] = append(n.holders[name], holder{kind, host, what})
		}
	}
}

// Holder reports whose a name or an address is, if it cannot be that of the host with the ID: "the API's endpoint". It
// returns "" for a name that is free. An ID of no host of the manifest, "" for instance, has no name of its own.
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

// wildcardOf returns the wildcard that a certificate has for the name and its siblings: "*.example.com" for
// "api.example.com".
func wildcardOf(name string) string {
	_, parent, _ := strings.Cut(name, ".")
	return "*." + parent
}

func (n Names) isOfServices(ip netip.Addr) bool {
	for _, text := range []string{n.network.ServiceSubnet, n.network.ServiceSubnetV6} {
		if subnet, err := netip.ParsePrefix(text); err == nil && subnet.Contains(ip) {
			return true
		}
	}
	return false
}

// Canonical returns the one spelling of a name or an address that stands for all.
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
	// Names are the names and addresses that the manifest, or a Host object, gives the host.
	Names []string
	// Known says that the manifest or the cluster's record gives the host the name. Otherwise the host alone does.
	Known bool
	// Owner is the UID of the Machine whose host it is; "" for a host of the manifest.
	Owner string
	// Holder is whose the name is, if it is not the host's (Names.Holder); "" for a name that is free.
	Holder string
}

// Claim returns the right of a host of the manifest, or of a Machine's, to the name.
func (n Names) Claim(h desired.Host, node string) Claim {
	c := Claim{Node: node, Names: h.Names(), Owner: h.Labels[desired.OwnerLabel]}
	if node != "" && strings.EqualFold(h.Hostname, node) {
		c.Known = true
		return c
	}
	c.Known, c.Holder = node != "" && n.recorded[h.ID] == node, n.Holder(h.ID, node)
	_, err := netip.ParseAddr(node)
	if err == nil && c.Holder == "" && !c.Known && !ShareAddress(c.Names, []string{node}) {
		c.Holder = "an address that the manifest does not give it" // and for which its certificate would be good
	}
	return c
}

// Check returns why the host must not be the Node of that name; nil if it may, as far as names alone say.
func (c Claim) Check() error {
	switch {
	case c.Node == "":
		return errors.New("the host has no name")
	case c.Holder != "":
		return fmt.Errorf("the host calls itself %q, which is %s", c.Node, c.Holder)
	}
	return nil
}

// CheckNode returns why the host must not be the Node of that name, which exists with these addresses and labels; nil
// if it may. A name that the host alone gives does not suffice: the Node must have one of its addresses, and be no
// Machine's. That of a Machine's host must be the Machine's by its label, or have one of the host's addresses.
func (c Claim) CheckNode(addresses []string, labels map[string]string) error {
	alone := c.Owner != "" || !c.Known
	switch owner := labels[desired.OwnerLabel]; {
	case owner != "" && owner == c.Owner:
		return nil
	case owner != "" && alone:
		return fmt.Errorf("the Node %s is that of Machine %s", c.Node, owner)
	case alone && !ShareAddress(c.Names, addresses):
		return fmt.Errorf("the Node %s has other addresses than the host: %s", c.Node, strings.Join(addresses, ", "))
	}
	return nil
}

// ShareAddress reports whether one of a Node's addresses is among the names of a host, or the Node has no address:
// some have names only.
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
