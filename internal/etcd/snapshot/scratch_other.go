//go:build !linux

package snapshot

import (
	"errors"
	"os"
)

// scratchFile returns an empty file whose name was deleted, so that no other process can open it and it disappears with
// this process.
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
