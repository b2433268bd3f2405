package manifest

import "strings"

// position is where a value was written.
type position struct {
	File         string
	Line, Column int
	// Path is how the file itself names the place, where that is not the path in the manifest.
	Path string
}

// positions says where values were written, by their path in the manifest.
type positions map[string]position

// find returns the position of the path, or of the nearest thing above it that was written.
func (p positions) find(path string) position {
	for {
		if at, ok := p[path]; ok || path == "" {
			return at
		}
		path = parent(path)
	}
}

// cut removes everything at and below a path, and returns it by what follows the path.
func (p positions) cut(path string) positions {
	out := positions{}
	for at, where := range p {
		if within(at, path) {
			out[strings.TrimPrefix(at, path)] = where
			delete(p, at)
		}
	}
	return out
}

// put adds positions below a path, by what follows the path.
func (p positions) put(path string, below positions) {
	for rest, where := range below {
		p[path+rest] = where
	}
}

// within reports whether path is above or below it.
func within(path, above string) bool {
	rest, ok := strings.CutPrefix(path, above)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[' || above == "")
}

// parent is the path above a path: "a.b[1]" of "a.b[1].c", "a.b" of "a.b[1]".
func parent(path string) string {
	if strings.HasSuffix(path, `"]`) {
		return path[:max(strings.LastIndex(path, `["`), 0)]
	}
	return path[:max(strings.LastIndexAny(path, ".["), 0)]
}
