package manifest

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"

	"kubeone/api/kubeone/v1beta2"
)

// textOf is the manifest as YAML.
func textOf(c *v1beta2.KubeOneCluster) ([]byte, error) {
	text, err := yaml.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("write the manifest as YAML: %w", err)
	}
	return text, nil
}

// digestOf returns the sha256 (hex) of the manifest. Where a host stands in a list, and what its ID is, change nothing
// about the cluster, and so nothing about the digest.
func digestOf(c *v1beta2.KubeOneCluster) (string, error) {
	ordered := *c
	ordered.ControlPlane.Hosts = withoutOrder(c.ControlPlane.Hosts)
	ordered.StaticWorkers.Hosts = withoutOrder(c.StaticWorkers.Hosts)
	text, err := textOf(&ordered)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// withoutOrder returns the hosts sorted by address, without their IDs.
func withoutOrder(hosts []v1beta2.HostConfig) []v1beta2.HostConfig {
	out := slices.Clone(hosts)
	for i := range out {
		out[i].ID = ""
	}
	slices.SortStableFunc(out, func(a, b v1beta2.HostConfig) int {
		return cmp.Compare(a.PublicAddress, b.PublicAddress)
	})
	return out
}
