package locks

import (
	_ "embed" // of lock.sh
	"errors"
	"fmt"
	"strings"
	"time"

	"kubeone/internal/host"
	"kubeone/internal/script"
)

//go:embed sh/lock.sh
var lockScript string

// Exit statuses of lock.sh.
const (
	exitUnwritable = 73
	// ExitFileBusy is also the status of other scripts that lock a file.
	ExitFileBusy = 80
)

// WithFile returns a script that can lock a file with lock_file. It waits at most patience for another process to
// release the file.
func WithFile(patience time.Duration, text string) string {
	return fmt.Sprintf("%s\nPATIENCE=%d\n\n%s", script.Private(), int(patience.Seconds()), text)
}

// BusyFile returns a host's message about a file that another process locked for too long, so that a script of
// WithFile ended. It returns "" for any other error.
func BusyFile(err error) string {
	var exit *host.ExitError
	if !errors.As(err, &exit) || exit.Code != ExitFileBusy {
		return ""
	}
	return host.Printed(lastLine(exit.Stderr))
}

func lastLine(out []byte) string {
	text := strings.TrimSpace(string(out))
	return text[strings.LastIndexByte(text, '\n')+1:]
}
