package desired

// Credentials are what hosts need to be let in by registries and proxies. They are beside the Cluster, not in it: what
// is shown, compared, recorded and signed is made of a Cluster. Printing Credentials prints none of them.
type Credentials struct {
	// Registries are credentials by registry, "host" or "host:port". Nil is not known: hosts keep what they have.
	Registries map[string]RegistryAuth
	// HTTPProxy and HTTPSProxy are the proxies' URLs where they have a user in them, and perhaps a password; else "".
	HTTPProxy, HTTPSProxy string
}

// RegistryAuth are credentials for one registry, as containerd reads them: of a user, else a token, else Auth.
type RegistryAuth struct {
	Username, Password string
	Auth               string // "user:password" in base64
	IdentityToken      string
}

// hidden stands for credentials wherever they are printed.
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
