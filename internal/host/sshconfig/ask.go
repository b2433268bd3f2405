package sshconfig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Limits for running "ssh -G".
const (
	askTimeout = 10 * time.Second // commands of "Match exec" included
	maxAnswer  = 1 << 20          // bytes
	maxAsking  = 4                // processes at one time
)

// notSet is the value of settings that the operator did not set, so that neither defaults of ssh nor the system
// configuration set them.
const notSet = "/kubeone/not-set"

// An answer is the output of "ssh -G" for a host: values by keyword, in lower case. Nil has no values.
type answer map[string][]string

// firstValue returns the first value of a keyword; "" if it is not set.
func (a answer) firstValue(keyword string) string {
	if values := a.allValues(keyword); len(values) > 0 {
		return values[0]
	}
	return ""
}

// allValues returns the values of a keyword that may be set several times.
func (a answer) allValues(keyword string) []string {
	var out []string
	for _, value := range a[strings.ToLower(keyword)] {
		if value == notSet {
			break
		}
		out = append(out, value)
	}
	return out
}

// parseAnswer parses lines of a keyword, a space and a value.
func parseAnswer(text string) answer {
	a := answer{}
	for line := range strings.Lines(text) {
		keyword, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
		a[strings.ToLower(keyword)] = append(a[strings.ToLower(keyword)], value)
	}
	return a
}

// An asker asks ssh about each host once. It is safe for concurrent use.
type asker struct {
	opts  Options
	open  func() (asking, error)
	slots chan struct{}

	mu      sync.Mutex
	answers map[string]func() (answer, error)
}

// asking says how to ask ssh.
type asking struct {
	program  string // "" without a configuration or without ssh
	config   string // path of the configuration
	defaults answer // of ssh without any configuration
	same     bool   // the configuration is the same for every host
}

func newAsker(o Options) *asker {
	a := &asker{opts: o, slots: make(chan struct{}, maxAsking), answers: map[string]func() (answer, error){}}
	a.open = sync.OnceValues(a.findSSH)
	return a
}

// findSSH finds ssh and asks it for its defaults. Without a configuration it runs nothing.
func (a *asker) findSSH() (asking, error) {
	own, system := filepath.Join(a.opts.HomeDir, ".ssh", "config"), filepath.Join(a.opts.SystemDir, "ssh_config")
	var files []string
	for _, path := range []string{own, system} {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			files = append(files, path)
		}
	}
	if a.opts.Ignore || len(files) == 0 {
		return asking{}, nil
	}
	if strings.ContainsAny(own+system, "\"\\*?[\r\n") {
		return asking{}, fmt.Errorf("ssh cannot read %s and %s for kubeone: special characters in a path", own, system)
	}
	if err := checkIncludes(system); err != nil {
		return asking{}, err
	}
	program, err := exec.LookPath(a.opts.sshProgram())
	if err != nil {
		a.opts.Warn(fmt.Sprintf("%s is not read: ssh, which reads it for kubeone, is not installed; only the manifest "+
			"says how hosts are reached", strings.Join(files, " and ")))
		return asking{}, nil //nolint:nilerr // the manifest is enough
	}
	out := asking{program: program, same: isSameForAll(files, 0)}
	if out.defaults, err = a.runSSH(out, "none", "localhost"); err != nil {
		return asking{}, err
	}
	out.config = configFor(own, system, out.defaults)
	return out, nil
}

// checkIncludes returns an error if the system configuration has a relative Include. kubeone passes that file to ssh
// through an Include, so ssh would search in ~/.ssh instead of in the directory of the file.
func checkIncludes(system string) error {
	text, err := os.ReadFile(system) // #nosec G304 -- ssh_config
	if err != nil {
		return nil // ssh reports the error
	}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		words := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\r\n=\"", r) })
		if len(words) == 0 || !strings.EqualFold(words[0], "Include") {
			continue
		}
		for _, pattern := range words[1:] {
			if !filepath.IsAbs(pattern) && !strings.HasPrefix(pattern, "~") {
				return fmt.Errorf("%s:%d: Include %s: write the absolute path", system, number, pattern)
			}
		}
	}
	return nil
}

// configFor returns the configuration to pass to ssh: that of the operator, then that of the system. The defaults
// between them prevent the system configuration from deciding how to reach a host and from setting what is not
// supported.
func configFor(own, system string, defaults answer) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Include %q\nMatch all\n", own)
	for _, line := range []string{
		"HostName %h", "User root", "Port 22", "ProxyJump none", "IdentityFile " + notSet, "CertificateFile " + notSet,
		"IdentityAgent " + notSet, "IdentitiesOnly no",
	} {
		b.WriteString(line + "\n")
	}
	for _, w := range notHonoured() {
		if value := defaults.firstValue(w.keyword); value != "" { // else this ssh lacks the keyword
			b.WriteString(w.keyword + " " + value + "\n")
		}
	}
	fmt.Fprintf(&b, "Include %q\nMatch all\nUserKnownHostsFile %s\nGlobalKnownHostsFile %s\n", system, notSet, notSet)
	return b.String()
}

// askWithDefaults returns the configuration for a host, and the defaults of ssh.
func (a *asker) askWithDefaults(alias string) (about, defaults answer, err error) {
	how, err := a.open()
	if err != nil || how.program == "" {
		return nil, nil, err
	}
	key := alias
	if how.same {
		key = ""
	}
	a.mu.Lock()
	once := a.answers[key]
	if once == nil {
		once = sync.OnceValues(func() (answer, error) { return a.askAbout(how, alias) })
		a.answers[key] = once
	}
	a.mu.Unlock()
	about, err = once()
	return about, how.defaults, err
}

func (a *asker) askAbout(how asking, alias string) (answer, error) {
	a.slots <- struct{}{}
	defer func() { <-a.slots }()
	// A file, not a pipe, because "Match final" makes ssh read it twice.
	file, err := os.CreateTemp("", "kubeone-ssh-config-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	_, err = file.WriteString(how.config)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, err
	}
	about, err := a.runSSH(how, file.Name(), alias)
	if err == nil && how.same {
		delete(about, "hostname") // of the host in question
	}
	return about, err
}

// runSSH runs "ssh -G" without a shell. The host name cannot pass as an option.
func (a *asker) runSSH(how asking, config, alias string) (answer, error) {
	if strings.HasPrefix(alias, "-") || strings.ContainsAny(alias, "'`\"$\\;&<>|(){}!*?#~,") {
		return nil, fmt.Errorf("%q is not a host name", alias) // commands of "Match exec" may contain it as %h
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, how.program, "-G", "-T", "-F", config, "--", alias) // #nosec G204 -- no shell
	// Children of "Match exec" may keep the pipes open.
	cmd.WaitDelay = time.Second
	var out, messages bounded
	cmd.Stdout, cmd.Stderr = &out, &messages
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("ask ssh for its configuration of %s: no answer within %v; does a \"Match exec\" hang?",
			alias, askTimeout)
	case out.full:
		return nil, fmt.Errorf("ask ssh for its configuration of %s: more than %d bytes", alias, maxAnswer)
	case err != nil:
		said := strings.Join(strings.Fields(strings.ReplaceAll(messages.String(), config+": ", "")), " ")
		return nil, fmt.Errorf("ask ssh for its configuration of %s: %w: %s", alias, err, said[:min(len(said), 500)])
	}
	return parseAnswer(out.String()), nil
}

// bounded keeps the first maxAnswer bytes.
type bounded struct {
	kept bytes.Buffer // not embedded: its ReadFrom has no bound
	full bool
}

func (b *bounded) String() string { return b.kept.String() }

func (b *bounded) Write(p []byte) (int, error) {
	if b.full = b.full || b.kept.Len()+len(p) > maxAnswer; !b.full {
		_, _ = b.kept.Write(p)
	}
	return len(p), nil
}

// isSameForAll reports whether the files certainly contain the same settings for every host, so that running ssh once
// is enough for thousands of hosts. It returns false if they contain anything unusual.
func isSameForAll(files []string, depth int) bool {
	const most = 16 // files including one another
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil || depth > most {
			return false
		}
		for line := range strings.Lines(string(text)) {
			if !isLineForAll(line, depth) {
				return false
			}
		}
	}
	return true
}

func isLineForAll(line string, depth int) bool {
	words := strings.Fields(line)
	switch {
	case len(words) == 0, strings.HasPrefix(words[0], "#"):
		return true
	case strings.ContainsAny(line, "=\"'\\$%"):
		return false
	}
	values := words[1:]
	switch strings.ToLower(words[0]) {
	case "match", "hostname", "canonicalizehostname":
		return false
	case "host":
		return len(values) == 1 && values[0] == "*"
	case "include":
		for _, pattern := range values {
			included, err := filepath.Glob(pattern)
			if err != nil || !filepath.IsAbs(pattern) || !isSameForAll(included, depth+1) {
				return false
			}
		}
	}
	return true
}
