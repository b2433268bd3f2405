package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"

	"kubeone/internal/componentconfig"
	"kubeone/internal/model/desired"
)

// SettingsRevision returns a digest of the desired settings of a worker without settings of its own. If it stays the
// same, the cluster changes no worker's settings. Versions and images do not count.
func SettingsRevision(want desired.Cluster) string {
	anybody := desired.Host{Role: desired.Worker}
	digests := componentconfig.Digests(want, anybody)[anybody.ID]
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(digests)) {
		sum.Write([]byte(name + "=" + digests[name] + "\n"))
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}
