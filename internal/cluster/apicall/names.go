package apicall

import (
	"fmt"
	"slices"
	"strings"
)

// maxNamed is how many objects one message names.
const maxNamed = 5

// Names lists a few of many names for a message; it sorts them.
func Names(names []string) string {
	slices.Sort(names)
	if len(names) <= maxNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
}
