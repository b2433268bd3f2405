package observed

// The authorities whose keys can be rotated, by the names that the manifest's readers know.
const (
	ClusterCA       = "cluster"         // signs what API servers, kubelets and administrators show
	EtcdCA          = "etcd"            // signs what etcd's members and clients show each other
	FrontProxyCA    = "front-proxy"     // signs what the API server shows the API servers that extend it
	ServiceAccounts = "service-account" // the key pair that signs the tokens of service accounts
)

// Authorities returns the names of all of them, sorted.
func Authorities() []string { return []string{ClusterCA, EtcdCA, FrontProxyCA, ServiceAccounts} }

// Authority is what a control-plane host has of one of those who sign. Keys are named by the digest of their public
// half, "sha256:" and hex of the SubjectPublicKeyInfo.
type Authority struct {
	// Trusted are the keys that its components trust, or will once they start again: the one that signs first.
	Trusted []string `json:"trusted,omitempty"`
	// Next is the key that the host has been given to sign with later; "" if there is none.
	Next string `json:"next,omitempty"`
	// Begun is the phase of a rotation that has begun on the host and not ended: "learn", "use", "forget". It is Used
	// after the second.
	Begun string `json:"begun,omitempty"`
}

// Used is what a host notes that signs with a new key and still trusts the one before, until that is dropped.
const Used = "used"

// Signer returns the key that signs; "" if none is known.
func (a Authority) Signer() string {
	if len(a.Trusted) == 0 {
		return ""
	}
	return a.Trusted[0]
}
