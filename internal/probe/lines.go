package probe

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kubeone/internal/host"
)

const (
	header = "kubeone-probe"
	format = "1"
	// endOfBlock is the line after the last of a list of lines that are values as they are.
	endOfBlock = "block\t"
)

// Errors of a host's answer, for errors.Is.
var (
	ErrGarbled   = errors.New("the host's answer is not that of the probe script")
	ErrTruncated = errors.New("the host's answer ends in the middle")
)

// lines is a host's answer: the values of each name in the order in which they were printed.
type lines map[string][]string

// mostText is how long an answer may be, in bytes; those of real hosts have some 50 kB.
const mostText = 4 << 20

// How much of an answer is kept, however much of it there is. Honest hosts have far less of everything.
const (
	longestLine = 1 << 10  // bytes of a fact
	longestData = 64 << 10 // bytes of a line out of a file: of a certificate, or a kubeconfig
	mostValues  = 256      // values of a list: addresses, programs, certificates
)

// kept is a line as far as it is kept: without what is not printed.
func kept(name, text string) string {
	most := longestLine
	if name == "pem" || name == "secret" || name == "yaml" {
		most = longestData
	}
	return host.Printed(text[:min(len(text), most)])
}

// readLines reads the script's output. Text before its first line is refused: what a login shell prints there would be
// part of every file that is read later. A line without a tab is passed over, unless a block has begun: there every
// line is a value.
func readLines(out []byte) (lines, error) {
	found := lines{}
	started, ended, block := false, false, ""
	for text := range strings.Lines(string(out)) {
		text = strings.TrimRight(text, "\r\n")
		name, _, _ := strings.Cut(text, "\t")
		text = kept(cmp.Or(block, name), text)
		name, value, ok := strings.Cut(text, "\t")
		switch {
		case ended:
		case block != "" && text != endOfBlock:
			found[block] = append(found[block], text)
		case !started && name != header && strings.TrimSpace(text) != "":
			return nil, fmt.Errorf("%w: before it stands %.60q; the shell of the SSH user must print nothing when it "+
				"runs a command (.bashrc, .profile)", ErrGarbled, text)
		case !ok:
		case name == header && value != format:
			return nil, fmt.Errorf("%w: its format is %.20q, not %s", ErrGarbled, value, format)
		case name == header:
			started = true
		case name == "end":
			ended = started
		case started && name == "block":
			block = value
		case started:
			found[name] = append(found[name], value)
		}
	}
	switch {
	case !started:
		return nil, fmt.Errorf("%w: it is empty", ErrGarbled)
	case !ended:
		return nil, ErrTruncated
	}
	return found, nil
}

// one is the first value of a name, without surrounding space; "" where there is none.
func (l lines) one(name string) string {
	if len(l[name]) == 0 {
		return ""
	}
	return strings.TrimSpace(l[name][0])
}

// has reports whether a name has that value.
func (l lines) has(name, value string) bool {
	for _, v := range l[name] {
		if v == value {
			return true
		}
	}
	return false
}

// pathLines splits the values "PATH:LINE" of a name by path.
func (l lines) pathLines(name string) map[string][]string {
	out := map[string][]string{}
	for _, v := range l[name] {
		if path, text, ok := strings.Cut(v, ":"); ok {
			out[path] = append(out[path], text)
		}
	}
	return out
}

// contents is the text of each file of a name, from lines "==> PATH <==" and what follows them. An empty file is none.
func (l lines) contents(name string) map[string][]byte {
	files := map[string][]byte{}
	file := ""
	for _, v := range l[name] {
		if path, ok := strings.CutPrefix(v, "==> "); ok {
			file = strings.TrimSuffix(path, " <==")
			continue
		}
		files[file] = append(append(files[file], v...), '\n')
	}
	for file, content := range files {
		if len(bytes.TrimSpace(content)) == 0 {
			delete(files, file)
		}
	}
	return files
}

// words are the values of a name that are words, sorted, each once, and no more than mostValues.
func (l lines) words(name string) []string {
	var out []string
	for _, v := range l[name] {
		if w := word(v); w != "" {
			out = append(out, w)
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	return out[:min(len(out), mostValues)]
}

// pairs reads lines of the form key=value; the last of a key counts, and quotes around a value are removed.
func pairs(text []string) map[string]string {
	out := map[string]string{}
	for _, t := range text {
		if key, value, ok := strings.Cut(strings.TrimSpace(t), "="); ok {
			out[strings.TrimSpace(key)] = strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	return out
}
