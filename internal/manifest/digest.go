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

// digest is the sha256 (hex) of a manifest's text.
func digest(c *v1beta2.KubeOneCluster) (string, error) {
	text, err := yaml.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("write the manifest as YAML: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// setDigests sets the cluster's digests. Where a host stands in a list, and what its ID is, change nothing about the
// cluster, so that only the digest for records of earlier versions minds the order.
func setDigests(cluster *desired.Cluster, c *v1beta2.KubeOneCluster) error {
	nameless := *c
	nameless.ControlPlane.Hosts = withoutIDs(c.ControlPlane.Hosts)
	nameless.StaticWorkers.Hosts = withoutIDs(c.StaticWorkers.Hosts)
	var err error
	if cluster.OrderedDigest, err = digest(&nameless); err != nil {
		return err
	}
	for _, hosts := range [][]v1beta2.HostConfig{nameless.ControlPlane.Hosts, nameless.StaticWorkers.Hosts} {
		slices.SortFunc(hosts, func(a, b v1beta2.HostConfig) int {
			return cmp.Compare(a.PublicAddress, b.PublicAddress)
		})
	}
	cluster.Digest, err = digest(&nameless)
	return err
}

func withoutIDs(hosts []v1beta2.HostConfig) []v1beta2.HostConfig {
	out := slices.Clone(hosts)
	for i := range out {
		out[i].ID = ""
	}
	return out
}
