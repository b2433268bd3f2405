package componentconfig

import (
	"fmt"
	"strings"

	"kubeone/internal/model/desired"
)

const (
	// CredentialsDir is where containerd reads credentials for registries. Files there with credentialPrefix are
	// kubeone's.
	CredentialsDir = "/etc/containerd/conf.d"
	// ProxyFile is containerd's environment file with the proxies' users and passwords.
	ProxyFile = "/etc/kubeone/proxy.env"

	credentialPrefix = CredentialsDir + "/kubeone-registry-"
	credentialSuffix = ".toml"
)

// CredentialFiles returns the desired contents of a host's files with credentials, by path. They are secrets.
func CredentialFiles(c desired.Credentials) map[string]string {
	out := map[string]string{}
	for registry, auth := range c.Registries {
		out[credentialPath(registry)] = registryAuthTOML(registry, auth, c.Registries)
	}
	if text := proxyEnvironment(c); text != "" {
		out[ProxyFile] = text
	}
	return out
}

// CredentialOf describes, for messages, the credentials in the file of that path; "" for any other file. Known reports
// whether the host must have the caller's credentials; else it keeps what it has.
func CredentialOf(file string, c desired.Credentials) (of string, known bool) {
	if file == ProxyFile {
		return "proxy credentials", true
	}
	name, ours := strings.CutPrefix(file, credentialPrefix)
	name, toml := strings.CutSuffix(name, credentialSuffix)
	if !ours || !toml || name == "" {
		return "", false
	}
	name = strings.NewReplacer("%5B", "[", "%5D", "]").Replace(name)
	return "registry credentials of " + name, c.Registries != nil
}

// credentialPath returns the file of one registry. It escapes brackets, which are patterns to a shell.
func credentialPath(registry string) string {
	return credentialPrefix + strings.NewReplacer("[", "%5B", "]", "%5D").Replace(registry) + credentialSuffix
}

// Images of Docker Hub are named after dockerHub, and stored in the registry dockerHubAPI.
const dockerHub, dockerHubAPI = "docker.io", "registry-1.docker.io"

// registryAuthTOML returns a part of containerd's configuration. containerd matches the name of the host it connects
// to.
func registryAuthTOML(registry string, auth desired.RegistryAuth, all map[string]desired.RegistryAuth) string {
	names := []string{registry}
	if _, other := all[dockerHubAPI]; registry == dockerHub && !other {
		names = append(names, dockerHubAPI)
	}
	var b strings.Builder
	b.WriteString("version = 3\n")
	for _, name := range names {
		fmt.Fprintf(&b, "\n[plugins.\"io.containerd.cri.v1.images\".registry.configs.%s.auth]\n", tomlText(name))
		for _, field := range [][2]string{
			{"username", auth.Username}, {"password", auth.Password},
			{"auth", auth.Auth}, {"identitytoken", auth.IdentityToken},
		} {
			if field[1] != "" {
				fmt.Fprintf(&b, "  %s = %s\n", field[0], tomlText(field[1]))
			}
		}
	}
	return b.String()
}

// tomlText returns a text as a basic string of TOML (https://toml.io/en/v1.0.0#string).
func tomlText(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r < ' ' || r == '\x7f':
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// proxyEnvironment returns a file that both systemd and a shell can read: values in single quotes, with no quotes in
// them. All users can query a unit's own settings from systemd, but only root can read this file.
func proxyEnvironment(c desired.Credentials) string {
	var b strings.Builder
	for _, v := range [][2]string{{"HTTP_PROXY", c.HTTPProxy}, {"HTTPS_PROXY", c.HTTPSProxy}} {
		if v[1] != "" {
			fmt.Fprintf(&b, "%s='%s'\n", v[0], strings.NewReplacer("'", "%27", "\\", "%5C").Replace(v[1]))
		}
	}
	return b.String()
}
