package host

import (
	"strings"
	"unicode"
)

// Printable returns text from a host in a form that is safe to print on a terminal. It removes non-text characters and
// characters that start escape sequences, move the cursor or change the text direction. It keeps tabs and newlines.
func Printable(text string) string {
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
