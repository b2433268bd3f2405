// Package pattern compiles regular expressions on first use. Expressions with counts are large, and every command would
// pay for all of them at its start.
package pattern

import (
	"regexp"
	"sync"
)

// Lazy returns a function that compiles the expression on its first call. It panics there if the expression is invalid.
// The function is safe for concurrent use.
func Lazy(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
