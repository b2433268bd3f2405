package sshconfig

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"kubeone/internal/host"
	"kubeone/internal/host/credentials"
	"kubeone/internal/host/hostkey"
)

// maxHops bounds a chain of bastions; a longer one is a loop in the SSH configuration.
const maxHops = 8

// Options say where the SSH configuration is, and what it may refer to.
type Options struct {
	// Path is the SSH configuration; "" means ~/.ssh/config if it exists, and for what concerns host keys ssh_config in
	// SystemDir after it; "none" disables both.
	Path string
	// KnownHostsFiles replace those of the SSH configuration, the system's too; nil means the latter, else OpenSSH's.
	KnownHostsFiles []string
	HomeDir         string // where ~ points
	SystemDir       string // where ssh_config and ssh_known_hosts of the whole system are
	Getenv          func(string) string
	// Warn receives what was passed over but may matter (a part of the SSH configuration that is not understood).
	Warn func(message string)
}

// expand replaces a leading ~/ by the home directory.
func (o Options) expand(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(o.HomeDir, rest)
	}
	return path
}

// A Resolver fills in what targets leave open. It is safe for concurrent use.
type Resolver struct {
	opts Options
	load func() (*config, error) // reads the configuration, once
}

// New makes a Resolver; nothing is read before the first Resolve.
func New(o Options) *Resolver {
	return &Resolver{opts: o, load: sync.OnceValues(func() (*config, error) { return load(o) })}
}

// A Resolved target has every field decided.
type Resolved struct {
	Name    string
	Address string // what is dialled, or what the hop before dials
	Port    int
	User    string
	AsUser  bool // without sudo
	Keys    credentials.Source
	Peer    hostkey.Peer
	// Ciphers, MACs and KeyExchanges are the only ones to be used; nil leaves them to the caller.
	Ciphers, MACs, KeyExchanges []string
	Via                         *Resolved // the hop before; nil for the first
}

// Addr is the "user@address:port" of messages.
func (r Resolved) Addr() string {
	return r.User + "@" + net.JoinHostPort(r.Address, strconv.Itoa(r.Port))
}

// Resolve decides every field of a target and of the hops before it.
func (p *Resolver) Resolve(t host.Target) (Resolved, error) {
	c, err := p.load()
	if err != nil {
		return Resolved{}, err
	}
	return resolution{p.opts, c}.resolve(t, 0)
}

// A resolution is one use of a configuration that was read.
type resolution struct {
	opts   Options
	config *config
}

// resolve decides every field of a target and of the hops before it.
func (p resolution) resolve(t host.Target, depth int) (Resolved, error) {
	if err := t.Validate(); err != nil {
		return Resolved{}, err
	}
	if depth > maxHops {
		return Resolved{}, fmt.Errorf("more than %d bastions in a row; does a ProxyJump lead in a circle?", maxHops)
	}
	r := Resolved{Name: t.DisplayName(), Address: t.Address, Port: t.Port, User: t.User, AsUser: t.AsUser}
	if err := p.resolvePlace(&r, t.Address); err != nil {
		return Resolved{}, err
	}
	if err := p.resolvePeer(&r, t); err != nil {
		return Resolved{}, fmt.Errorf("SSH configuration of %s: %w", t.Address, err)
	}
	p.resolveKeys(&r, t)
	via, err := p.hopBefore(t, r)
	if via == nil || err != nil {
		return r, err
	}
	hop, err := p.resolve(*via, depth+1)
	if err != nil {
		return Resolved{}, fmt.Errorf("bastion %s: %w", via.DisplayName(), err)
	}
	r.Via = &hop
	return r, nil
}

// resolvePlace decides where and who.
func (p resolution) resolvePlace(r *Resolved, alias string) error {
	c := p.config
	if name := c.get(alias, "HostName"); name != "" {
		r.Address = strings.ReplaceAll(name, "%h", alias)
	}
	if r.User == "" {
		r.User = c.get(alias, "User")
	}
	if r.User == "" {
		r.User = "root"
	}
	if s := c.get(alias, "Port"); r.Port == 0 && s != "" {
		port, err := strconv.ParseUint(s, 10, 16)
		if err != nil {
			return fmt.Errorf("%s: %q is not a port", c.place("Port", s), s)
		}
		r.Port = int(port)
	}
	if r.Port == 0 {
		r.Port = 22
	}
	return nil
}

// resolveKeys decides what to log in with.
func (p resolution) resolveKeys(r *Resolved, t host.Target) {
	c, alias := p.config, t.Address
	identities := c.all(alias, "IdentityFile")
	r.Keys.Optional = t.KeyFile == ""
	r.Keys.Named = t.KeyFile != "" || len(identities) > 0
	switch {
	case t.KeyFile != "":
		r.Keys.Identities = []credentials.Identity{{Path: p.opts.expand(t.KeyFile), From: host.FromManifest}}
	case len(identities) > 0:
		for _, f := range identities {
			r.Keys.Identities = append(r.Keys.Identities, credentials.Identity{
				Path: p.tokens(f, *r, alias), From: "IdentityFile in " + c.place("IdentityFile", f),
			})
		}
	default:
		for _, f := range []string{"id_ed25519", "id_ecdsa", "id_rsa"} {
			r.Keys.Identities = append(r.Keys.Identities, credentials.Identity{
				Path: filepath.Join(p.opts.HomeDir, ".ssh", f),
			})
		}
	}
	r.Keys.Only = t.KeyFile == "" && strings.EqualFold(c.get(alias, "IdentitiesOnly"), "yes")
	r.Keys.Cert = credentials.Identity{Path: p.opts.expand(t.CertFile), From: "sshCertFile in the manifest"}
	if file := c.get(alias, "CertificateFile"); t.CertFile == "" && file != "" {
		r.Keys.Cert = credentials.Identity{
			Path: p.tokens(file, *r, alias), From: "CertificateFile in " + c.place("CertificateFile", file),
		}
	}
	p.resolveAgent(r, t)
}

// resolveAgent decides which agent to ask.
func (p resolution) resolveAgent(r *Resolved, t host.Target) {
	socket := t.AgentSocket
	r.Keys.AgentFrom = "sshAgentSocket in the manifest"
	if socket == "" {
		socket = p.config.get(t.Address, "IdentityAgent")
		r.Keys.AgentFrom = "IdentityAgent in " + p.config.place("IdentityAgent", socket)
	}
	r.Keys.AgentAsked = socket != "" && socket != "none"
	name, isEnv := strings.CutPrefix(socket, "env:")
	switch {
	case socket == "none":
		return
	case socket == "", socket == "SSH_AUTH_SOCK":
		name, isEnv = "SSH_AUTH_SOCK", true
	}
	if isEnv {
		r.Keys.Agent, r.Keys.AgentName = p.opts.Getenv(name), "the value of "+name
		return
	}
	r.Keys.Agent = p.tokens(socket, *r, t.Address)
	r.Keys.AgentName = r.Keys.Agent
}

// tokens expands ~ and the % tokens of the SSH configuration that files use.
func (p resolution) tokens(s string, r Resolved, alias string) string {
	key := p.config.trust(alias, "HostKeyAlias")
	if key == "" {
		key = alias
	}
	var local string
	if strings.Contains(s, "%u") {
		local = localUser()
	}
	return p.opts.expand(strings.NewReplacer("%%", "%", "%d", p.opts.HomeDir, "%h", r.Address, "%k", key, "%n", alias,
		"%p", strconv.Itoa(r.Port), "%r", r.User, "%u", local).Replace(s))
}

// hopBefore is the last bastion before t, carrying those before it; nil if t is dialled directly.
func (p resolution) hopBefore(t host.Target, r Resolved) (*host.Target, error) {
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
	if last.Address == t.Address && (last.Port == 0 || last.Port == r.Port) {
		return nil, nil // "Host *" with a ProxyJump matches the bastion too
	}
	if len(last.Bastions) == 0 {
		last.Bastions = slices.Clone(chain[:len(chain)-1])
	}
	return &last, nil
}

// jumps reads ProxyJump: "[user@]host[:port]" or "ssh://..." separated by commas, outermost first.
func (p resolution) jumps(alias string) ([]host.Target, error) {
	spec := p.config.get(alias, "ProxyJump")
	if command := p.config.get(alias, "ProxyCommand"); spec == "" && !noneOrEmpty(command) {
		return nil, fmt.Errorf("%s: ProxyCommand is not supported; use ProxyJump, or name a bastion in the manifest",
			p.config.place("ProxyCommand", command))
	}
	if noneOrEmpty(spec) {
		return nil, nil
	}
	var chain []host.Target
	for hop := range strings.SplitSeq(spec, ",") {
		t, err := parseJump(strings.TrimSpace(hop))
		if err != nil {
			return nil, fmt.Errorf("%s: ProxyJump: %w", p.config.place("ProxyJump", spec), err)
		}
		chain = append(chain, t)
	}
	return chain, nil
}

func noneOrEmpty(s string) bool { return s == "" || strings.EqualFold(s, "none") }

func parseJump(s string) (host.Target, error) {
	s = strings.TrimSuffix(strings.TrimPrefix(s, "ssh://"), "/")
	var t host.Target
	if at := strings.LastIndex(s, "@"); at >= 0 {
		t.User, s = s[:at], s[at+1:]
	}
	t.Address = strings.Trim(s, "[]")
	if name, port, err := net.SplitHostPort(s); err == nil {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			return host.Target{}, fmt.Errorf("%q is not a port", port)
		}
		t.Address, t.Port = name, int(n)
	}
	return t, t.Validate()
}
