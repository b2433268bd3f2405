package script

import (
	"maps"
	"slices"

	"kubeone/internal/componentconfig"
	"kubeone/internal/model/desired"
	"kubeone/internal/plan/step"
)

// CredentialsFile is, in SecretsDir, a tar of all files with credentials that a host is to have, by the last parts of
// their paths.
const CredentialsFile = "credentials.tar"

// What of a host's files with credentials is the caller's to make and to remove.
const (
	managesRegistries = "registries"
	managesProxy      = "proxy"
)

// credentialVariables say which files with credentials the host is to have, and which it is not to have. Nothing in
// them is secret.
func credentialVariables(c *desired.Credentials) []step.Variable {
	var manages, paths []string
	if c != nil {
		manages = append(manages, managesProxy)
		if c.Registries != nil {
			manages = append(manages, managesRegistries)
		}
		paths = slices.Sorted(maps.Keys(componentconfig.CredentialFiles(*c)))
	}
	return []step.Variable{step.Words("CREDENTIALS", manages...), step.Words("CREDENTIAL_FILES", paths...)}
}
