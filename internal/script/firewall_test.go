package script

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/addons/network/plugins"
	"kubeone/internal/componentconfig"
	"kubeone/internal/model/desired"
	"kubeone/internal/testutil/golden"
)

// fakeUFW keeps its rules, as "ufw show added" prints them, in a file, and those with a comment as ufw stores them. The
// file ufw-active says that it filters.
const fakeUFW = `
rules=@ROOT@/ufw-rules
store() {
	{ grep " comment 'kubeone'\$" $rules || true; } |
		sed "s/'kubeone'/6b7562656f6e65/; s/comment /comment=/" >@ROOT@/etc/ufw/user.rules
}
case "$1 ${2:-}" in
"status ") [ ! -e @ROOT@/ufw-active ] || echo "Status: active" ;;
"show added") sed 's/^/ufw /' $rules ;;
"--force enable") : >@ROOT@/ufw-active ;;
"disable ") rm -f @ROOT@/ufw-active ;;
"delete "* | "route delete")
	case $1 in route) shift 2 && rule="route $*" ;; *) shift && rule=$* ;; esac
	sed "/^$(printf '%s' "$rule" | sed 's,/,.,g')\( comment '.*'\)\{0,1\}\$/d" $rules >$rules.new
	mv $rules.new $rules
	store
	;;
*)
	printf '%s\n' "$*" | sed "s/ comment kubeone\$/ comment 'kubeone'/" >>$rules
	store
	;;
esac`

// firewalled is a box of a host with ufw, whose rules are given and that filters. Where firewalld is there too, it
// filters while the file firewalld-active is there.
func firewalled(t *testing.T, in Input, rules string) *box {
	t.Helper()
	b := newBox(t, in)
	b.write("ufw-rules", rules)
	b.write("ufw-active", "")
	b.mkdir("etc/ufw")
	b.command("ufw", strings.ReplaceAll(fakeUFW, "@ROOT@", b.root))
	b.command("systemctl", strings.ReplaceAll(`case "$*" in
"is-active --quiet firewalld") [ -e @ROOT@/firewalld-active ] || exit 3 ;;
"enable --now firewalld") : >@ROOT@/firewalld-active ;;
"disable --now firewalld") rm -f @ROOT@/firewalld-active ;;
esac`, "@ROOT@", b.root))
	b.command("firewall-cmd", `[ "$1" != --help ] || echo "  --policy=<policy>"`)
	return b
}

const (
	ownRules = "limit 22/tcp\nallow from 192.0.2.0/24 to any port 5432 proto tcp\n"
	policies = "etc/firewalld/policies/kubeone-"
)

func withFirewall(name, mode string) Input {
	in := input(name)
	in.Want.Firewall = mode
	return in
}

func TestPortsAreOpenedAndClosedInUFW(t *testing.T) {
	t.Parallel()
	b := firewalled(t, input("w-1"), ownRules)
	b.must("configure_firewalls")
	const ours = "allow 10250/tcp\nallow 8472/udp\nallow 30000:32767/tcp\nallow 30000:32767/udp\n" +
		"allow from 10.244.0.0/16\nroute allow from 10.244.0.0/16\nroute allow to 10.244.0.0/16\n"
	want := ownRules + strings.ReplaceAll(ours, "\n", " comment 'kubeone'\n")
	if diff := cmp.Diff(want, b.read("ufw-rules")); diff != "" {
		t.Error(diff)
	}
	if noted := b.read("etc/kubeone/firewall/ufw"); noted == "" || noted != b.read("etc/ufw/user.rules") {
		t.Errorf("recorded rules are %q", noted)
	}
	b.calls()
	b.must("configure_firewalls")
	for _, call := range b.calls() {
		if strings.Contains(call, "allow") || strings.Contains(call, "delete") {
			t.Errorf("a second run calls %q", call)
		}
	}
	b.must("restore_firewalls")
	if diff := cmp.Diff(ownRules, b.read("ufw-rules")); diff != "" {
		t.Errorf("after a reset:\n%s", diff)
	}
}

// What the operator has said of a port in ufw is neither replaced, which ufw would do, nor removed by a reset.
func TestRulesOfTheOperatorStayInUFW(t *testing.T) {
	t.Parallel()
	const own = "allow 10250/tcp\ndeny 8472/udp comment 'mine'\n" +
		"limit log 30000:32767/tcp\nroute reject to 10.244.0.0/16\n"
	b := firewalled(t, input("w-1"), own)
	said := b.must("configure_firewalls")
	for _, rule := range []string{"deny 8472/udp", "route reject to 10.244.0.0/16"} {
		if !strings.Contains(said, "which stays: "+rule) {
			t.Errorf("%q is not said:\n%s", rule, said)
		}
	}
	for _, call := range b.calls() {
		for _, rule := range []string{"10250", "8472", "30000:32767/tcp", "route allow to"} {
			if strings.HasSuffix(call, "comment kubeone") && strings.Contains(call, rule) {
				t.Errorf("calls %q", call)
			}
		}
	}
	b.must("restore_firewalls")
	if diff := cmp.Diff(own, b.read("ufw-rules")); diff != "" {
		t.Error(diff)
	}
}

func TestRulesNotWantedAnyMoreAreDeletedFromUFW(t *testing.T) {
	t.Parallel()
	b := firewalled(t, input("w-1"), "allow 31000:32000/tcp comment 'kubeone'\n"+
		"route allow to 10.9.0.0/16 comment 'kubeone'\n")
	b.must("configure_firewalls")
	for _, old := range []string{"31000", "10.9."} {
		if strings.Contains(b.read("ufw-rules"), old) {
			t.Errorf("%s is left:\n%s", old, b.read("ufw-rules"))
		}
	}
	b.command("ufw", `case "$*" in status) echo "Status: active" ;; "show added") ;; *) exit 1 ;; esac`)
	b.fails("configure_firewalls", `ufw does not take the rule "allow 10250/tcp"`)
}

func TestPortsAreOpenedAndClosedInFirewalld(t *testing.T) {
	t.Parallel()
	b := firewalled(t, input("cp-1"), "")
	b.must("ufw disable")
	b.write("firewalld-active", "")
	reloads := func() int { return strings.Count(strings.Join(b.calls(), "\n"), "firewall-cmd --reload") }
	b.must("configure_firewalls")
	for _, want := range []string{
		`<port port="6443" protocol="tcp">`, `<port port="2379-2380" protocol="tcp">`,
		`<source address="10.244.0.0/16">`, `<egress-zone name="HOST">`,
	} {
		if !strings.Contains(b.read(policies+"host.xml"), want) {
			t.Errorf("%s is not in %s", want, b.read(policies+"host.xml"))
		}
	}
	if !strings.Contains(b.read(policies+"forward.xml"), `<destination address="10.244.0.0/16">`) {
		t.Errorf("nothing is forwarded to pods: %s", b.read(policies+"forward.xml"))
	}
	if n := reloads(); n != 1 {
		t.Errorf("it was reloaded %d times", n)
	}
	b.must("configure_firewalls")
	if n := reloads(); n != 0 {
		t.Errorf("a second run reloads it %d times", n)
	}
	// A run that was killed between the files and the reload has recorded nothing.
	b.must("rm @ROOT@/etc/kubeone/firewall/firewalld; configure_firewalls")
	if n := reloads(); n != 1 {
		t.Errorf("after a run that was killed it was reloaded %d times", n)
	}
	b.must("restore_firewalls")
	if n := reloads(); n != 1 || len(b.tree("etc/firewalld")) > 0 {
		t.Errorf("a reset reloads it %d times and leaves %v", n, b.tree("etc/firewalld"))
	}
	b.must("restore_firewalls")
	if n := reloads(); n != 0 {
		t.Errorf("a second reset reloads it %d times", n)
	}
	b.command("firewall-cmd", "")
	b.fails("configure_firewalls", "this host's firewalld is older than 0.9")
}

func TestFirewallsAreSwitchedOffUntilAReset(t *testing.T) {
	t.Parallel()
	b := firewalled(t, withFirewall("w-1", desired.FirewallDisable), ownRules)
	b.write("firewalld-active", "")
	active := func() string {
		return strings.Join(strings.Fields(b.must("for f in ufw firewalld; do ! ${f}_filters || echo $f; done")), " ")
	}
	b.must("configure_firewalls")
	b.must("configure_firewalls")
	if got := active(); got != "" {
		t.Errorf("still active: %s", got)
	}
	b.must("restore_firewalls")
	if got := active(); got != "ufw firewalld" {
		t.Errorf("active after a reset: %q", got)
	}
	if diff := cmp.Diff(ownRules, b.read("ufw-rules")); diff != "" {
		t.Error(diff)
	}
	// They have their rules before they filter again.
	b.must("configure_firewalls; FIREWALL_MODE=manage; configure_firewalls")
	if got := active(); got != "ufw firewalld" || b.read("etc/kubeone/firewall/ufw") == "" ||
		!strings.Contains(b.read("ufw-rules"), "allow 10250/tcp") || b.read(policies+"host.xml") == "" {
		t.Errorf("active after a change of the manifest: %q\n%s", got, b.read("ufw-rules"))
	}
	// One that was removed meanwhile is not waited for.
	b.must("FIREWALL_MODE=disable; configure_firewalls; rm @ROOT@/bin/ufw")
	b.must("FIREWALL_MODE=manage; configure_firewalls")
	if left := b.tree("etc/kubeone/firewall"); left["/etc/kubeone/firewall/ufw.off"] != "" {
		t.Errorf("a firewall that is not there is still to be switched on: %v", left)
	}
}

func TestFirewallsAreLeftAlone(t *testing.T) {
	t.Parallel()
	b := firewalled(t, withFirewall("w-1", desired.FirewallIgnore), ownRules)
	b.must("configure_firewalls")
	if calls := b.calls(); calls[0] != "" {
		t.Errorf("calls %q", calls)
	}
	managed := firewalled(t, input("w-1"), ownRules)
	managed.must("ufw disable; configure_firewalls; restore_firewalls")
	if diff := cmp.Diff(ownRules, managed.read("ufw-rules")); diff != "" {
		t.Errorf("a firewall that does not filter:\n%s", diff)
	}
}

func TestRulesFollowTheManifest(t *testing.T) {
	t.Parallel()
	base := firewallDigest(input("w-1"))
	for name, change := range map[string]func(*Input){
		"role":       func(in *Input) { in.Host.Role = desired.ControlPlane },
		"pods":       func(in *Input) { in.Want.Network.PodSubnet = "10.200.0.0/16" },
		"IPv6":       func(in *Input) { in.Want.Network.PodSubnetIPv6 = "fd00::/48" },
		"node ports": func(in *Input) { in.Want.Network.NodePortRange = "31000-32000" },
		"plugin":     func(in *Input) { in.Want.Network.CNI.Ports = nil },
		"mode":       func(in *Input) { in.Want.Firewall = desired.FirewallDisable },
	} {
		in := input("w-1")
		change(&in)
		if firewallDigest(in) == base {
			t.Errorf("%s: the digest is the same", name)
		}
	}
	in := input("w-1")
	in.Want.Network.PodSubnetIPv6 = "fd00::/48"
	if got := rendered(t, in); !strings.Contains(got, "route allow to fd00::/48\n") ||
		!strings.Contains(got, `<rule family="ipv6">`) {
		t.Error("no rule for the IPv6 network of pods")
	}
}

const portsIntro = "# Ports and firewalls\n\n" +
	"The table is written from `internal/model/desired/network.go` and the network plugins;\n" +
	"`go test ./internal/script -run TestPortsAreDocumented -update` rewrites this page.\n"

func TestPortsAreDocumented(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(portsIntro + "\n| port | protocol | hosts | who listens | who must reach it |\n")
	b.WriteString("|---|---|---|---|---|\n")
	want := desired.Cluster{}
	want.Network.NodePortRange = "30000-32767"
	for _, name := range plugins.Names() {
		want.Network.CNI.Ports = append(want.Network.CNI.Ports, plugins.Ports(name)...)
	}
	for _, p := range want.Ports() {
		hosts := string(p.Role)
		if hosts == "" {
			hosts = "all"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", p.Ports, p.Protocol, hosts, p.What, p.From)
	}
	b.WriteString(strings.ReplaceAll(portsText, "~", "`"))
	golden.Check(t, "../../docs/ports.md", b.String())
}

// portsText is the rest of the page, with ~ for a backquote.
const portsText = `
The range of Services is the manifest's ~clusterNetwork.nodePortRange~. The API server, etcd and the kubelet
authenticate their clients with certificates. kubeone opens these ports to all addresses, so that hosts can join and
leave a cluster without changes on other hosts. VXLAN has no authentication. Close the ports of the network plugin to
all networks except that of the hosts, in the cloud's security group or the router.

Besides these ports, hosts need only the SSH port. The controller manager (10257) and the scheduler (10259) are probed
only on their own host. Open other ports yourself: 10256/tcp if a load balancer uses kube-proxy's health check to check
Nodes, and the ports of your network plugin if you set ~clusterNetwork.cni.external~.

## What kubeone does to a firewall

kubeone configures ufw and firewalld (0.9 or later) on hosts where they are active, as the manifest's ~firewall~ says:

| ~firewall~ | on a host with an active firewall | reset |
|---|---|---|
| ~manage~ (default) | It stays on. kubeone opens the ports above. | removes what kubeone added |
| ~disable~ | kubeone turns it off. | turns it on again |
| ~ignore~ | kubeone changes nothing. Open the ports yourself. | removes what kubeone added before |

- ufw: the rules have the comment ~kubeone~. They include ~allow from~ and ~route allow~ for the networks of pods,
  because ufw forwards nothing by default. ufw has only one rule for a port: if you have one, it stays.
- firewalld: two policies, ~kubeone-host~ and ~kubeone-forward~, in ~/etc/firewalld/policies~, for all zones. kubeone
  reloads firewalld, which drops settings that were made without ~--permanent~.
- Services need no rule: kube-proxy replaces their addresses with those of pods before a firewall sees a packet.
- Each host records its rules below ~/etc/kubeone/firewall~. If rules are missing, or the manifest needs others, the
  next plan reconfigures the host's firewall. It also finds a firewall that was turned on later. If closed ports stop
  the host's own components, kubeone cannot reconfigure the firewall: add the rules manually.
- If you change ~firewall~ from ~disable~ to ~manage~, kubeone opens the ports and turns the firewall on again.
- kubeone ignores other rules of nftables and iptables. Open the ports there yourself.
`

func firewallDigest(in Input) string {
	return componentconfig.Digests(in.Want, in.Host)[in.Host.ID][desired.FirewallDigest]
}
