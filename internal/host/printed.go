package host

import (
	"strings"
	"unicode"
)

// Printed is a text of a host without what nobody prints: escape sequences lose their first character, and tabs stay,
// and ends of lines, everything else that moves a cursor, turns the direction of writing, or is no text goes.
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
