// Package pattern compiles regular expressions when they are first used. Those with counts are large, and each command
// would pay for all of them when it starts.
package pattern

import (
	"regexp"
	"sync"
)

// Lazy is the regular expression that text is, compiled by the first call. A text that is none panics there. The
// returned function is safe for concurrent use.
func Lazy(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
