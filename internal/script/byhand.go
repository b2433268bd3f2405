package script

import (
	"slices"

	"kubeone/internal/plan/step"
)

// byHand are the stages that the script runs when nobody names one, those that it leaves to whoever names them, and the
// secret files that must be there for the first: lists, in the order of the host's steps.
func byHand(steps []step.Intent) (stages, left, secrets []string) {
	for _, s := range steps {
		if !s.Kind.ByHand() {
			left = append(left, Stage(s))
			continue
		}
		stages = append(stages, Stage(s))
		for _, secret := range s.Secrets() {
			// A token for a new cluster the script makes itself: nobody uses it.
			if file := secretFile(secret); file != "" && !slices.Contains(secrets, file) {
				secrets = append(secrets, file)
			}
		}
	}
	return stages, left, secrets
}

// secretFile is the file in which a stage finds a secret that somebody must bring.
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
