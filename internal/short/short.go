// Package short lets tests take fewer cases with -short, as "make check" runs them. "make test" takes all.
package short

import "testing"

// Fewer returns the number of cases, or a tenth of them with -short.
func Fewer(cases int) int {
	if testing.Short() {
		return cases / 10
	}
	return cases
}
