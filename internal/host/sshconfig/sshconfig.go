// Package sshconfig decides how a host is reached, with what one logs in, and what proves that it is the host: from the
// target, else the operator's SSH configuration, else the defaults.
package sshconfig

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/kevinburke/ssh_config"
)

// A config answers from the SSH configuration of the operator and of the system. The zero value answers nothing.
type config struct {
	user, system *ssh_config.Config
	places       places // of the operator's own

	mu   sync.Mutex
	said map[string]bool // by once
}

// load reads the SSH configuration. Only one that was named must exist, and takes the place of the system's too.
func load(o Options) (*config, error) {
	if o.Path == "none" {
		return &config{}, nil
	}
	c := &config{places: places{}}
	var err error
	if o.Path != "" {
		c.user, err = o.read(o.expand(o.Path), true, c.places)
		return c, err
	}
	if c.user, err = o.read(filepath.Join(o.HomeDir, ".ssh", "config"), false, c.places); err != nil {
		return nil, err
	}
	c.system, err = o.read(filepath.Join(o.SystemDir, "ssh_config"), false, places{})
	return c, err
}

// read reads one file and what it includes; nil is a file that is not there and need not be.
func (o Options) read(path string, must bool, at places) (*ssh_config.Config, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !must {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the SSH configuration: %w", err)
	}
	fail := func(err error) (*ssh_config.Config, error) {
		return nil, fmt.Errorf("read the SSH configuration %s: %w", path, err)
	}
	lines, err := o.include(text, path, path, 0, at)
	if err != nil {
		return fail(err)
	}
	kept, skipped, err := dropMatches(lines)
	if err != nil {
		return fail(err)
	}
	for _, s := range skipped {
		o.Warn(fmt.Sprintf("%s: %q is not understood; its settings are passed over", path, s))
	}
	file, err := ssh_config.DecodeBytes(kept)
	if err != nil {
		return fail(err)
	}
	return file, nil
}

// get is the first value of a keyword for an alias in the operator's own configuration, "" if there is none.
func (c *config) get(alias, keyword string) string { return first(c.user, alias, keyword) }

// place is where a value of the operator's own configuration was written: "file:line".
func (c *config) place(keyword, value string) string {
	if place := c.places[placeKey(keyword, value)]; place != "" {
		return place
	}
	return "the SSH configuration"
}

// trust is get, for what says whether a machine is to be trusted: the system's configuration counts after the
// operator's own. How a machine is reached is not for the system's to say.
func (c *config) trust(alias, keyword string) string {
	if v := c.get(alias, keyword); v != "" {
		return v
	}
	return first(c.system, alias, keyword)
}

func (c *config) all(alias, keyword string) []string {
	if c.user == nil {
		return nil
	}
	v, _ := c.user.GetAll(strings.ToLower(alias), keyword)
	return v
}

func first(file *ssh_config.Config, alias, keyword string) string {
	if file == nil {
		return ""
	}
	v, _ := file.Get(strings.ToLower(alias), keyword) // it fails only for node types that the parser never makes
	return v
}

// once calls say if it was not called for this subject.
func (c *config) once(subject string, say func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.said[subject] {
		return
	}
	if c.said == nil {
		c.said = map[string]bool{}
	}
	c.said[subject] = true
	say()
}
