package manifest

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"

	"kubeone/api/kubeone/v1beta2"
	"kubeone/internal/desired"
)

// textOf is the manifest as YAML.
func textOf(c *v1beta2.KubeOneCluster) ([]byte, error) {
	text, err := yaml.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("write the manifest as YAML: %w", err)
	}
	return text, nil
}

// digest is the sha256 (hex) of a manifest's text.
func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// setDigests sets the digests of the cluster whose manifest is written as that text. Where a host stands in a list, and
// what its ID is, change nothing about the cluster, so that only the digest for records of earlier versions minds the
// order.
func setDigests(cluster *desired.Cluster, c *v1beta2.KubeOneCluster, text []byte) (err error) {
	nameless := *c
	lists := []*[]v1beta2.HostConfig{&nameless.ControlPlane.Hosts, &nameless.StaticWorkers.Hosts}
	if eachList(lists, withoutIDs) {
		if text, err = textOf(&nameless); err != nil {
			return err
		}
	}
	cluster.OrderedDigest = digest(text)
	if eachList(lists, byAddress) {
		if text, err = textOf(&nameless); err != nil {
			return err
		}
	}
	cluster.Digest = digest(text)
	return nil
}

// eachList replaces each list by what the function makes of it, and reports whether any of them became another.
func eachList(lists []*[]v1beta2.HostConfig, of func([]v1beta2.HostConfig) ([]v1beta2.HostConfig, bool)) bool {
	changed := false
	for _, list := range lists {
		if other, differs := of(*list); differs {
			*list, changed = other, true
		}
	}
	return changed
}

func withoutIDs(hosts []v1beta2.HostConfig) ([]v1beta2.HostConfig, bool) {
	if !slices.ContainsFunc(hosts, func(h v1beta2.HostConfig) bool { return h.ID != "" }) {
		return hosts, false
	}
	out := slices.Clone(hosts)
	for i := range out {
		out[i].ID = ""
	}
	return out, true
}

func byAddress(hosts []v1beta2.HostConfig) ([]v1beta2.HostConfig, bool) {
	compare := func(a, b v1beta2.HostConfig) int { return cmp.Compare(a.PublicAddress, b.PublicAddress) }
	if slices.IsSortedFunc(hosts, compare) {
		return hosts, false
	}
	return slices.SortedStableFunc(slices.Values(hosts), compare), true
}
