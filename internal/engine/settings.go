package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"

	"kubeone/internal/componentconfig"
	"kubeone/internal/model/desired"
)

// SettingsRevision is a digest of the settings that a cluster wants of every worker that says nothing of its own: where
// it is the same, no worker's settings differ for the cluster's sake. Versions and images do not count.
func SettingsRevision(want desired.Cluster) string {
	anybody := desired.Host{Role: desired.Worker}
	digests := componentconfig.Digests(want, anybody)[anybody.ID]
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(digests)) {
		sum.Write([]byte(name + "=" + digests[name] + "\n"))
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}
