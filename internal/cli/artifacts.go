package cli

import "github.com/spf13/cobra"

// artifactFlags say where binaries and images come from, and who vouches for them.
type artifactFlags struct {
	bundles, sums []string
	vouchFlags
}

func (f *artifactFlags) registerFlags(cmd *cobra.Command) {
	groupFlags(cmd, downloadGroup, func() {
		flags := cmd.Flags()
		flags.StringArrayVar(&f.bundles, "bundle", nil,
			"install from the bundle in `FILE`; hosts download nothing. Can be repeated")
		flags.StringArrayVar(&f.sums, "bundle-sha256", nil,
			"`SHA256` of a bundle, as bundle create prints it; other bundles are refused")
		f.vouchFlags.registerFlags(cmd, "the manifest's mirror")
	})
}

// vouchFlags say who vouches for binaries and images, besides where they come from.
type vouchFlags struct {
	digests         string
	trust, insecure bool
}

// registerFlags adds the flags; mirror is what the command calls its mirror.
func (f *vouchFlags) registerFlags(cmd *cobra.Command, mirror string) {
	flags := cmd.Flags()
	flags.StringVar(&f.digests, "digests", "",
		"`FILE` of digests that must match, as sha256sum prints them")
	flags.BoolVar(&f.trust, "trust-source", false,
		"trust a mirror, or a registry of your own, where no digest is known")
	flags.BoolVar(&f.insecure, "insecure-mirror", false, "allow plain HTTP for "+mirror)
}
