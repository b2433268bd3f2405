package desired

import (
	"crypto/sha256"
	"encoding/hex"
)

// CloudAddon is the name of the addon with the Secrets of the cloud's controller manager and storage driver. It is a
// custom addon, except that kubeone contains its objects.
const CloudAddon = "cloud-credentials"

// CloudDigest is the name under which a host that joined with an external cloud notes that cloud.
const CloudDigest = "cloud"

// CloudNote returns the note of a host for an external cloud: a sha256 (hex), or "" without an external cloud.
func (c Cluster) CloudNote() string {
	if c.ExternalCloud == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(c.ExternalCloud))
	return hex.EncodeToString(sum[:])
}
