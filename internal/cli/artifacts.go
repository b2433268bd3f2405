package cli

import "github.com/spf13/cobra"

// artifactFlags say where binaries and images come from, and who vouches for them.
type artifactFlags struct {
	bundles, sums []string
	vouchFlags
}

func (f *artifactFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&f.bundles, "bundle", nil,
		"install from this bundle; hosts then download nothing. Of several, each part comes from whichever has it")
	flags.StringArrayVar(&f.sums, "bundle-sha256", nil,
		"the sha256 of a bundle, as bundle create prints it; a bundle with none of those given is refused")
	f.vouchFlags.register(cmd, "the manifest's mirror")
}

// vouchFlags say who vouches for binaries and images, besides where they come from.
type vouchFlags struct {
	digests         string
	trust, insecure bool
}

// register adds the flags; mirror is what the command calls its mirror.
func (f *vouchFlags) register(cmd *cobra.Command, mirror string) {
	flags := cmd.Flags()
	flags.StringVar(&f.digests, "digests", "",
		"a list of digests that must match, as sha256sum prints it in a mirror's folder")
	flags.BoolVar(&f.trust, "trust-source", false,
		"take a mirror, a registry of your own or, with --digests, a bundle at its word where no digest is known")
	flags.BoolVar(&f.insecure, "insecure-mirror", false, "allow plain HTTP for "+mirror)
}
