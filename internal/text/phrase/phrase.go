// Package phrase builds pieces of text.
package phrase

import (
	"fmt"
	"strings"
)

// Count returns "no hosts", "1 host" or "2 hosts" for the noun "host". The plural is the noun with an s.
func Count(n int, noun string) string {
	switch n {
	case 0:
		return "no " + noun + "s"
	case 1:
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

const ellipsis = "..."

// Shorten returns at most limit bytes of text: longer text is cut and ends in "...". Invalid UTF-8 is removed. limit
// must be at least 3.
func Shorten(text string, limit int) string {
	if len(text) > limit {
		text = text[:limit-len(ellipsis)] + ellipsis
	}
	return strings.ToValidUTF8(text, "")
}
