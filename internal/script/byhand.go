package script

import (
	"slices"

	"kubeone/internal/plan/step"
)

// splitManualStages divides the stages of a host for operators who run the script manually. It returns the stages that
// the script runs without an argument, the others, which run only if named, and the secret files that the former need.
// All are in the order of the steps.
func splitManualStages(steps []step.Intent) (stages, others, secrets []string) {
	for _, s := range steps {
		if !s.Kind.ByHand() {
			others = append(others, Stage(s))
			continue
		}
		stages = append(stages, Stage(s))
		for _, secret := range s.Secrets() {
			// The script itself makes the token for a new cluster, which is never used.
			if file := secretFile(secret); file != "" && !slices.Contains(secrets, file) {
				secrets = append(secrets, file)
			}
		}
	}
	return stages, others, secrets
}

// secretFile returns the file from which a stage reads the secret, or "" if the operator does not have to provide it.
func secretFile(s step.Secret) string {
	switch s {
	case step.TokenSecret:
		return TokenFile
	case step.DiscoverySecret:
		return DiscoveryFile
	case step.PKISecret:
		return PKIFile
	}
	return ""
}
