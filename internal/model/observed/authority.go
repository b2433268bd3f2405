package observed

// The authorities whose keys can be rotated, under the names that users see.
const (
	ClusterCA       = "cluster"         // signs what API servers, kubelets and administrators present
	EtcdCA          = "etcd"            // signs what the etcd members and clients present to each other
	FrontProxyCA    = "front-proxy"     // signs what the API server presents to API servers that extend it
	ServiceAccounts = "service-account" // the key pair that signs the tokens of service accounts
)

// Authorities returns the names of all authorities, sorted.
func Authorities() []string { return []string{ClusterCA, EtcdCA, FrontProxyCA, ServiceAccounts} }

// Authority is a control-plane host's state of one authority. Keys are named by the digest of their public half,
// "sha256:" and hex of the SubjectPublicKeyInfo.
type Authority struct {
	// Trusted lists the keys that its components trust, or will after a restart; the signing key first.
	Trusted []string `json:"trusted,omitempty"`
	// Next is the key that the host will sign with later; "" if there is none.
	Next string `json:"next,omitempty"`
	// BegunPhase is the rotation phase that has started on the host but not ended: "learn", "use" or "forget". After
	// "use" it is Used. "" means that no rotation is unfinished.
	BegunPhase string `json:"begun,omitempty"`
}

// Used is the phase of a host that signs with the new key and still trusts the previous one.
const Used = "used"

// Signer returns the key that signs; "" if none is known.
func (a Authority) Signer() string {
	if len(a.Trusted) == 0 {
		return ""
	}
	return a.Trusted[0]
}
