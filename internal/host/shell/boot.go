// Package shell is how a script gets to a host and becomes root there, whatever carries it: on the standard input,
// complete or not at all; and how a file is put in its place by such a script.
package shell

import (
	"fmt"
	"io"
	"strings"
)

// The end of a script, so that one cut short by a lost connection is never run.
const scriptEnd = "\n#kubeone-end"

// Exit statuses and words by which the wrapper, not the script, speaks.
const (
	exitTruncated = 74
	exitNoSudo    = 213
	wordTruncated = "kubeone: the script did not arrive completely; nothing was run"
	wordNoSudo    = "kubeone: no sudo"
)

// bootstrap is the only text of a command that is visible in process lists: it reads exactly n bytes of script from the
// standard input (a single read call would do on a file, not on a pipe: hence fullblock) and leaves the rest to it. It
// is one line, because csh, as a user's shell, knows no longer words.
const bootstrap = `LC_ALL=C PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/bin; ` +
	`export LC_ALL PATH; kubeone_script=$(dd bs=%d count=1 iflag=fullblock 2>/dev/null); ` +
	`case $kubeone_script in *'#kubeone-end') eval "$kubeone_script" ;; ` +
	`*) echo '` + wordTruncated + `' >&2; exit 74 ;; esac`

// sudoCheck finds out, before anything is sent, whether sudo works without a password. Its arguments are
// those of sh -c.
const sudoCheck = `sudo -n sh -c : </dev/null || { echo '` + wordNoSudo + `' >&2; exit 213; }; exec sudo -n sh -c "$@"`

// An Elevation is how to become root.
type Elevation int

// The ways to become root.
const (
	AsIs      Elevation = iota // we are root
	BySudo                     // sudo is known to work
	CheckSudo                  // sudo, after a check
)

// Argv is the command that runs a script of n bytes with its arguments.
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

// Wire is what travels on the standard input: the script, then what it reads.
func Wire(script string, stdin io.Reader) (r io.Reader, n int) {
	script += scriptEnd
	if stdin == nil {
		return strings.NewReader(script), len(script)
	}
	return io.MultiReader(strings.NewReader(script), stdin), len(script)
}

// CommandLine joins words for the login shell of the remote user, whatever shell that is.
func CommandLine(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = quoteWord(w)
	}
	return strings.Join(quoted, " ")
}

// quoteWord makes one word of s in any shell: single quotes keep everything but themselves, in fish backslashes, and in
// csh ends of lines, which no word of ours has.
func quoteWord(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=@%+,") == "" {
		return s
	}
	return "'" + strings.NewReplacer("'", `'\''`, `\`, `'\\'`).Replace(s) + "'"
}

// NoSudo recognises the failure of the check and what sudo said.
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
