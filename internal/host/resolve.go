package host

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
)

// maxHops bounds a chain of bastions; a longer one is a loop in the SSH configuration.
const maxHops = 8

// A resolved target has every field decided: from the manifest, else the SSH configuration, else the defaults.
type resolved struct {
	name       string
	address    string // what is dialled, or what the hop before dials
	port       int
	user       string
	identities []string // private key files, in order
	optional   bool     // identities may be missing: the manifest does not name them
	named      bool     // identities are meant for this host: by the manifest or the SSH configuration
	only       bool     // offer nothing of the agent but the identities
	certFile   string
	agent      string // socket, "" for none
	agentAsked bool   // an agent was asked for by name, so it must answer
	hostKeys   []ssh.PublicKey
	knownName  string   // HostKeyAlias, "" for the address
	knownFiles []string // known_hosts files, without the record file
	asUser     bool     // without sudo
	via        *resolved
}

// addr is the "user@address:port" of messages.
func (r resolved) addr() string {
	return r.user + "@" + net.JoinHostPort(r.address, strconv.Itoa(r.port))
}

// knownAddr is the host:port under which known_hosts files know the machine.
func (r resolved) knownAddr() string {
	if r.knownName != "" {
		return net.JoinHostPort(r.knownName, "22")
	}
	return net.JoinHostPort(strings.ToLower(r.address), strconv.Itoa(r.port))
}

// resolve decides every field of a target and of the hops before it.
func (p *Pool) resolve(t Target, depth int) (resolved, error) {
	p.configOnce.Do(func() { p.config, p.configErr = loadSSHConfig(p.opts) })
	if p.configErr != nil {
		return resolved{}, p.configErr
	}
	if err := t.validate(); err != nil {
		return resolved{}, err
	}
	if depth > maxHops {
		return resolved{}, fmt.Errorf("more than %d bastions in a row; does a ProxyJump lead in a circle?", maxHops)
	}
	r := resolved{name: t.DisplayName(), address: t.Address, port: t.Port, user: t.User, hostKeys: t.HostKeys, asUser: t.AsUser}
	if err := p.resolvePlace(&r, t.Address); err != nil {
		return resolved{}, err
	}
	p.resolveKeys(&r, t)
	via, err := p.hopBefore(t, r)
	if via == nil || err != nil {
		return r, err
	}
	hop, err := p.resolve(*via, depth+1)
	if err != nil {
		return resolved{}, fmt.Errorf("bastion %s: %w", via.DisplayName(), err)
	}
	r.via = &hop
	return r, nil
}

// resolvePlace decides where and who.
func (p *Pool) resolvePlace(r *resolved, alias string) error {
	c := p.config
	if name := c.get(alias, "HostName"); name != "" {
		r.address = strings.ReplaceAll(name, "%h", alias)
	}
	if r.user == "" {
		r.user = c.get(alias, "User")
	}
	if r.user == "" {
		r.user = "root"
	}
	if s := c.get(alias, "Port"); r.port == 0 && s != "" {
		port, err := strconv.ParseUint(s, 10, 16)
		if err != nil {
			return fmt.Errorf("SSH configuration of %s: %q is not a port", alias, s)
		}
		r.port = int(port)
	}
	if r.port == 0 {
		r.port = 22
	}
	r.knownName = c.get(alias, "HostKeyAlias")
	switch files := c.get(alias, "UserKnownHostsFile"); {
	case p.opts.KnownHostsFiles != nil:
		r.knownFiles = p.opts.KnownHostsFiles
	case files != "":
		for _, f := range strings.Fields(files) {
			r.knownFiles = append(r.knownFiles, p.tokens(f, *r, alias))
		}
	default:
		r.knownFiles = []string{filepath.Join(p.opts.HomeDir, ".ssh", "known_hosts")}
	}
	return nil
}

// resolveKeys decides what to log in with.
func (p *Pool) resolveKeys(r *resolved, t Target) {
	c, alias := p.config, t.Address
	identities := c.all(alias, "IdentityFile")
	r.optional = t.KeyFile == ""
	r.named = t.KeyFile != "" || len(identities) > 0
	switch {
	case t.KeyFile != "":
		r.identities = []string{p.opts.expand(t.KeyFile)}
	case len(identities) > 0:
		for _, f := range identities {
			r.identities = append(r.identities, p.tokens(f, *r, alias))
		}
	default:
		for _, f := range []string{"id_ed25519", "id_ecdsa", "id_rsa"} {
			r.identities = append(r.identities, filepath.Join(p.opts.HomeDir, ".ssh", f))
		}
	}
	r.only = t.KeyFile == "" && strings.EqualFold(c.get(alias, "IdentitiesOnly"), "yes")
	r.certFile = p.opts.expand(t.CertFile)
	if r.certFile == "" {
		r.certFile = p.tokens(c.get(alias, "CertificateFile"), *r, alias)
	}
	p.resolveAgent(r, t)
}

// resolveAgent decides which agent to ask.
func (p *Pool) resolveAgent(r *resolved, t Target) {
	socket := t.AgentSocket
	if socket == "" {
		socket = p.config.get(t.Address, "IdentityAgent")
	}
	r.agentAsked = socket != "" && socket != "none"
	name, isEnv := strings.CutPrefix(socket, "env:")
	switch {
	case socket == "none":
		r.agent = ""
	case socket == "", socket == "SSH_AUTH_SOCK":
		r.agent = p.opts.Getenv("SSH_AUTH_SOCK")
	case isEnv:
		r.agent = p.opts.Getenv(name)
	default:
		r.agent = p.tokens(socket, *r, t.Address)
	}
}

// tokens expands ~ and the % tokens of the SSH configuration that files use.
func (p *Pool) tokens(s string, r resolved, alias string) string {
	return p.opts.expand(strings.NewReplacer("%%", "%", "%d", p.opts.HomeDir, "%h", r.address, "%n", alias,
		"%p", strconv.Itoa(r.port), "%r", r.user).Replace(s))
}

// hopBefore is the last bastion before t, carrying those before it; nil if t is dialled directly.
func (p *Pool) hopBefore(t Target, r resolved) (*Target, error) {
	chain := t.Bastions
	if len(chain) == 0 {
		jumps, err := p.jumps(t.Address)
		if err != nil {
			return nil, err
		}
		chain = jumps
	}
	if len(chain) == 0 {
		return nil, nil
	}
	last := chain[len(chain)-1]
	if last.Address == t.Address && (last.Port == 0 || last.Port == r.port) {
		return nil, nil // "Host *" with a ProxyJump matches the bastion too
	}
	if len(last.Bastions) == 0 {
		last.Bastions = slices.Clone(chain[:len(chain)-1])
	}
	return &last, nil
}

// jumps reads ProxyJump: "[user@]host[:port]" or "ssh://..." separated by commas, outermost first.
func (p *Pool) jumps(alias string) ([]Target, error) {
	spec := p.config.get(alias, "ProxyJump")
	if spec == "" && !noneOrEmpty(p.config.get(alias, "ProxyCommand")) {
		return nil, errors.New("the SSH configuration has a ProxyCommand for it, which is not supported; use ProxyJump, or name a bastion in the manifest")
	}
	if noneOrEmpty(spec) {
		return nil, nil
	}
	var chain []Target
	for hop := range strings.SplitSeq(spec, ",") {
		t, err := parseJump(strings.TrimSpace(hop))
		if err != nil {
			return nil, fmt.Errorf("ProxyJump of %s: %w", alias, err)
		}
		chain = append(chain, t)
	}
	return chain, nil
}

func noneOrEmpty(s string) bool { return s == "" || strings.EqualFold(s, "none") }

func parseJump(s string) (Target, error) {
	s = strings.TrimSuffix(strings.TrimPrefix(s, "ssh://"), "/")
	var t Target
	if at := strings.LastIndex(s, "@"); at >= 0 {
		t.User, s = s[:at], s[at+1:]
	}
	t.Address = strings.Trim(s, "[]")
	if host, port, err := net.SplitHostPort(s); err == nil {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			return Target{}, fmt.Errorf("%q is not a port", port)
		}
		t.Address, t.Port = host, int(n)
	}
	return t, t.validate()
}
