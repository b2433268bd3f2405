package manifest

import (
	"maps"

	"kubeone/api/kubeone/v1beta2"
)

// Secrets are the manifest's values that are nowhere else: not in the Cluster, its digest or the manifest's text.
// Printing a Secrets prints none of them.
type Secrets struct {
	// Registries is credentials by registry host, of the file with credentials and of the manifest.
	Registries map[string]v1beta2.ContainerdRegistryAuthConfig
	// AllRegistries says that registries that are not among them are to have no credentials on hosts: there is a file,
	// or the manifest has some itself. Otherwise it may be that somebody did not name the file.
	AllRegistries bool
	// Helm is credentials for chart repositories, by release name.
	Helm map[string]v1beta2.HelmAuth
	// HTTPProxy and HTTPSProxy are the proxies' URLs where they have a user and password in them.
	HTTPProxy, HTTPSProxy string
	// Files are the secret ones of Cluster.Extras, by name.
	Files map[string][]byte
}

// String hides the secrets from %v and %s.
func (Secrets) String() string { return "[secrets]" }

// GoString hides the secrets from %#v.
func (Secrets) GoString() string { return "[secrets]" }

// MarshalJSON hides the secrets from JSON.
func (Secrets) MarshalJSON() ([]byte, error) { return []byte(`"[secrets]"`), nil }

// secrets are those of the manifest and of the file with credentials, which goes before the manifest.
func (l *loader) secrets() Secrets {
	s := secretsOf(l.cluster)
	maps.Copy(s.Registries, l.registries)
	s.AllRegistries = l.registries != nil || len(s.Registries) > 0
	return s
}

func secretsOf(c *v1beta2.KubeOneCluster) Secrets {
	s := Secrets{Registries: map[string]v1beta2.ContainerdRegistryAuthConfig{}, Helm: map[string]v1beta2.HelmAuth{}}
	if r := c.ContainerRuntime.Containerd; r != nil {
		for host, registry := range r.Registries {
			if registry.Auth != nil {
				s.Registries[host] = *registry.Auth
			}
		}
	}
	for _, r := range c.HelmReleases {
		if r.Auth != nil {
			s.Helm[releaseName(r)] = *r.Auth
		}
	}
	if c.Proxy.HTTP != v1beta2.WithoutUser(c.Proxy.HTTP) {
		s.HTTPProxy = c.Proxy.HTTP
	}
	if c.Proxy.HTTPS != v1beta2.WithoutUser(c.Proxy.HTTPS) {
		s.HTTPSProxy = c.Proxy.HTTPS
	}
	return s
}

func releaseName(r v1beta2.HelmRelease) string {
	if r.ReleaseName != "" {
		return r.ReleaseName
	}
	return r.Chart
}
