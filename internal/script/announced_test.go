package script

import (
	"strings"
	"testing"
)

// Dual stack is not carried out: a Node is announced at its private address, and at no IPv6 address that the manifest
// says the host is known by.
func TestNodesAreAnnouncedAtTheirPrivateAddressAlone(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"cp-1", "w-1"} {
		in := input(name)
		in.Host.IPv6Addresses = []string{"2001:db8::11"}
		text := head(rendered(t, in))
		if want := "- name: node-ip\n    value: " + in.Host.PrivateAddress + "\n"; !strings.Contains(text, want) ||
			strings.Contains(text, "2001:db8::11") {
			t.Errorf("%s: want %q, and no other address in\n%s", name, want, text)
		}
	}
}
