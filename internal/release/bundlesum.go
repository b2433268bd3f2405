package release

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
)

// sums are the digests (hex) of whole bundles that an operator has given, and which of them a bundle had.
type sums map[string]bool

// newSums reads the digests. None at all lets every bundle pass; what is no sha256 is a *BundleSumError.
func newSums(given []string) (sums, error) {
	out := sums{}
	for _, sum := range given {
		sum = strings.ToLower(sum)
		if !isSHA256(sum) {
			return nil, &BundleSumError{fmt.Sprintf("%.80q is no sha256, which has 64 hexadecimal digits", sum)}
		}
		out[sum] = false
	}
	return out, nil
}

// check reads the whole file, if digests were given, and compares.
func (s sums) check(ctx context.Context, b *Bundle) error {
	if len(s) == 0 {
		return nil
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, until(ctx, io.NewSectionReader(b.file, 0, math.MaxInt64))); err != nil {
		return fmt.Errorf("read bundle %s: %w", b.path, err)
	}
	have := hex.EncodeToString(hash.Sum(nil))
	if _, ok := s[have]; !ok {
		return &BundleSumError{fmt.Sprintf("bundle %s has sha256 %s, which is not what was given (%s): it is another "+
			"file, or was altered; get it again", b.path, have, brief(slices.Sorted(maps.Keys(s))))}
	}
	s[have] = true
	return nil
}

// rest is an error for a digest that no bundle has.
func (s sums) rest() error {
	for _, sum := range slices.Sorted(maps.Keys(s)) {
		if !s[sum] {
			return &BundleSumError{"no bundle has sha256 " + sum + "; give it with its --bundle, or leave it out"}
		}
	}
	return nil
}
