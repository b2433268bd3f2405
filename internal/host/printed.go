package host

import (
	"strings"
	"unicode"
)

// Printed returns a host's text safe to print. Escape sequences lose their first character; tabs and line ends stay.
// Other characters that move the cursor, change the direction of writing or are not text are removed.
func Printed(text string) string {
	if !strings.ContainsFunc(text, isUnprintable) {
		return text
	}
	return strings.Map(func(r rune) rune {
		if isUnprintable(r) {
			return -1
		}
		return r
	}, text)
}

func isUnprintable(r rune) bool {
	return r != '\t' && r != '\n' && (r == unicode.ReplacementChar || !unicode.IsPrint(r))
}
