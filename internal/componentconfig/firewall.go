package componentconfig

import (
	"encoding/xml"
	"net/netip"
	"strings"

	"kubeone/internal/model/desired"
)

// FirewallDir has a file for each firewall with kubeone's rules, named after it, with those rules, and NAME.off for one
// that was switched off.
const FirewallDir = "/etc/kubeone/firewall"

// FirewallFiles returns the rules of ufw, one a line, and the policies of firewalld that represent the table of ports.
func FirewallFiles(in Input) []Text {
	return []Text{
		{"file_ufw_rules", strings.Join(ufwRules(in), "\n")},
		{"file_firewalld_host", firewalldPolicy("HOST", in.Want.PortsOf(in.Host.Role), acceptPods(in, false))},
		{"file_firewalld_forward", firewalldPolicy("ANY", nil, acceptPods(in, true))},
	}
}

// ufwRules returns rules in the format of "ufw show added", which identifies them.
func ufwRules(in Input) []string {
	var out []string
	for _, p := range in.Want.PortsOf(in.Host.Role) {
		out = append(out, "allow "+strings.ReplaceAll(p.Ports, "-", ":")+"/"+p.Protocol)
	}
	for _, network := range podNetworks(in) {
		out = append(out, "allow from "+network.String(), "route allow from "+network.String(),
			"route allow to "+network.String())
	}
	return out
}

// podNetworks returns the pods' subnets for firewalls. Validation has already refused invalid ones.
func podNetworks(in Input) []netip.Prefix {
	var out []netip.Prefix
	for _, text := range in.Want.Network.PodNetworks() {
		if network, err := netip.ParsePrefix(text); err == nil {
			out = append(out, network.Masked())
		}
	}
	return out
}

// policy is a firewalld policy.
//
// Format: https://firewalld.org/documentation/man-pages/firewalld.policy.html
type policy struct {
	XMLName  xml.Name `xml:"policy"`
	Target   string   `xml:"target,attr"`
	Priority int      `xml:"priority,attr"`
	Short    string   `xml:"short"`
	From     zone     `xml:"ingress-zone"`
	To       zone     `xml:"egress-zone"`
	Ports    []port   `xml:"port"`
	Rules    []rich   `xml:"rule"`
}

type zone struct {
	Name string `xml:"name,attr"`
}

type port struct {
	Port     string `xml:"port,attr"`
	Protocol string `xml:"protocol,attr"`
}

type rich struct {
	Family      string   `xml:"family,attr"`
	Source      *address `xml:"source"`
	Destination *address `xml:"destination"`
	Accept      struct{} `xml:"accept"`
}

type address struct {
	Address string `xml:"address,attr"`
}

// firewalldPolicy returns a policy for traffic from any zone to that one. It applies before the zones and passes on to
// them what it does not accept.
func firewalldPolicy(to string, ports []desired.Port, rules []rich) string {
	p := policy{
		Target: "CONTINUE", Priority: -1, Short: "kubeone", From: zone{"ANY"}, To: zone{to}, Rules: rules,
	}
	for _, open := range ports {
		p.Ports = append(p.Ports, port{open.Ports, open.Protocol})
	}
	text, err := xml.MarshalIndent(p, "", "  ")
	if err != nil {
		panic(err) // of strings and numbers only
	}
	return strings.TrimSuffix(xml.Header, "\n") + "\n" + string(text)
}

// acceptPods returns rules that accept traffic from pods and, if forwarded, also to pods.
func acceptPods(in Input, forward bool) []rich {
	var out []rich
	for _, network := range podNetworks(in) {
		family, pods := "ipv4", &address{network.String()}
		if network.Addr().Is6() {
			family = "ipv6"
		}
		out = append(out, rich{Family: family, Source: pods})
		if forward {
			out = append(out, rich{Family: family, Destination: pods})
		}
	}
	return out
}

// firewallDigest returns the digest recorded when a host is prepared.
func firewallDigest(in Input) string {
	texts := []string{in.Want.Firewall}
	if in.Want.Firewall == desired.FirewallManage {
		for _, f := range FirewallFiles(in) {
			texts = append(texts, f.Content)
		}
	}
	return digestOf(texts...)
}
