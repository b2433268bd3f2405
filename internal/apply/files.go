package apply

import (
	"fmt"
	"io"
)

// Files are secret files that components of the control plane read, by name. They show nothing of themselves when they
// are printed or marshalled.
type Files map[string][]byte

const redactedFiles = "apply.Files(redacted)"

// Format hides the content from every verb.
func (Files) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, redactedFiles) }

// MarshalText hides the content from JSON, YAML and structured logs.
func (Files) MarshalText() ([]byte, error) { return []byte(redactedFiles), nil }
