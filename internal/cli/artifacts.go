package cli

import "github.com/spf13/cobra"

// artifactFlags holds the flags for the source of binaries and images, and for their verification.
type artifactFlags struct {
	bundles, sums []string
	verificationFlags
}

func (f *artifactFlags) registerFlags(cmd *cobra.Command) {
	groupFlags(cmd, downloadGroup, func() {
		flags := cmd.Flags()
		flags.StringArrayVar(&f.bundles, "bundle", nil,
			"bundle `FILE` to install from instead of downloading; can be repeated")
		flags.StringArrayVar(&f.sums, "bundle-sha256", nil,
			"expected `SHA256` of a bundle, as printed by bundle create; other bundles are rejected")
		f.verificationFlags.registerFlags(cmd, "the mirror in the manifest")
	})
}

// verificationFlags holds the flags for the verification of binaries and images.
type verificationFlags struct {
	digests         string
	trust, insecure bool
}

// registerFlags adds the flags. The help text of --insecure-mirror calls the mirror by the given name.
func (f *verificationFlags) registerFlags(cmd *cobra.Command, mirror string) {
	flags := cmd.Flags()
	flags.StringVar(&f.digests, "digests", "",
		"`FILE` with the required digests, in sha256sum format")
	flags.BoolVar(&f.trust, "trust-source", false,
		"accept artifacts without a known digest from a mirror or private registry")
	flags.BoolVar(&f.insecure, "insecure-mirror", false, "allow plain HTTP for "+mirror)
}
