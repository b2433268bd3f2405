package script

import (
	"maps"
	"slices"

	"kubeone/internal/componentconfig"
	"kubeone/internal/model/desired"
	"kubeone/internal/plan/step"
)

// CredentialsFile is a tar in SecretsDir with all credential files for a host, each named after the last part of its
// path.
const CredentialsFile = "credentials.tar"

// Kinds of credential files that the script creates and removes.
const (
	managesRegistries = "registries"
	managesProxy      = "proxy"
)

// credentialVariables returns the variables that say which credential files are sent to the host, and which kinds the
// script manages. They contain no secrets.
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
