package release

import (
	"fmt"
	"io"
	"os"

	"kubeone/internal/model/desired"
)

// ReadDigests reads the operator's list of digests; without a path it returns none. A list without a digest is an
// error, and so is what ParseDigests refuses.
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

// UnknownNote says in a line of which parts, of those that are to be installed, no digest is known; "" where there are
// none.
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
	return fmt.Sprintf("only their source vouches for %d of %d artifacts, no other digest of them is known: %s",
		len(unknown), len(parts), brief(unknown))
}
