package componentconfig

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/model/desired"
)

// The cache changes the configuration of kubelets. Without it, kubelets of an existing cluster stay as they are.
func TestKubeletsUseTheDNSCache(t *testing.T) {
	t.Parallel()
	without := input("w-1")
	with := input("w-1")
	with.Want.NodeLocalDNS = new(true)
	off := input("w-1")
	off.Want.NodeLocalDNS = new(false)
	const line = `ExecStartPre=-/bin/sh -c "exec ip address replace 169.254.20.10/32 dev lo scope host"`
	for name, c := range map[string]struct {
		in   Input
		dns  []string
		unit bool
	}{
		"unset": {without, []string{"10.96.0.10"}, false},
		"off":   {off, []string{"10.96.0.10"}, false},
		"on":    {with, []string{desired.NodeLocalDNSAddress, "10.96.0.10"}, true},
	} {
		if diff := cmp.Diff(any(c.dns), KubeletSettings(c.in)["clusterDNS"]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if slices.Contains(strings.Split(kubeletUnit(c.in.Want), "\n"), line) != c.unit {
			t.Errorf("%s: %s", name, kubeletUnit(c.in.Want))
		}
		if same := digestsOf(c.in)["kubelet"] == digestsOf(without)["kubelet"]; same == c.unit {
			t.Errorf("%s: the digest is the same: %t", name, same)
		}
	}
}
