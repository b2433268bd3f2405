package release

import (
	"fmt"
	"strings"
)

// MismatchError says that a source has another digest of an official artifact than the known one.
type MismatchError struct {
	Claim
	Known string // hex
	By    string // the name of the list that knows it
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("%s from %s has sha256 %s, but %s knows it as sha256 %s: the source is altered, or has "+
		"something else under this name; use another one", e.Name, e.Source, e.SHA256, e.By, e.Known)
}

// UntrustedError says that nothing but a mirror, a registry of one's own or a bundle vouches for some parts of a
// release.
type UntrustedError struct {
	Parts, Sources []string // at least one each
	Bundles        bool     // the sources are bundles
}

func (e *UntrustedError) Error() string {
	if e.Bundles {
		return fmt.Sprintf("the list of digests does not know %s of %s: add them to the list, or say "+
			"with --bundle-sha256 which file the bundle must be",
			brief(e.Parts), strings.Join(e.Sources, " and "))
	}
	return fmt.Sprintf("nobody but %s vouches for %s: give a list of digests that you trust with --digests FILE, or "+
		"take that source at its word with --trust-source", strings.Join(e.Sources, " and "), brief(e.Parts))
}

// MirrorError says that a mirror is not one that may be used.
type MirrorError struct {
	Mirror, Reason string
}

func (e *MirrorError) Error() string { return fmt.Sprintf("mirror %q %s", e.Mirror, e.Reason) }

// BundleSumError says that the bundles are not those whose digests the operator has given.
type BundleSumError struct {
	Reason string
}

func (e *BundleSumError) Error() string { return "--bundle-sha256: " + e.Reason }
