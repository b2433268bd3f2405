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
	// ExitFileBusy is also that of other scripts that lock a file.
	ExitFileBusy = 80
)

// WithFile returns a script that may lock a file with lock_file, and waits at most that long for another process to
// release it.
func WithFile(patience time.Duration, text string) string {
	return fmt.Sprintf("%s\nPATIENCE=%d\n\n%s", script.Private(), int(patience.Seconds()), text)
}

// BusyFile returns what a host says about a file that another process has locked for too long, so that a script of
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
