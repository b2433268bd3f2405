// Package set treats slices of strings as ordered sets.
package set

// Union returns the strings of all lists, each once, in the order in which they first appear.
func Union(lists ...[]string) []string {
	seen := map[string]bool{}
	var out []string
	for _, list := range lists {
		for _, s := range list {
			if !seen[s] {
				seen[s] = true
				out = append(out, s)
			}
		}
	}
	return out
}
