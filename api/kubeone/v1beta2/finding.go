package v1beta2

import "fmt"

// Finding is a mistake or a warning about a manifest.
type Finding struct {
	Path    string // "controlPlane.hosts[1].sshPort"
	Message string
	Hint    string // the remedy; may be empty
	Warning bool   // the manifest is usable nevertheless
	Missing bool   // the required field at Path is absent
}

// findings collects the results of a validation, in the order of its checks.
type findings struct {
	list []Finding
}

func (f *findings) errorf(path, hint, format string, args ...any) {
	f.list = append(f.list, Finding{Path: path, Message: fmt.Sprintf(format, args...), Hint: hint})
}

func (f *findings) warnf(path, hint, format string, args ...any) {
	f.list = append(f.list, Finding{Path: path, Message: fmt.Sprintf(format, args...), Hint: hint, Warning: true})
}

func (f *findings) missing(path, hint string) {
	f.list = append(f.list, Finding{Path: path, Message: "is required", Hint: hint, Missing: true})
}

// Child returns the path of a field, or of a map's key, below path.
func Child(path, name string) string {
	switch {
	case !plain(name):
		return fmt.Sprintf("%s[%q]", path, name)
	case path == "":
		return name
	default:
		return path + "." + name
	}
}

// Item returns the path of a list's item.
func Item(path string, index int) string {
	return fmt.Sprintf("%s[%d]", path, index)
}

// plain reports whether a name needs no quotes in a path.
func plain(name string) bool {
	for _, r := range name {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
		default:
			return false
		}
	}
	return name != ""
}
