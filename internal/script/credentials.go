package script

import (
	"maps"
	"slices"

	"kubeone/internal/componentconfig"
	"kubeone/internal/model/desired"
	"kubeone/internal/plan/step"
)

// CredentialsFile is a tar in SecretsDir of all files with credentials for a host, named by the last part of their
// paths.
const CredentialsFile = "credentials.tar"

// Kinds of files with credentials that the script creates and removes.
const (
	managesRegistries = "registries"
	managesProxy      = "proxy"
)

// credentialVariables returns variables that say which files with credentials the host gets, and which kinds the script
// manages. They contain no secrets.
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
