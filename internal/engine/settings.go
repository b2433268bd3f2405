package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"

	"kubeone/internal/componentconfig"
	"kubeone/internal/model/desired"
)

// SettingsRevision returns a digest of the settings that all workers share. It changes whenever a change of the cluster
// changes worker settings. It does not depend on versions and images.
func SettingsRevision(want desired.Cluster) string {
	want.HostAddons = nil // hosts of Machines have none
	anybody := desired.Host{Role: desired.Worker}
	digests := componentconfig.Digests(want, anybody)[anybody.ID]
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(digests)) {
		sum.Write([]byte(name + "=" + digests[name] + "\n"))
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}
