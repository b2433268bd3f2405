//go:build !linux

package snapshot

import (
	"errors"
	"os"
)

// scratch is a file that lost its name before its first byte: nobody else can open it, and it ends with the process.
func scratch() (*os.File, error) {
	f, err := os.CreateTemp("", ".kubeone-*") // created with mode 0600
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
