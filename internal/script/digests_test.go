package script

import (
	"github.com/google/go-cmp/cmp"
	"kubeone/internal/componentconfig"
	"kubeone/internal/model/desired"
	"strings"
	"testing"
)

func TestRenderingIsStable(t *testing.T) {
	t.Parallel()
	first := rendered(t, everything())
	for range 20 {
		if again := rendered(t, everything()); again != first {
			t.Fatal(cmp.Diff(first, again))
		}
	}
}

// It is a note of its own, which a cluster without the setting does not have: its hosts are not changed for it.
func TestTheImageOfDNSHasItsOwnDigest(t *testing.T) {
	t.Parallel()
	in := input("w-1")
	without := componentconfig.Digests(in.Want, in.Host)[in.Host.ID]
	in.Want.Network.DNS.Repository = "r.example.com/dns"
	with := componentconfig.Digests(in.Want, in.Host)[in.Host.ID]
	note := with[desired.DNSImageDigest]
	if _, noted := without[desired.DNSImageDigest]; noted || len(note) != 64 {
		t.Errorf("without it %v, with it %v", without, with)
	}
	if text := rendered(t, in); !strings.Contains(text, "\nDNS_IMAGE='"+note+"'\n") {
		t.Error("the host does not note it")
	}
	delete(with, desired.DNSImageDigest)
	if diff := cmp.Diff(without, with); diff != "" {
		t.Errorf("other digests differ: %s", diff)
	}
}
