package sshconfig

import (
	"errors"
	"fmt"
	"net"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"

	"kubeone/internal/host"
	"kubeone/internal/host/hostkey"
)

// resolvePeer sets how to verify the host key of the machine.
func (p resolution) resolvePeer(r *Resolved, t host.Target) (err error) {
	c, alias := p.config, t.Address
	r.Peer = hostkey.Peer{
		Name: r.Name, Address: knownAddress(c.firstValue("HostKeyAlias"), *r), Pinned: t.HostKeys,
		Accept: t.Accept, AcceptAs: t.AcceptAs,
	}
	if r.Peer.Strict, err = isStrict(c.firstValue("StrictHostKeyChecking")); err != nil {
		return err
	}
	if r.Peer.Files, err = p.knownHosts(*r, alias); err != nil {
		return err
	}
	if file := c.firstValue("RevokedHostKeys"); !noneOrEmpty(file) {
		if r.Peer.Revocations, err = p.trustedPath(file, *r, alias); err != nil {
			return fmt.Errorf("RevokedHostKeys: %w", err)
		}
	}
	supported := ssh.SupportedAlgorithms()
	for _, a := range []struct {
		keyword   string
		supported []string
		into      *[]string
	}{
		{"HostKeyAlgorithms", supported.HostKeys, &r.Peer.Algorithms},
		{"Ciphers", supported.Ciphers, &r.Ciphers},
		{"MACs", supported.MACs, &r.MACs},
		{"KexAlgorithms", supported.KeyExchanges, &r.KeyExchanges},
	} {
		if *a.into, err = supportedAlgorithms(c.firstValue(a.keyword), p.defaults.firstValue(a.keyword),
			a.supported); err != nil {
			return fmt.Errorf("%s: %w", a.keyword, err)
		}
	}
	p.warnOf(alias)
	return nil
}

// knownAddress returns the "host:port" under which the machine is listed in known_hosts files. An alias applies to all
// ports.
func knownAddress(alias string, r Resolved) string {
	if alias != "" {
		return net.JoinHostPort(strings.ToLower(alias), "22")
	}
	return net.JoinHostPort(strings.ToLower(r.Address), strconv.Itoa(r.Port))
}

// isStrict reports whether a value of StrictHostKeyChecking refuses unknown keys without asking an operator. For other
// values our policy decides. No value accepts a changed key.
func isStrict(value string) (bool, error) {
	switch strings.ToLower(value) {
	case "yes", "true":
		return true, nil
	case "", "ask", "accept-new", "no", "false", "off":
		return false, nil
	}
	return false, fmt.Errorf("StrictHostKeyChecking: %q is not one of yes, ask, accept-new, no, off", value)
}

// knownHosts returns the known_hosts files of the user, then those of the system.
func (p resolution) knownHosts(r Resolved, alias string) ([]string, error) {
	if p.opts.KnownHostsFiles != nil {
		return p.opts.KnownHostsFiles, nil
	}
	var out []string
	for _, list := range []struct{ keyword, dir, name string }{
		{"UserKnownHostsFile", filepath.Join(p.opts.HomeDir, ".ssh"), "known_hosts"},
		{"GlobalKnownHostsFile", p.opts.SystemDir, "ssh_known_hosts"},
	} {
		files := strings.Fields(p.config.firstValue(list.keyword))
		if len(files) == 0 {
			first := filepath.Join(list.dir, list.name)
			out = append(out, first, first+"2")
			continue
		}
		for _, f := range files {
			if strings.EqualFold(f, "none") {
				continue
			}
			path, err := p.trustedPath(f, r, alias)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", list.keyword, err)
			}
			out = append(out, path)
		}
	}
	return out, nil
}

// trustedPath expands the path of a file that says which keys to trust. It returns an error if the path contains an
// unsupported token, because ignoring the file could ignore revocations.
func (p resolution) trustedPath(s string, r Resolved, alias string) (string, error) {
	if strings.ContainsAny(s, `"'\`) {
		return "", fmt.Errorf("the path %s is not supported: write it without quotes and blanks", s)
	}
	written := s // in messages: without the values of variables
	s, err := p.expandVariables(s)
	if err != nil {
		return "", err
	}
	if unknown := regexp.MustCompile(`%[^%dhknpru]|%$`).FindString(strings.ReplaceAll(s, "%%", "")); unknown != "" {
		return "", fmt.Errorf("the token %s in %s is not supported", unknown, written)
	}
	if s = p.expandTokens(s, r, alias); !filepath.IsAbs(s) {
		return "", fmt.Errorf("%s is not an absolute path; in a list of paths, none may contain a blank", written)
	}
	return s, nil
}

// expandVariables expands ${NAME}, which must be set.
func (p resolution) expandVariables(s string) (string, error) {
	var unset error
	s = regexp.MustCompile(`\$\{[^}]*\}`).ReplaceAllStringFunc(s, func(v string) string {
		value := p.opts.Getenv(v[2 : len(v)-1])
		if value == "" {
			unset = fmt.Errorf("%s is not set in the environment", v)
		}
		return value
	})
	return s, unset
}

// localUser returns the name of the user who runs the program; "" if unknown.
func localUser() string {
	u, err := user.Current()
	if err != nil {
		return ""
	}
	return u.Username
}

// supportedAlgorithms returns the supported algorithms in a list from the SSH configuration. It returns nil, which
// means our own choice, if the list is the default of ssh.
func supportedAlgorithms(list, byDefault string, supported []string) ([]string, error) {
	if list == byDefault {
		return nil, nil
	}
	listed := strings.Split(list, ",")
	out := slices.DeleteFunc(slices.Clone(supported), func(a string) bool { return !slices.Contains(listed, a) })
	if len(out) == 0 {
		return nil, errors.New("none of " + list + " is supported")
	}
	return out, nil
}

// A warning is an unsupported setting that would make a connection safer.
type warning struct{ keyword, instead string }

func notHonoured() []warning {
	return []warning{
		{"CheckHostIP", "the address of a host is not checked, only its name"},
		{"KnownHostsCommand", "known and revoked keys are read only from files"},
		{"CASignatureAlgorithms", "a known authority can sign with any supported algorithm"},
		{"RequiredRSASize", "keys of any size are accepted"},
	}
}

// warnOf warns about unsupported settings in the configuration of the operator. It ignores the system configuration,
// because settings from the distribution would cause a warning in every command.
func (p resolution) warnOf(alias string) {
	for _, w := range notHonoured() {
		if value := p.config.firstValue(w.keyword); !noneOrEmpty(value) && value != p.defaults.firstValue(w.keyword) {
			p.warn(w.keyword, fmt.Sprintf("the SSH configuration of %s sets %s %s, which is not supported: %s", alias,
				w.keyword, value, w.instead))
		}
	}
}

// warnOnce passes on the first warning about a keyword.
func (p *Resolver) warnOnce(keyword, message string) {
	p.mu.Lock()
	said := p.warned[keyword]
	p.warned[keyword] = true
	p.mu.Unlock()
	if !said {
		p.opts.Warn(message)
	}
}
