package problem

import "strings"

// Quoted writes a value as a sentence has it.
func Quoted(s string) string { return `"` + s + `"` }

// List writes names as a sentence has them: "a", "a and b", "a, b and c".
func List(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
