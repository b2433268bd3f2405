package fleet

import (
	"fmt"
	"strings"

	"kubeone/test/lab/components"
)

// ignoredPreflight are the kubeadm checks that every lab host fails.
var ignoredPreflight = []string{"SystemVerification"}

// renderManifest returns the kubeone.yaml for the lab's hosts, without spare ones.
func renderManifest(l *Lab) []byte {
	var text strings.Builder
	fmt.Fprintf(&text, `apiVersion: kubeone.k8c.io/v1beta2
kind: KubeOneCluster
name: %s
versions:
  kubernetes: %q
apiEndpoint:
  host: %s
  port: 6443
cloudProvider:
  none: {}
clusterNetwork:
  podSubnet: 10.244.0.0/16
  serviceSubnet: 10.96.0.0/12
  ipFamily: %s
  cni:
    %s
  kubeProxy:
    nftables: {}
    conntrack:
      maxPerCore: 0
      min: 0
features:
  metricsServer:
    enable: false
  nodeLocalDNS:
    deploy: false
preflight:
  ignoreErrors: [%s]
`, l.Name, l.KubernetesVersion, l.Endpoint, l.ipFamily(), components.CNISettings(l.CNI),
		strings.Join(ignoredPreflight, ", "))
	writeHosts(&text, "controlPlane", l.ControlPlanes(), l.PinHostKeys)
	writeHosts(&text, "staticWorkers", l.Workers(), l.PinHostKeys)
	return []byte(text.String())
}

func (l *Lab) ipFamily() string {
	if l.SubnetIPv6 != "" {
		return "IPv4+IPv6"
	}
	return "IPv4"
}

func writeHosts(text *strings.Builder, section string, hosts []*Host, pin bool) {
	if len(hosts) == 0 {
		return
	}
	fmt.Fprintf(text, "%s:\n  hosts:\n", section)
	for _, host := range hosts {
		text.WriteString(ManifestEntry(host, pin))
	}
}

// ManifestEntry returns a host as an item of a manifest's list of hosts. With pin it contains the SSH key.
func ManifestEntry(host *Host, pin bool) string {
	entry := fmt.Sprintf(`    - publicAddress: %s
      privateAddress: %s
      hostname: %s
      sshUsername: %s
      sshPrivateKeyFile: %q
`, host.Address, host.Address, host.Hostname, host.SSHUser, host.SSHKey)
	if host.AddressIPv6 != "" {
		entry += fmt.Sprintf("      ipv6Addresses: [%q]\n", host.AddressIPv6)
	}
	if pin {
		entry += fmt.Sprintf("      sshHostPublicKey: %s\n", host.WireKey())
	}
	return entry
}
