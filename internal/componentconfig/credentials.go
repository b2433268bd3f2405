package componentconfig

import (
	"fmt"
	"strings"

	"kubeone/internal/model/desired"
)

const (
	// CredentialsDir is where containerd reads credentials for registries; the files there that begin with
	// credentialPrefix are ours.
	CredentialsDir = "/etc/containerd/conf.d"
	// ProxyFile is the environment of containerd with the proxies' users and passwords.
	ProxyFile = "/etc/kubeone/proxy.env"

	credentialPrefix = CredentialsDir + "/kubeone-registry-"
	credentialSuffix = ".toml"
)

// CredentialFiles are the contents of the files with credentials that a host is to have, by path. They are secrets.
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

// CredentialOf says of which credentials a file of that path holds them, in a reader's words, and whether they are
// known: whether a host must have them as the caller has them, or keeps what it has. It is "" for any other file.
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

// credentialPath is the file of one registry. Brackets would be a pattern to a shell.
func credentialPath(registry string) string {
	return credentialPrefix + strings.NewReplacer("[", "%5B", "]", "%5D").Replace(registry) + credentialSuffix
}

// dockerHub is how images of Docker Hub are named, and dockerHubAPI the registry that has them.
const dockerHub, dockerHubAPI = "docker.io", "registry-1.docker.io"

// registryAuthTOML is a part of containerd's configuration. containerd goes by the name of who is asked.
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

// tomlText is a text as a basic string of TOML (https://toml.io/en/v1.0.0#string).
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

// proxyEnvironment is a file that both systemd and a shell read: values in single quotes, in which there is no other.
// What a unit says itself everybody on the host may read who asks systemd; such a file is root's.
func proxyEnvironment(c desired.Credentials) string {
	var b strings.Builder
	for _, v := range [][2]string{{"HTTP_PROXY", c.HTTPProxy}, {"HTTPS_PROXY", c.HTTPSProxy}} {
		if v[1] != "" {
			fmt.Fprintf(&b, "%s='%s'\n", v[0], strings.NewReplacer("'", "%27", "\\", "%5C").Replace(v[1]))
		}
	}
	return b.String()
}
