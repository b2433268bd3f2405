//go:build !linux

package snapshot

import (
	"errors"
	"os"
)

// scratchFile returns a file that lost its name before its first byte: no other process can open it, and it ends with
// this one.
func scratchFile() (*os.File, error) {
	f, err := os.CreateTemp("", ".kubeone-*") // created with mode 0600
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
