package v1beta2

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// RegistryProblem checks the name of a registry with credentials. It returns the mistake and its remedy, or "" and "".
func RegistryProblem(name string) (message, hint string) {
	host := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(name, "https://"), "http://"), "/")
	switch {
	case host != name:
		return fmt.Sprintf("%q has a scheme or a slash at its end", name), "write the host name only: " + host
	case !registryHost(name):
		return fmt.Sprintf("%q is not a registry", name),
			"write a host name or an address, and the port if there is one"
	}
	return "", ""
}

// Problem returns a mistake in the credentials: its field, message and remedy. The message is "" if there is none. No
// text repeats a value.
func (a ContainerdRegistryAuthConfig) Problem() (field, message, hint string) {
	switch {
	case a == ContainerdRegistryAuthConfig{}:
		return "", "has no credentials", "write username and password, or auth, or identityToken"
	case a.Username == "" && a.Password != "":
		return ".username", "is missing: there is a password", "write the user name"
	case a.Username != "" && a.Password == "":
		return ".password", "is missing: there is a username", "write the user's password"
	case strings.Contains(a.Username, ":"):
		return ".username", "has a colon, which cannot be part of a username", "write user and password apart"
	case a.Auth != "" && !isBasicAuth(a.Auth):
		return ".auth", "is not user:password in base64", "printf %s USER:PASSWORD | base64 -w0"
	}
	return "", "", ""
}

func isBasicAuth(auth string) bool {
	text, err := base64.StdEncoding.DecodeString(auth)
	user, password, both := strings.Cut(string(text), ":")
	return err == nil && both && user != "" && password != ""
}

func (f *findings) registryAuth(path, registry string, auth *ContainerdRegistryAuthConfig) {
	if auth == nil {
		return
	}
	if registry == "*" {
		f.errorf(path, "write them under the host names of the registries they are for",
			"every registry would get these credentials")
		return
	}
	if field, message, hint := auth.Problem(); message != "" {
		f.errorf(path+field, hint, "%s", message)
		return
	}
	f.warnf(path, "keep them in a file, and name it with --credentials",
		"all readers of the manifest can read these credentials")
}
