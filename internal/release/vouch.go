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

// sums holds the operator's digests (hex) of whole bundles; a value is true once a bundle had that digest.
type sums map[string]bool

// newSums reads the digests. None at all accepts every bundle; an invalid one is a *BundleSumError.
func newSums(given []string) (sums, error) {
	out := sums{}
	for _, sum := range given {
		sum = strings.ToLower(sum)
		if !isSHA256(sum) {
			return nil, &BundleSumError{fmt.Sprintf("%.80q is not a sha256, which has 64 hexadecimal digits", sum)}
		}
		out[sum] = false
	}
	return out, nil
}

// checkFile reads the whole file and compares its digest, if digests were given.
func (s sums) checkFile(ctx context.Context, b *Bundle) error {
	if len(s) == 0 {
		return nil
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, withContext(ctx, io.NewSectionReader(b.file, 0, math.MaxInt64))); err != nil {
		return fmt.Errorf("read bundle %s: %w", b.path, err)
	}
	have := hex.EncodeToString(hash.Sum(nil))
	if _, ok := s[have]; !ok {
		return &BundleSumError{fmt.Sprintf("bundle %s has sha256 %s, which is not what was given (%s): it is another "+
			"file, or was altered; get it again", b.path, have, briefNames(slices.Sorted(maps.Keys(s))))}
	}
	s[have] = true
	return nil
}

// unusedError returns an error for a digest that matched no bundle.
func (s sums) unusedError() error {
	for _, sum := range slices.Sorted(maps.Keys(s)) {
		if !s[sum] {
			return &BundleSumError{"no bundle has sha256 " + sum + "; give it with its --bundle, or leave it out"}
		}
	}
	return nil
}

// findChecksum finds the sha256 of the named file in a digest file. It reads both usual formats: the digest alone, and
// lines of "<digest>  <name>" as sha256sum writes them.
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

// ReadDigests reads the operator's list of digests; without a path it returns none. A list without digests is an error,
// and so is whatever ParseDigests refuses.
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
		err = fmt.Errorf("%s has no digest", list)
	}
	return listed, err
}

// UnknownNote returns a line that lists the parts to install without a known digest; "" if there are none.
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

// claimCheck compares sources' claims with the known digests, and collects the parts that only their source confirms.
type claimCheck struct {
	known   Digests
	trusted bool // accept every claim without a known digest
	doubt   UntrustedError
}

// checkClaim reports whether the digest of the claim is known; the error is a *MismatchError. Official says that the
// source needs no confirmation.
func (c *claimCheck) checkClaim(claim Claim, official bool) (known bool, err error) {
	known, err = c.known.Check(claim)
	if err != nil || known || official || c.trusted {
		return known, err
	}
	c.doubt.Parts = append(c.doubt.Parts, claim.What)
	if !slices.Contains(c.doubt.Sources, claim.Source) {
		c.doubt.Sources = append(c.doubt.Sources, claim.Source)
	}
	return false, nil
}

// untrustedError returns an *UntrustedError for the parts that only their source confirms, or nil if there are none.
func (c *claimCheck) untrustedError() error {
	if len(c.doubt.Parts) == 0 {
		return nil
	}
	return &c.doubt
}

// isCacheable reports whether the source's claim may be kept for later runs.
func (s Source) isCacheable(claim Claim, official bool) bool {
	known, err := s.Known.Check(claim)
	return err == nil && (known || official || s.Trusted)
}
