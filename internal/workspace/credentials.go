package workspace

import (
	"encoding/base64"
	"strings"

	"kubeone/api/kubeone/v1beta2"
	"kubeone/internal/model/desired"
)

// credentials are what hosts are to have for registries and proxies.
func (w *Workspace) credentials() *desired.Credentials {
	s := w.loaded.Secrets
	out := &desired.Credentials{HTTPProxy: s.HTTPProxy, HTTPSProxy: s.HTTPSProxy}
	if !s.AllRegistries {
		return out
	}
	out.Registries = make(map[string]desired.RegistryAuth, len(s.Registries))
	for registry, auth := range s.Registries {
		out.Registries[registry] = desired.RegistryAuth(auth)
	}
	return out
}

// secretsOf are the parts of a registry's credentials that are secret.
func secretsOf(r v1beta2.ContainerdRegistryAuthConfig) []string {
	out := []string{r.Password, r.Auth, r.IdentityToken}
	if text, err := base64.StdEncoding.DecodeString(r.Auth); err == nil {
		_, password, _ := strings.Cut(string(text), ":")
		out = append(out, password)
	}
	return out
}
