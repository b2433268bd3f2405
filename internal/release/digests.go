package release

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"kubeone/internal/model/desired"
	"maps"
	"math"
	"os"
	"path"
	"slices"
	"strings"
)

// bundleSums holds the SHA-256 digests (hex) of bundle files from the operator. A value becomes true when a bundle has
// that digest.
type bundleSums map[string]bool

// newSums parses the digests. An empty list accepts every bundle. The error for an invalid digest is a *BundleSumError.
func newSums(given []string) (bundleSums, error) {
	out := bundleSums{}
	for _, sum := range given {
		sum = strings.ToLower(sum)
		if !isSHA256(sum) {
			return nil, &BundleSumError{fmt.Sprintf("%.80q is not a sha256, which has 64 hexadecimal digits", sum)}
		}
		out[sum] = false
	}
	return out, nil
}

// checkFile compares the digest of the bundle file with the given ones. If there are none, it does not read the file.
func (s bundleSums) checkFile(ctx context.Context, b *Bundle) error {
	if len(s) == 0 {
		return nil
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, withContext(ctx, io.NewSectionReader(b.file, 0, math.MaxInt64))); err != nil {
		return fmt.Errorf("read bundle %s: %w", b.path, err)
	}
	have := hex.EncodeToString(hash.Sum(nil))
	if _, ok := s[have]; !ok {
		return &BundleSumError{fmt.Sprintf("bundle %s has sha256 %s, which differs from the given one (%s): it is a "+
			"different file or was altered; copy it again", b.path, have, briefNames(slices.Sorted(maps.Keys(s))))}
	}
	s[have] = true
	return nil
}

// unusedError returns an error if a given digest matched no bundle.
func (s bundleSums) unusedError() error {
	for _, sum := range slices.Sorted(maps.Keys(s)) {
		if !s[sum] {
			return &BundleSumError{"no bundle has sha256 " + sum + "; add that bundle with --bundle, or remove the digest"}
		}
	}
	return nil
}

// findChecksum returns the SHA-256 of the named file from the text of a digest file. It accepts both usual formats: a
// single digest, and lines of the form "<digest>  <name>" as sha256sum writes them.
func findChecksum(text, name string) (string, error) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for _, line := range lines {
		fields := strings.Fields(line)
		alone := len(fields) == 1 && len(lines) == 1
		named := len(fields) == 2 && path.Base(strings.TrimPrefix(fields[1], "*")) == name
		if !alone && !named {
			continue
		}
		sum := strings.ToLower(fields[0])
		if !isSHA256(sum) {
			return "", fmt.Errorf("digest of %s is %.80q, which is not a sha256", name, fields[0])
		}
		return sum, nil
	}
	return "", fmt.Errorf("digest file has no line for %s; it begins %.80q", name, text)
}

func isSHA256(s string) bool {
	raw, err := hex.DecodeString(s)
	return err == nil && len(raw) == 32 && s == strings.ToLower(s)
}

// ReadDigests reads the operator's list of digests. If the path is "", it returns no digests. A list without digests
// and a list that ParseDigests refuses are errors.
func ReadDigests(list string) (Digests, error) {
	if list == "" {
		return Digests{}, nil
	}
	file, err := os.Open(list)
	if err != nil {
		return Digests{}, fmt.Errorf("open list of digests: %w", err)
	}
	defer func() { _ = file.Close() }() // only read
	text, err := io.ReadAll(io.LimitReader(file, MaxDigests+1))
	if err != nil {
		return Digests{}, fmt.Errorf("read list of digests: %w", err)
	}
	listed, err := ParseDigests(string(text), list)
	if err == nil && len(listed.known) == 0 {
		err = fmt.Errorf("%s contains no digests", list)
	}
	return listed, err
}

// UnknownNote returns a line that lists the parts without a known digest, or "" if there are none.
func UnknownNote(parts []desired.Part) string {
	var unknown []string
	for _, p := range parts {
		if !p.Known {
			unknown = append(unknown, p.What)
		}
	}
	if len(unknown) == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d artifacts could not be checked against a known digest: %s",
		len(unknown), len(parts), briefNames(unknown))
}

// claimCheck compares claims with the known digests. It collects the parts that only their source confirms.
type claimCheck struct {
	known     Digests
	trusted   bool // accept claims for which there is no known digest
	untrusted UntrustedError
}

// checkClaim reports whether there is a known digest for the claim. The error is a *MismatchError if the digests
// differ. Without a known digest, checkClaim records the part as untrusted, unless the source is official or trusted.
func (c *claimCheck) checkClaim(claim Claim, official bool) (known bool, err error) {
	known, err = c.known.Check(claim)
	if err != nil || known || official || c.trusted {
		return known, err
	}
	c.untrusted.Parts = append(c.untrusted.Parts, claim.What)
	if !slices.Contains(c.untrusted.Sources, claim.Source) {
		c.untrusted.Sources = append(c.untrusted.Sources, claim.Source)
	}
	return false, nil
}

// untrustedError returns an *UntrustedError that lists the untrusted parts, or nil if there are none.
func (c *claimCheck) untrustedError() error {
	if len(c.untrusted.Parts) == 0 {
		return nil
	}
	return &c.untrusted
}

// isCacheable reports whether later runs can reuse the claim.
func (s Source) isCacheable(claim Claim, official bool) bool {
	known, err := s.Known.Check(claim)
	return err == nil && (known || official || s.Trusted)
}
