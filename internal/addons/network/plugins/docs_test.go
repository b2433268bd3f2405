package plugins

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"kubeone/internal/addons/network"
	"kubeone/internal/model/desired"
	"kubeone/internal/testutil/golden"
)

const docsIntro = `# Network plugins

The manifest chooses the plugin with ~clusterNetwork.cni~ ([manifest.md](manifest.md)). Without it, the plugin is canal,
as with KubeOne. Use cilium for new clusters: it enforces NetworkPolicies, and was tested here. kubeone deploys these
plugins:

`

const docsText = `
The plugin is an [addon](addons.md) of its name: kubeone compares its objects with the cluster, and repairs them. The
container runtime of a host gets the CNI configuration of flannel only after flannel works there ([ADR
17](adr/0017-network-plugins.md)). A reset removes what a plugin leaves on a host.

Another kubeone may deploy another version of the plugin without an upgrade of Kubernetes. All hosts then get its images
from the bundle, or from the registry, before a pod of the plugin is replaced. Hosts note the version whose images they
have.

canal connects hosts with flannel's VXLAN, and Calico enforces NetworkPolicies. flannel does not enforce them. The
objects of canal come from the manifest that the Calico project publishes ([ADR 45](adr/0045-published-manifests.md)).
kubeone sets the pod network, ~canal.mtu~ and the images, and uses the interface of the default route. If no location
answers and the manifest is not in the cache, a plan that applies it cannot be carried out. The pods of canal write the
CNI configuration themselves, before Calico is ready on the host.

cilium connects hosts with VXLAN and enforces NetworkPolicies, both in eBPF. It is the [Helm release](helm.md)
~kube-system/cilium~ of the chart that the Cilium project publishes ([ADR 48](adr/0048-cilium.md)), and ~helm list~
shows it. ~clusterNetwork.cni.cilium~ has these fields:

| field | what it does | tested |
|---|---|---|
| ~version~ | chooses another patch version of 1.20 | no |
| ~kubeProxyReplacement: strict~ | cilium serves Services; needs ~kubeProxy.skipInstallation~ | yes |
| ~enableHubble~ | deploys Hubble, its relay and its user interface | no |
| ~enableL2Announcements~ | announces addresses of load balancers on the local network | IPv4 |
| ~enableGatewayAPI~ | serves the Gateway API, whose definitions you install first | no |
| ~enableLocalRedirectPolicy~ | allows local redirect policies | no |
| ~helmValues~ | [values of the chart](https://docs.cilium.io/en/stable/helm-reference/); they precede kubeone's | yes |

- kubeone sets the pod CIDRs of Nodes as the pod network, the API endpoint, the range of NodePorts, the images, and two
  operators, or one in a cluster of one host. A release in ~helmReleases~ must not have the same namespace and name.
- Without ~version~, a cluster gets the version in the table above, so another kubeone may upgrade cilium. The plan
  shows both versions and the digest of the chart.
- kubeone refuses an older version, and one that skips a minor version. To return to the patch before an upgrade, run
  ~helm rollback -n kube-system cilium~, and set ~version~ to it.
- With ~strict~, ~kubeone apply~ removes kube-proxy from a living cluster, after cilium runs on all Nodes. Rules of
  kube-proxy stay on a host until it restarts; cilium precedes them.
- The agents start Envoy themselves when a rule for HTTP, or the Gateway API, needs it. ~envoy.enabled: true~ in
  ~helmValues~ gives it a DaemonSet of its own. Rules for HTTP, WireGuard and IPsec were not tested.
- Images of Hubble and of features in ~helmValues~ keep their own registries. A [bundle for the
  manifest](bundle.md#for-a-manifest) contains them; other bundles do not.
- A reset leaves routing rules of cilium until the host restarts.

Tests on real hosts:

- flannel: everything, also in dual-stack clusters.
- cilium: installation, network policies, Services with and without kube-proxy, repair, an upgrade of Kubernetes, and
  reset; in a dual-stack cluster, installation, pods, Services, policies and an announced address. The programs of its
  images were built from the source of the same version, without Envoy. The images of the project, and an upgrade of
  cilium, were not tested.
- canal: installation, a changed MTU, repair and reset, with a stand-in for the manifest in which only flannel is real.
  The rules were tried on the published manifest. The containers of Calico, and so network policies, were not tested.

With ~external~, you deploy a plugin yourself, and Nodes stay NotReady until you do. kubeone then opens no
[ports](ports.md) for the plugin, and [bundles](bundle.md) do not contain its images.

## Replace the plugin

kubeone refuses another plugin in the manifest as long as pods of the deployed one exist: it cannot replace the plugin
without an interruption ([ADR 52](adr/0052-replacing-a-network-plugin.md)). You can replace flannel by cilium. From step
3 on, pods do not reach other pods until cilium runs.

1. Set ~clusterNetwork.cni~ to ~cilium: {}~ in the manifest.
2. Delete the pods of flannel: ~kubectl delete daemonset -n kube-flannel kube-flannel-ds --cascade=foreground~. Other
   pods keep their connections.
3. Run on every host: ~ip link delete flannel.1; ip link delete cni0; rm /etc/cni/net.d/10-flannel.conflist~.
4. Delete the pods that flannel connected: ~kubectl delete pods -A --field-selector spec.hostNetwork=false~. The new
   ones start when cilium runs.
5. Run ~kubeone apply~. The plan removes the other objects of flannel and installs cilium.

This was tested. Another plugin, also with ~external~, follows the same steps with its own names, which were not tested.

## Dual stack

With ~clusterNetwork.ipFamily: IPv4+IPv6~, Nodes and pods have an IPv4 and an IPv6 address each, and Services can have
both. Use flannel or cilium, or ~external~ with a plugin that supports it. canal supports only IPv4 here.

- Every host needs ~ipv6Addresses~ in the manifest. Its Node has ~privateAddress~, which must be an IPv4 address, and
  the first IPv6 address. kubeone sets both when the host joins.
- The API server, etcd and cluster DNS use IPv4. A Service has both addresses if it sets ~ipFamilyPolicy~ to
  ~PreferDualStack~ or ~RequireDualStack~.
- flannel uses the interface of the default route. Every host needs a default route for IPv6 through the same interface
  as for IPv4. kubeone does not prepare a host without one.
- kubeone turns IPv6 forwarding on. Linux then ignores router advertisements, unless ~accept_ra~ of the interface is 2.
  kubeone therefore does not prepare a host whose default route would disappear. systemd-networkd and NetworkManager
  handle router advertisements themselves.
- With flannel, IPv6 packets travel between hosts in VXLAN over IPv6, whose headers are 20 bytes longer. The hosts tell
  pods the smaller packet size. Pods must not drop ICMPv6. cilium uses VXLAN over IPv4 for both families.
- The Node of a [Machine](machines.md) has only its IPv4 address. Its pods have both.
- ~ipFamily~ and the subnets of an existing cluster cannot change.

The tables are written from ~internal/addons/network~; ~go test ./internal/addons/network/plugins -update~ rewrites this
page.
`

// The documentation lists what each plugin of the table consists of.
func TestPluginsAreDocumented(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(docsIntro + "| plugin | namespace | ports | CNI configuration |\n|---|---|---|---|\n")
	for _, p := range deployed() {
		var namespaces, ports, files []string
		for _, w := range p.Workloads() {
			if !slices.Contains(namespaces, "~"+w.Namespace+"~") {
				namespaces = append(namespaces, "~"+w.Namespace+"~")
			}
		}
		for _, r := range p.Ports(desired.CNI{}) {
			ports = append(ports, r.Ports+"/"+r.Protocol)
		}
		for _, f := range p.Config(cluster(t, p)).Files() {
			files = append(files, "~"+f+"~")
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", p.Name(), joinCells(namespaces), joinCells(ports), joinCells(files))
	}
	b.WriteString("\nTheir artifacts have one version for all versions of Kubernetes:\n\n" +
		"| plugin | artifact | version | official location |\n|---|---|---|---|\n")
	for _, p := range deployed() {
		for _, f := range p.Binaries() {
			fmt.Fprintf(&b, "| %s | %s | %s | ~https://github.com/%s/releases~ |\n", p.Name(), f.Name, f.Version, f.Project)
		}
		for _, m := range Published(p.Name(), "") {
			fmt.Fprintf(&b, "| %s | %s | %s | ~https://%s/%s~ |\n", p.Name(), m.Name, m.Version, m.Host, m.Path)
		}
		for _, i := range p.Images() {
			fmt.Fprintf(&b, "| %s | image | %s | ~%s/%s~ |\n", p.Name(), i.Tag, i.Registry, i.Repository)
		}
	}
	b.WriteString(docsText)
	golden.Check(t, "../../../../docs/network-plugins.md", strings.ReplaceAll(b.String(), "~", "`"))
}

// deployed returns the plugins that kubeone deploys.
func deployed() []network.Plugin {
	return slices.DeleteFunc(All(), func(p network.Plugin) bool { return len(p.Workloads()) == 0 })
}

func joinCells(words []string) string { return cmp.Or(strings.Join(words, ", "), "none") }
