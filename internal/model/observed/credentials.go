package observed

// Credential is one file with credentials on a host, compared with the caller's, without its content.
type Credential struct {
	Of string          `json:"of"` // for messages: "registry credentials of registry.example.com"
	Is CredentialState `json:"is"`
}

// CredentialState compares credentials on a host with the caller's.
type CredentialState string

// The states of credentials. Equal ones are not reported.
const (
	CredentialMissing CredentialState = "missing" // not on the host
	CredentialOther   CredentialState = "other"   // the host has others, or users other than root can read them
	CredentialExtra   CredentialState = "extra"   // the host has them, and they are no longer desired
	CredentialLeft    CredentialState = "left"    // the host has them, and the caller does not know them
)

// CredentialsToChange returns the credentials to change on the host.
func (h Host) CredentialsToChange() []Credential { return h.filterCredentials(false) }

// CredentialsLeft returns the credentials that stay on the host as they are, because the caller does not know them.
func (h Host) CredentialsLeft() []Credential { return h.filterCredentials(true) }

func (h Host) filterCredentials(left bool) []Credential {
	var out []Credential
	for _, c := range h.Credentials {
		if (c.Is == CredentialLeft) == left {
			out = append(out, c)
		}
	}
	return out
}
