package observed

// Credential is one file with credentials on a host, compared with what the caller has. What is in it is not here.
type Credential struct {
	Of string          `json:"of"` // whose, in a reader's words: "registry credentials of registry.example.com"
	Is CredentialState `json:"is"`
}

// CredentialState is how credentials on a host stand to those that the caller has.
type CredentialState string

// The states of credentials. Those that are the same are not told.
const (
	CredentialMissing CredentialState = "missing" // the host does not have them
	CredentialOther   CredentialState = "other"   // the host has others, or they are not for root alone
	CredentialExtra   CredentialState = "extra"   // the host has them, and nobody wants them any more
	CredentialLeft    CredentialState = "left"    // the host has them, and the caller does not know them
)

// CredentialsToChange returns the credentials that the host is to have otherwise.
func (h Host) CredentialsToChange() []Credential { return h.expiringCredentials(false) }

// CredentialsLeft returns the credentials that stay on the host as they are, because the caller does not know them.
func (h Host) CredentialsLeft() []Credential { return h.expiringCredentials(true) }

func (h Host) expiringCredentials(left bool) []Credential {
	var out []Credential
	for _, c := range h.Credentials {
		if (c.Is == CredentialLeft) == left {
			out = append(out, c)
		}
	}
	return out
}
