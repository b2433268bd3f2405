package host

import (
	"strings"
	"unicode"
)

// Printed returns a text from a host in a form that is safe to print on a terminal. It removes characters that start
// escape sequences, move the cursor, change the direction of writing or are not text. It keeps tabs and line ends.
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
