package cli

import "github.com/spf13/cobra"

// artifactFlags says where binaries and images come from and how they are checked.
type artifactFlags struct {
	bundles, sums []string
	vouchFlags
}

func (f *artifactFlags) registerFlags(cmd *cobra.Command) {
	groupFlags(cmd, downloadGroup, func() {
		flags := cmd.Flags()
		flags.StringArrayVar(&f.bundles, "bundle", nil,
			"bundle `FILE` to install from instead of downloading; can be repeated")
		flags.StringArrayVar(&f.sums, "bundle-sha256", nil,
			"expected `SHA256` of a bundle, as printed by bundle create; other bundles are rejected")
		f.vouchFlags.registerFlags(cmd, "the mirror in the manifest")
	})
}

// vouchFlags says how binaries and images are checked.
type vouchFlags struct {
	digests         string
	trust, insecure bool
}

// registerFlags adds the flags; mirror is the name of the mirror in the help.
func (f *vouchFlags) registerFlags(cmd *cobra.Command, mirror string) {
	flags := cmd.Flags()
	flags.StringVar(&f.digests, "digests", "",
		"`FILE` with the required digests, in sha256sum format")
	flags.BoolVar(&f.trust, "trust-source", false,
		"accept artifacts without a known digest from a mirror or private registry")
	flags.BoolVar(&f.insecure, "insecure-mirror", false, "allow plain HTTP for "+mirror)
}
