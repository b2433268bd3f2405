package componentconfig

import (
	"encoding/xml"
	"net/netip"
	"strings"

	"kubeone/internal/model/desired"
)

// FirewallDir has a file for each firewall that has rules of ours, named after it, with those rules, and NAME.off for
// one that was switched off.
const FirewallDir = "/etc/kubeone/firewall"

// FirewallFiles are the rules of ufw, one a line, and the policies of firewalld, which stand for the table of ports.
func FirewallFiles(in Input) []Text {
	return []Text{
		{"file_ufw_rules", strings.Join(ufwRules(in), "\n")},
		{"file_firewalld_host", firewalldPolicy("HOST", in.Want.PortsOf(in.Host.Role), acceptPods(in, false))},
		{"file_firewalld_forward", firewalldPolicy("ANY", nil, acceptPods(in, true))},
	}
}

// ufwRules are in the form in which "ufw show added" prints them, by which they are recognised.
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

// podNetworks are the networks of pods, as firewalls write them. What is no network is refused before.
func podNetworks(in Input) []netip.Prefix {
	var out []netip.Prefix
	for _, text := range in.Want.Network.PodNetworks() {
		if network, err := netip.ParsePrefix(text); err == nil {
			out = append(out, network.Masked())
		}
	}
	return out
}

// policy is a policy of firewalld.
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

// firewalldPolicy is a policy for what comes from any zone to that one. It is asked before the zones, and leaves to
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

// acceptPods are rules that accept what comes from pods and, where that is forwarded, also what goes to them.
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

// firewallDigest is recorded when a host is prepared.
func firewallDigest(in Input) string {
	texts := []string{in.Want.Firewall}
	if in.Want.Firewall == desired.FirewallManage {
		for _, f := range FirewallFiles(in) {
			texts = append(texts, f.Content)
		}
	}
	return digestOf(texts...)
}
