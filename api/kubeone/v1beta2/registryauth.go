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
		return fmt.Sprintf("%q has a scheme or a trailing slash", name), "use only the host name: " + host
	case !registryHost(name):
		return fmt.Sprintf("%q is not a valid registry", name),
			"use HOST or HOST:PORT"
	}
	return "", ""
}

// Problem returns a mistake in the credentials: its field, message and remedy. The message is "" if there is none. No
// text repeats a value.
func (a ContainerdRegistryAuthConfig) Problem() (field, message, hint string) {
	switch {
	case a == ContainerdRegistryAuthConfig{}:
		return "", "contains no credentials", "set username and password, auth, or identityToken"
	case a.Username == "" && a.Password != "":
		return ".username", "is missing, but there is a password", "set the user name"
	case a.Username != "" && a.Password == "":
		return ".password", "is missing, but there is a username", "set the password"
	case strings.Contains(a.Username, ":"):
		return ".username", "contains a colon, which is not allowed in a user name", "set username and password separately"
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
		f.errorf(path, "set them for each registry by its host name",
			"these credentials would be sent to every registry")
		return
	}
	if field, message, hint := auth.Problem(); message != "" {
		f.errorf(path+field, hint, "%s", message)
		return
	}
	f.warnf(path, "move them to a file and pass it with --credentials",
		"anyone who can read the manifest can read these credentials")
}
