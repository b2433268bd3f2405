package release

import (
	"encoding/hex"
	"fmt"
	"path"
	"strings"
)

// checksum finds the sha256 of the named file in the text of a digest file. Both usual formats are read: the digest
// alone, and lines of "<digest>  <name>" as sha256sum writes them.
func checksum(text, name string) (string, error) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for _, line := range lines {
		fields := strings.Fields(line)
		alone := len(fields) == 1 && len(lines) == 1
		named := len(fields) == 2 && path.Base(strings.TrimPrefix(fields[1], "*")) == name
		if !alone && !named {
			continue
		}
		sum := strings.ToLower(fields[0])
		if !isSHA256(sum) {
			return "", fmt.Errorf("digest of %s is %.80q, which is not a sha256", name, fields[0])
		}
		return sum, nil
	}
	return "", fmt.Errorf("digest file has no line for %s; it begins %.80q", name, text)
}

func isSHA256(s string) bool {
	raw, err := hex.DecodeString(s)
	return err == nil && len(raw) == 32 && s == strings.ToLower(s)
}
