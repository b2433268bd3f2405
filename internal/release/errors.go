package release

import (
	"errors"
	"fmt"
	"net"
	"strings"
)

// UnsupportedError says that this program does not support a version or architecture.
type UnsupportedError struct {
	What, Value string
	Supported   []string
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s %q is not supported; supported are %s", e.What, e.Value, strings.Join(e.Supported, ", "))
}

// Failure is a part of a release that could not be fetched, and the reason.
type Failure struct {
	Part string // "kubelet 1.36.3", "registry.k8s.io/pause:3.10.2"
	Host string // the host it was requested from
	Err  error
}

// FetchError lists the parts of a release that could not be fetched.
type FetchError struct {
	KubernetesVersion, Arch string
	Failures                []Failure // at least one, in the order of the release
}

// Unwrap returns the causes.
func (e *FetchError) Unwrap() []error {
	out := make([]error, 0, len(e.Failures))
	for _, f := range e.Failures {
		out = append(out, f.Err)
	}
	return out
}

// Offline reports whether at least one host could not be reached, as opposed to having returned an error.
func (e *FetchError) Offline() bool {
	for _, f := range e.Failures {
		var dial *net.OpError
		var dns *net.DNSError
		var network net.Error
		if errors.As(f.Err, &dial) || errors.As(f.Err, &dns) || errors.As(f.Err, &network) && network.Timeout() {
			return true
		}
	}
	return false
}

// Error lists the parts by host, with the first cause for each host, and says what to do.
func (e *FetchError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "cannot fetch parts of Kubernetes %s for linux/%s:", e.KubernetesVersion, e.Arch)
	for _, host := range e.failedHosts() {
		var parts []string
		var cause error
		for _, f := range e.Failures {
			if f.Host == host {
				parts = append(parts, f.Part)
				cause = firstError(cause, f.Err)
			}
		}
		fmt.Fprintf(&b, "\n  from %s: %s: %v", host, strings.Join(parts, ", "), cause)
	}
	b.WriteString("\n" + e.suggestAction())
	return b.String()
}

func (e *FetchError) suggestAction() string {
	if e.Offline() {
		return "check the network and the proxy of this machine, or use a mirror, or use a bundle that was created on a " +
			"machine with network access (kubeone bundle create; then --bundle FILE)"
	}
	return "check that the version exists there; a mirror must have the same files and images as the official locations"
}

// failedHosts returns the hosts in the order of their first failure.
func (e *FetchError) failedHosts() []string {
	seen := map[string]bool{}
	var out []string
	for _, f := range e.Failures {
		if !seen[f.Host] {
			seen[f.Host] = true
			out = append(out, f.Host)
		}
	}
	return out
}

func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// DigestError says that content does not match its digest.
type DigestError struct {
	What, Has, Wants string // digests in hex
}

func (e *DigestError) Error() string {
	return fmt.Sprintf("%s has sha256 %s, but its publisher lists %s: the source is altered or incomplete", e.What, e.Has,
		e.Wants)
}

// TruncatedError says that a bundle file is shorter than its index requires.
type TruncatedError struct {
	Path      string
	Has, Want int64 // bytes; Want is 0 if even the index is incomplete
}

func (e *TruncatedError) Error() string {
	if e.Want == 0 {
		return fmt.Sprintf("bundle %s is truncated after %d bytes; copy or create it again", e.Path, e.Has)
	}
	return fmt.Sprintf("bundle %s is truncated: it has %d of %d bytes; copy or create it again", e.Path, e.Has, e.Want)
}

// AlteredError says that parts of a bundle changed after it was written.
type AlteredError struct {
	Path    string
	Entries []string // name and description of each entry that differs
}

func (e *AlteredError) Error() string {
	return fmt.Sprintf("bundle %s was altered after it was created: %s; create it again", e.Path,
		strings.Join(e.Entries, ", "))
}

// FormatError says that a file is not a bundle that this program can read.
type FormatError struct {
	Path, Reason string
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("%s is not a usable bundle: %s", e.Path, e.Reason)
}

// ConflictError says that two bundles contain different files with the same name and version.
type ConflictError struct {
	What    string // "containerd 2.4.2 for linux/amd64"
	Paths   [2]string
	Digests [2]string // sha256 in hex
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("bundles %s and %s contain different files for %s: sha256 %s and %s; omit the bundle that you "+
		"do not trust, or create both again",
		e.Paths[0], e.Paths[1], e.What, e.Digests[0], e.Digests[1])
}

// MissingError says that parts of a release are not in any bundle.
type MissingError struct {
	KubernetesVersion, Arch string
	Parts                   []string // at least one, in the order of the release
	Bundles                 []string // the release in each bundle: "PATH has …"
}

// Error names the first missing parts and the release in each bundle.
func (e *MissingError) Error() string {
	return fmt.Sprintf("no bundle has %s for Kubernetes %s on linux/%s: %s; create one with kubeone bundle create",
		briefNames(e.Parts), e.KubernetesVersion, e.Arch, strings.Join(e.Bundles, "; "))
}

// briefNames lists up to four parts. If there are more, it lists the first three and the number of others.
func briefNames(parts []string) string {
	const named = 3
	if len(parts) <= named+1 {
		return strings.Join(parts, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(parts[:named], ", "), len(parts)-named)
}

// MismatchError says that the digest from a source differs from the known digest of the official artifact.
type MismatchError struct {
	Claim
	Known string // hex
	By    string // the list that contains it
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("%s from %s has sha256 %s, but %s lists sha256 %s: the source is altered, or has a "+
		"different file with this name; use another source", e.Name, e.Source, e.SHA256, e.By, e.Known)
}

// UntrustedError says that only the source itself, a mirror, custom registry or bundle, confirms the digests of some
// parts.
type UntrustedError struct {
	Parts, Sources []string // at least one each
	Bundles        bool     // the sources are bundles
}

func (e *UntrustedError) Error() string {
	if e.Bundles {
		return fmt.Sprintf("the list of digests does not contain %s from %s: add them to the list, or confirm "+
			"the whole bundle with --bundle-sha256",
			briefNames(e.Parts), strings.Join(e.Sources, " and "))
	}
	return fmt.Sprintf("cannot check downloads from %s: there is no known digest for %s; pass a list of trusted digests "+
		"with --digests FILE, or trust this source with --trust-source", strings.Join(e.Sources,
		" and "), briefNames(e.Parts))
}

// MirrorError says that a mirror cannot be used.
type MirrorError struct {
	Mirror, Reason string
}

func (e *MirrorError) Error() string { return fmt.Sprintf("mirror %q %s", e.Mirror, e.Reason) }

// ImageNameError says that a text is not the name of an image.
type ImageNameError struct{ Name string }

func (e *ImageNameError) Error() string {
	return fmt.Sprintf("%.200q is not the name of an image, such as registry.example.com/app:1.0", e.Name)
}

// BundleSumError says that a bundle does not match the digests from the operator.
type BundleSumError struct {
	Reason string
}

func (e *BundleSumError) Error() string { return "--bundle-sha256: " + e.Reason }
