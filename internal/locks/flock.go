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

// WithFile returns the script with the shell function lock_file added, which locks a file. lock_file waits at most
// patience for another process to release the file.
func WithFile(patience time.Duration, text string) string {
	return fmt.Sprintf("%s\nPATIENCE=%d\n\n%s", script.Private(), int(patience.Seconds()), text)
}

// FileBusyMessage returns the error message of a WithFile script that failed because another process held the lock on a
// file. It returns "" for any other error.
func FileBusyMessage(err error) string {
	var exit *host.ExitError
	if !errors.As(err, &exit) || exit.Code != ExitFileBusy {
		return ""
	}
	return host.Printable(lastLine(exit.Stderr))
}

func lastLine(out []byte) string {
	text := strings.TrimSpace(string(out))
	return text[strings.LastIndexByte(text, '\n')+1:]
}
