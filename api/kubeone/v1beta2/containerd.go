package v1beta2

// ContainerRuntimeConfig configures the container runtime, containerd.
type ContainerRuntimeConfig struct {
	// Docker configured Docker, which is no longer supported. Deprecated: remove it.
	Docker *ContainerRuntimeDocker `json:"docker,omitempty" carried:"no"`
	// Containerd configures containerd.
	Containerd *ContainerRuntimeContainerd `json:"containerd,omitempty"`
}

// ContainerRuntimeDocker configured Docker.
type ContainerRuntimeDocker struct {
	// RegistryMirrors were mirrors of Docker Hub.
	RegistryMirrors []string `json:"registryMirrors,omitempty"`
}

// ContainerRuntimeContainerd configures containerd.
type ContainerRuntimeContainerd struct {
	// Registries sets where images of a registry come from, by the registry's host name; "*" matches all others.
	Registries map[string]ContainerdRegistry `json:"registries,omitempty"`
	// DeviceOwnershipFromSecurityContext gives devices to the user of the container's security context. Default: false.
	DeviceOwnershipFromSecurityContext *bool `json:"deviceOwnershipFromSecurityContext,omitempty"`
	// SandboxImage is the pause image. Default: the one for the Kubernetes version.
	SandboxImage string `json:"sandboxImage,omitempty"`
}

// ContainerdRegistry sets where images of one registry come from.
type ContainerdRegistry struct {
	// Mirrors are URLs or host names, tried in this order before the registry itself. Write http:// for a mirror that
	// uses plain HTTP. List a plain HTTP registry as its own mirror.
	Mirrors []string `json:"mirrors,omitempty"`
	// OverridePath is true if the mirrors' URLs already include the registry API path. Default: false.
	OverridePath bool `json:"overridePath,omitempty"`
	// TLSConfig configures TLS for the registry and its mirrors. Use certificateAuthority to trust your own CA.
	TLSConfig *ContainerdTLSConfig `json:"tlsConfig,omitempty"`
	// Auth holds credentials for the registry: a user and password, or auth, or identityToken. Prefer a file with
	// --credentials.
	Auth *ContainerdRegistryAuthConfig `json:"auth,omitempty" secret:"true"`
}

// ContainerdTLSConfig configures TLS for a registry and its mirrors.
type ContainerdTLSConfig struct {
	// InsecureSkipVerify accepts any certificate of the registry and its mirrors. Default: false.
	InsecureSkipVerify bool `json:"insecureSkipVerify,omitempty"`
}

// ContainerdRegistryAuthConfig holds credentials for a registry.
type ContainerdRegistryAuthConfig struct {
	// Username is the user name.
	Username string `json:"username,omitempty"`
	// Password is the password.
	Password string `json:"password,omitempty"`
	// Auth is `user:password` in base64.
	Auth string `json:"auth,omitempty"`
	// IdentityToken is a token instead of a password.
	IdentityToken string `json:"identityToken,omitempty"`
}
