package apicall

import (
	"fmt"
	"slices"
	"strings"
)

// maxNamed is the maximum number of names in a message.
const maxNamed = 5

// JoinNames lists up to maxNamed names for a message. It sorts names in place.
func JoinNames(names []string) string {
	slices.Sort(names)
	if len(names) <= maxNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
}
