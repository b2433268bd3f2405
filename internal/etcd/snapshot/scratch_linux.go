package snapshot

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// scratchFile returns a file without a name, in memory.
func scratchFile() (*os.File, error) {
	fd, err := unix.MemfdCreate("kubeone-snapshot", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("a file in memory: %w", err)
	}
	return os.NewFile(uintptr(fd), "memory"), nil // #nosec G115 -- a file descriptor
}
