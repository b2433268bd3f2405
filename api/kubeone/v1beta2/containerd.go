package v1beta2

// ContainerRuntimeConfig configures the container runtime, which is containerd.
type ContainerRuntimeConfig struct {
	// Docker was a container runtime once. Deprecated: remove it.
	Docker *ContainerRuntimeDocker `json:"docker,omitempty" carried:"no"`
	// Containerd configures containerd.
	Containerd *ContainerRuntimeContainerd `json:"containerd,omitempty"`
}

// ContainerRuntimeDocker configured Docker.
type ContainerRuntimeDocker struct {
	// RegistryMirrors was mirrors of Docker Hub.
	RegistryMirrors []string `json:"registryMirrors,omitempty"`
}

// ContainerRuntimeContainerd configures containerd.
type ContainerRuntimeContainerd struct {
	// Registries says where images of a registry come from, by the registry's host name; "*" is all others.
	Registries map[string]ContainerdRegistry `json:"registries,omitempty"`
	// DeviceOwnershipFromSecurityContext gives devices to the user of the container's security context. Default: false.
	DeviceOwnershipFromSecurityContext *bool `json:"deviceOwnershipFromSecurityContext,omitempty"`
	// SandboxImage is the pause image. Default: the one of the Kubernetes version.
	SandboxImage string `json:"sandboxImage,omitempty"`
}

// ContainerdRegistry says where images of one registry come from.
type ContainerdRegistry struct {
	// Mirrors is URLs or host names that are tried in this order before the registry itself. A mirror that speaks plain
	// HTTP is written with http://, and so is a registry that does, as its own mirror.
	Mirrors []string `json:"mirrors,omitempty"`
	// OverridePath says that the mirrors' URLs have the path of the registry API already. Default: false.
	OverridePath bool `json:"overridePath,omitempty"`
	// TLSConfig is about the certificates of the registry and its mirrors. An authority of one's own is trusted by
	// certificateAuthority.
	TLSConfig *ContainerdTLSConfig `json:"tlsConfig,omitempty"`
	// Auth is credentials for the registry; better in a file, which --credentials names.
	Auth *ContainerdRegistryAuthConfig `json:"auth,omitempty" secret:"true"`
}

// ContainerdTLSConfig is about the certificates of a registry and its mirrors.
type ContainerdTLSConfig struct {
	// InsecureSkipVerify accepts any certificate, of the registry and of its mirrors. Default: false.
	InsecureSkipVerify bool `json:"insecureSkipVerify,omitempty"`
}

// ContainerdRegistryAuthConfig is credentials for a registry: a user and password, or auth, or identityToken.
type ContainerdRegistryAuthConfig struct {
	// Username is the user.
	Username string `json:"username,omitempty"`
	// Password is the user's password.
	Password string `json:"password,omitempty"`
	// Auth is `user:password` in base64.
	Auth string `json:"auth,omitempty"`
	// IdentityToken is a token instead of a password.
	IdentityToken string `json:"identityToken,omitempty"`
}
