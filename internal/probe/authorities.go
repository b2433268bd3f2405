package probe

import (
	"kubeone/internal/keys/authority"
	"kubeone/internal/model/observed"
)

const (
	rotationFile = "/etc/kubeone/rotation"
	nextDir      = pkiDir + "next/" // keys that are to sign, with their certificates
)

// authorities are what the host has of those who sign, as far as it says so; nil where it has none.
func authorities(pem map[string][]byte, begun []string) map[string]observed.Authority {
	out := map[string]observed.Authority{}
	for _, name := range observed.Authorities() {
		files := authority.FilesOf(name)
		a := authority.Of(name, pem[pkiDir+files.Public], pem[nextDir+files.Next()], begun)
		if a.Signer() == "" {
			continue
		}
		out[name] = a
	}
	if len(out) == 0 {
		return nil
	}
	return out
}
