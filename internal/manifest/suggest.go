package manifest

import (
	"reflect"
	"slices"
	"strings"

	"kubeone/api/kubeone/v1beta2"
)

// suggest returns the known name that was probably meant, because it is nearly the same, or begins like it; "" if there
// is none.
func suggest(name string, known []string) string {
	name = fold(name)
	best, bestDistance := "", 2+min(len(name)/4, 2)
	for _, k := range known {
		if d := distance(name, fold(k)); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	for _, k := range known {
		shorter, longer := name, fold(k)
		if len(shorter) > len(longer) {
			shorter, longer = longer, shorter
		}
		if best == "" && len(shorter) >= 5 && strings.HasPrefix(longer, shorter) {
			best = k
		}
	}
	return best
}

// fold makes names that differ only in their way of joining words equal: sshPort, ssh_port, SSHPort.
func fold(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name))
}

// distance is the least number of insertions, deletions, replacements and swaps of neighbours that turn a into b
// (optimal string alignment).
func distance(a, b string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			replace := row[j]
			if a[i] != b[j] {
				replace++
			}
			next[j+1] = min(replace, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}

// elsewhere returns the paths, at most three, at which a type has a field of exactly that name; nil if there are more,
// because then none of them is a hint.
func elsewhere(root reflect.Type, name string) []string {
	var found []string
	var walk func(t reflect.Type, path string, depth int)
	walk = func(t reflect.Type, path string, depth int) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
			if t.Kind() == reflect.Slice {
				path += "[]"
			}
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || depth == 0 {
			return
		}
		for _, f := range reflect.VisibleFields(t) {
			if f.Anonymous {
				continue
			}
			at := v1beta2.Child(path, v1beta2.JSONName(f))
			if fold(v1beta2.JSONName(f)) == fold(name) {
				found = append(found, at)
			}
			walk(f.Type, at, depth-1)
		}
	}
	walk(root, "", 4)
	if len(found) > 3 {
		return nil
	}
	slices.Sort(found)
	return found
}
