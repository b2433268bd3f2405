package desired

// Credentials are what hosts use to log in to registries and proxies. They are kept apart from the Cluster, which is
// shown, compared, recorded and signed. Printing Credentials prints none of them.
type Credentials struct {
	// Registries holds credentials by registry, "host" or "host:port". Nil means not known: hosts keep what they have.
	Registries map[string]RegistryAuth
	// HTTPProxy and HTTPSProxy are the proxies' URLs if they include a user, and perhaps a password; else "".
	HTTPProxy, HTTPSProxy string
}

// RegistryAuth holds credentials for one registry, as containerd reads them: a user, else a token, else Auth.
type RegistryAuth struct {
	Username, Password string
	Auth               string // "user:password" in base64
	IdentityToken      string
}

// hidden replaces credentials in printed text.
const hidden = "[secrets]"

// String hides the credentials from %v and %s.
func (Credentials) String() string { return hidden }

// GoString hides the credentials from %#v.
func (Credentials) GoString() string { return hidden }

// MarshalJSON hides the credentials from JSON.
func (Credentials) MarshalJSON() ([]byte, error) { return []byte(`"` + hidden + `"`), nil }

// String hides the credentials from %v and %s.
func (RegistryAuth) String() string { return hidden }

// GoString hides the credentials from %#v.
func (RegistryAuth) GoString() string { return hidden }

// MarshalJSON hides the credentials from JSON.
func (RegistryAuth) MarshalJSON() ([]byte, error) { return []byte(`"` + hidden + `"`), nil }
