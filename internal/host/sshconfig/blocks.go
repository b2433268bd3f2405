package sshconfig

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Bounds of what an Include may bring, as OpenSSH has the first.
const (
	maxIncludes = 16      // files that include one another
	maxIncluded = 1 << 20 // bytes of one
)

// directive splits a line into its keyword, in lower case, and its arguments.
func directive(line []byte) (keyword string, arguments []string) {
	words := strings.Fields(strings.Replace(string(line), "=", " ", 1))
	if len(words) == 0 || strings.HasPrefix(words[0], "#") {
		return "", nil
	}
	return strings.ToLower(words[0]), words[1:]
}

// places says where a directive was first written, as "file:line", by its keyword and its value.
type places map[string]string

func (p places) note(line []byte, path string, number int) {
	line, _, _ = bytes.Cut(line, []byte(" #"))
	if keyword, arguments := directive(line); keyword != "" {
		key := placeKey(keyword, strings.Join(arguments, " "))
		if _, ok := p[key]; !ok {
			p[key] = fmt.Sprintf("%s:%d", path, number)
		}
	}
}

func placeKey(keyword, value string) string {
	value = strings.Join(strings.Fields(strings.Trim(value, `"`)), " ")
	return strings.ToLower(keyword + " " + value)
}

// noteFiles notes the places in files that the parser reads by itself: those that are included for some hosts.
func (p places) noteFiles(pattern string) {
	files, _ := filepath.Glob(pattern) // the parser reports what is wrong with it
	for _, file := range files {
		text, err := readBounded(file)
		if err != nil {
			continue
		}
		for i, line := range bytes.Split(text, []byte("\n")) {
			p.note(line, file, i+1)
		}
	}
}

// include puts the files that are included before any Host or Match in the place of the directive, so that they are
// read as the file itself is; the parser reads those that are included for some hosts, by their absolute paths.
//
// The text is that of a file, which the configuration at path is, or includes. The places of its lines are noted.
func (o Options) include(text []byte, file, path string, depth int, at places) ([]byte, error) {
	if depth > maxIncludes {
		return nil, errors.New("too many files include one another")
	}
	var out [][]byte
	forAll, number := true, 0
	for line := range bytes.Lines(text) {
		line = bytes.TrimRight(line, "\r\n")
		number++
		at.note(line, file, number)
		keyword, patterns := directive(line)
		switch {
		case keyword == "host", keyword == "match":
			forAll = false
		case keyword == "include" && forAll:
			for _, pattern := range patterns {
				included, err := o.included(pattern, path, depth, at)
				if err != nil {
					return nil, err
				}
				out = append(out, included...)
			}
			continue
		case keyword == "include":
			line = []byte("Include")
			for _, pattern := range patterns {
				line = append(line, " "+o.absolute(pattern, path)...)
				at.noteFiles(o.absolute(pattern, path))
			}
		}
		out = append(out, line)
	}
	return bytes.Join(out, []byte("\n")), nil
}

// included are the texts that a pattern of an Include in path names, each followed by what ends its last block.
func (o Options) included(pattern, path string, depth int, at places) ([][]byte, error) {
	pattern = o.absolute(pattern, path)
	files, err := filepath.Glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("include %s: %w", pattern, err)
	}
	var out [][]byte
	for _, file := range files {
		if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
			continue
		}
		text, err := readBounded(file)
		if err == nil {
			text, err = o.include(text, file, path, depth+1, at)
		}
		if err != nil {
			return nil, fmt.Errorf("include %s: %w", file, err)
		}
		out = append(out, text, []byte("Host *"))
	}
	return out, nil
}

// absolute is where a pattern of an Include in path leads: from the system's configuration below SystemDir, else below
// ~/.ssh.
func (o Options) absolute(pattern, path string) string {
	pattern = o.expand(strings.Trim(pattern, `"`))
	switch {
	case filepath.IsAbs(pattern):
		return pattern
	case filepath.Dir(path) == filepath.Clean(o.SystemDir):
		return filepath.Join(o.SystemDir, pattern)
	}
	return filepath.Join(o.HomeDir, ".ssh", pattern)
}

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxIncluded+1))
	if err == nil && len(text) > maxIncluded {
		err = fmt.Errorf("it is larger than %d bytes", maxIncluded)
	}
	return text, err
}

// dropMatches blanks the Match blocks that the parser would refuse a whole file for: all but "Match all", also in its
// final form, and "Match host". One that would make connections safer is an error instead. Line numbers stay.
func dropMatches(text []byte) (kept []byte, dropped []string, err error) {
	lines := bytes.Split(text, []byte("\n"))
	block := "" // the Match that is being dropped
	for i, line := range lines {
		keyword, arguments := directive(line)
		if keyword == "host" || keyword == "match" {
			block = ""
		}
		switch {
		case keyword == "host":
			lines[i] = bytes.ToLower(line) // DNS names are one whatever their case, and aliases are given so, too
		case keyword == "match" && matchesAll(arguments):
			lines[i] = []byte("Match all")
		case keyword == "match" && !(len(arguments) == 2 && strings.EqualFold(arguments[0], "host")):
			block = strings.TrimSpace(string(line))
			dropped = append(dropped, block)
		case keyword == "match":
			lines[i] = bytes.ToLower(line)
		}
		if block == "" {
			continue
		}
		if tightens(keyword, arguments) {
			return nil, nil, fmt.Errorf("%q is not understood, and must not be passed over, as it has %q: put that "+
				"under Host", block, strings.TrimSpace(string(line)))
		}
		lines[i] = nil
	}
	return bytes.Join(lines, []byte("\n")), dropped, nil
}

// matchesAll reports whether the criteria are "all" or "final all": the only pass over the file is the last one.
func matchesAll(criteria []string) bool {
	criteria = slices.Clone(criteria)
	criteria = slices.DeleteFunc(criteria, func(c string) bool { return strings.EqualFold(c, "final") })
	return len(criteria) == 1 && strings.EqualFold(criteria[0], "all")
}

// tightens tells whether a directive may keep a machine from being trusted.
func tightens(keyword string, arguments []string) bool {
	value := strings.ToLower(strings.Join(arguments, " "))
	switch keyword {
	case "stricthostkeychecking":
		return value == "yes" || value == "true"
	case "revokedhostkeys", "hostkeyalgorithms", "userknownhostsfile", "globalknownhostsfile", "knownhostscommand":
		return value != "none" && value != "/dev/null"
	}
	return false
}
