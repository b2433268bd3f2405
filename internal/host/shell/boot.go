// Package shell builds the commands that run a script on a host as root, over any transport. The script is sent on
// standard input, and runs only if it arrives completely. Uploads use such a script too.
package shell

import (
	"fmt"
	"io"
	"strings"
)

// The end of a script. A script that a lost connection has truncated lacks it and is never run.
const scriptEnd = "\n#kubeone-end"

// Exit statuses and messages of the wrapper, not of the script.
const (
	exitTruncated = 74
	exitNoSudo    = 213
	wordTruncated = "kubeone: the script did not arrive completely; nothing was run"
	wordNoSudo    = "kubeone: no sudo"
)

// bootstrap is the only part of a command that is visible in process lists. It reads exactly n bytes of script from
// standard input and leaves the rest to the script. fullblock is needed because a single read of a pipe can return
// less. bootstrap is one line, because csh, as a login shell, does not allow line breaks in a word.
const bootstrap = `LC_ALL=C PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/bin; ` +
	`export LC_ALL PATH; kubeone_script=$(dd bs=%d count=1 iflag=fullblock 2>/dev/null); ` +
	`case $kubeone_script in *'#kubeone-end') eval "$kubeone_script" ;; ` +
	`*) echo '` + wordTruncated + `' >&2; exit 74 ;; esac`

// sudoCheck checks, before anything is sent, whether sudo works without a password. Its arguments are those of sh -c.
const sudoCheck = `sudo -n sh -c : </dev/null || { echo '` + wordNoSudo + `' >&2; exit 213; }; exec sudo -n sh -c "$@"`

// An Elevation is a way to become root.
type Elevation int

// The ways to become root.
const (
	AsIs      Elevation = iota // we are root
	BySudo                     // sudo is known to work
	CheckSudo                  // sudo, after a check
)

// Argv returns the command that runs a script of n bytes with its arguments.
func Argv(e Elevation, n int, args []string) []string {
	run := append([]string{fmt.Sprintf(bootstrap, n), "kubeone"}, args...)
	switch e {
	case BySudo:
		return append([]string{"sudo", "-n", "sh", "-c"}, run...)
	case CheckSudo:
		return append([]string{"sh", "-c", sudoCheck, "kubeone"}, run...)
	default:
		return append([]string{"sh", "-c"}, run...)
	}
}

// Wire returns the content of standard input: the script, then the script's own input.
func Wire(script string, stdin io.Reader) (r io.Reader, n int) {
	script += scriptEnd
	if stdin == nil {
		return strings.NewReader(script), len(script)
	}
	return io.MultiReader(strings.NewReader(script), stdin), len(script)
}

// CommandLine joins words to a command line for the login shell of the remote user, which can be any shell.
func CommandLine(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = quoteWord(w)
	}
	return strings.Join(quoted, " ")
}

// quoteWord quotes s as one word for any shell. Inside single quotes only the quote itself is special; in fish also the
// backslash; and in csh also the line end, which our words never contain.
func quoteWord(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=@%+,") == "" {
		return s
	}
	return "'" + strings.NewReplacer("'", `'\''`, `\`, `'\\'`).Replace(s) + "'"
}

// NoSudo reports whether a command failed because of CheckSudo, and returns the message of sudo.
func NoSudo(code int, stderr []byte) (detail string, failed bool) {
	if code != exitNoSudo {
		return "", false
	}
	before, _, found := strings.Cut(string(stderr), wordNoSudo)
	if !found {
		return "", false
	}
	said := strings.TrimSpace(before)
	if detail = said[strings.LastIndex(said, "\n")+1:]; detail == "" {
		detail = "sudo failed"
	}
	return detail, true
}
