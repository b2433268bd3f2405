package desired

import (
	"crypto/sha256"
	"encoding/hex"
)

// DNS is the cluster's DNS server.
type DNS struct {
	Replicas int32 `json:"replicas,omitempty"` // 0: any number but none
	// Budget has a PodDisruptionBudget made for the servers; false takes it away, nil leaves what there is.
	Budget *bool `json:"budget,omitempty"`
	// Repository is where the image coredns is, as HOST[:PORT][/PATH]; "" is where the other images are.
	Repository string `json:"repository,omitempty"`
}

// DNSBudgetAddon is the name of the addon that has the budget of the cluster's DNS servers.
const DNSBudgetAddon = "coredns-pdb"

// DNSImageDigest is the name under which a host notes that it has the image of cluster DNS under the name that the
// manifest gives it. A host of a cluster whose manifest gives it none has no such note.
const DNSImageDigest = "dns-image"

// DNSImageNote is the digest that hosts note for the image of cluster DNS; "" where they note none.
func DNSImageNote(want Cluster) string {
	repository := want.Network.DNS.Repository
	if repository == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(repository))
	return hex.EncodeToString(sum[:])
}
