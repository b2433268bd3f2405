package release

import (
	_ "embed"
	"fmt"
	"io"
	"os"

	"kubeone/internal/desired"
)

// builtIn is the table of the digests that this program knows. `make digests` makes it, and nobody else: from what the
// official locations publish, over HTTPS. Without a line it knows none.
//
//go:embed digests.txt
var builtIn string

// KnownDigests are those that this program knows, and those of the operator's list, if a path of one is given. A list
// that has no digest, or another than this program for one artifact, is an error, as is what ParseDigests refuses.
func KnownDigests(list string) (Digests, error) {
	known, err := ParseDigests(builtIn, "this program")
	if err != nil || list == "" {
		return known, err
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
	if err == nil && listed.Len() == 0 {
		err = fmt.Errorf("%s has no digest", list)
	}
	if err != nil {
		return Digests{}, err
	}
	return known.With(listed)
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
