package script

import (
	"strings"
	"testing"

	"kubeone/internal/model/desired"
)

// A Node has the private address of its host and, in a dual-stack cluster, the first IPv6 address of the manifest.
func TestAddressesOfNodes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"cp-1", "w-1"} {
		for family, second := range map[string]string{desired.IPv4: "", desired.DualStack: ",2001:db8::11"} {
			in := input(name)
			in.Want.Network.IPFamily = family
			in.Host.IPv6Addresses = []string{"2001:db8::11", "2001:db8::12"}
			text := head(rendered(t, in))
			want := "- name: node-ip\n    value: " + in.Host.PrivateAddress + second + "\n"
			if !strings.Contains(text, want) || strings.Contains(text, "2001:db8::12") {
				t.Errorf("%s in a cluster of %s: want %q, and no other address in\n%s", name, family, want, text)
			}
		}
	}
}
