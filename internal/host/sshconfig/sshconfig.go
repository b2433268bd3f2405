// Package sshconfig decides how a host is reached and with what one logs in: from the target, else the operator's SSH
// configuration, else the defaults.
package sshconfig

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kevinburke/ssh_config"
)

// A config answers from the operator's SSH configuration. The zero value answers nothing.
type config struct{ file *ssh_config.Config }

// load reads the SSH configuration. Only one that was named must exist.
func load(o Options) (*config, error) {
	path := o.expand(o.Path)
	switch path {
	case "none":
		return &config{}, nil
	case "":
		path = filepath.Join(o.HomeDir, ".ssh", "config")
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && o.Path == "" {
		return &config{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the SSH configuration: %w", err)
	}
	text, skipped := dropMatches(text)
	for _, s := range skipped {
		o.Warn(fmt.Sprintf("%s: %q is not understood; its settings are passed over", path, s))
	}
	file, err := ssh_config.DecodeBytes(text)
	if err != nil {
		return nil, fmt.Errorf("read the SSH configuration %s: %w", path, err)
	}
	return &config{file: file}, nil
}

// dropMatches blanks the Match blocks that the parser would refuse a whole file for: all but "Match all" and "Match
// host". Line numbers stay.
func dropMatches(text []byte) (kept []byte, dropped []string) {
	lines := bytes.Split(text, []byte("\n"))
	dropping := false
	for i, line := range lines {
		words := strings.Fields(strings.Replace(string(line), "=", " ", 1))
		if len(words) > 0 && slices.Contains([]string{"host", "match"}, strings.ToLower(words[0])) {
			dropping = strings.EqualFold(words[0], "match") && !plainMatch(words[1:])
			if dropping {
				dropped = append(dropped, strings.TrimSpace(string(line)))
			}
		}
		if dropping {
			lines[i] = nil
		}
	}
	return bytes.Join(lines, []byte("\n")), dropped
}

func plainMatch(criteria []string) bool {
	return len(criteria) == 1 && strings.EqualFold(criteria[0], "all") ||
		len(criteria) == 2 && strings.EqualFold(criteria[0], "host")
}

// get is the first value of a keyword for an alias, "" if there is none.
func (c *config) get(alias, keyword string) string {
	if c.file == nil {
		return ""
	}
	v, _ := c.file.Get(alias, keyword) // it fails only for node types that the parser never makes
	return v
}

func (c *config) all(alias, keyword string) []string {
	if c.file == nil {
		return nil
	}
	v, _ := c.file.GetAll(alias, keyword)
	return v
}
