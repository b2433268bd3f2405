package release

import "fmt"

// MismatchError says that a source has another digest of an official artifact than the known one.
type MismatchError struct {
	Claim
	Known string // hex
	By    string // who knows: "this program", or the name of a list
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("%s from %s has sha256 %s, but %s knows it as sha256 %s: the source is altered, or has "+
		"something else under this name; use another one", e.Name, e.Source, e.SHA256, e.By, e.Known)
}
