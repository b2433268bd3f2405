// Package sshconfig determines how to reach a host, how to log in, and how to verify its key. The target takes
// precedence over the SSH configuration of the operator, as ssh reads it, and that over the defaults.
package sshconfig

import (
	"cmp"
	"errors"
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

// maxHops is the maximum length of a chain of bastions. A longer one is a loop in the SSH configuration.
const maxHops = 8

// Options say where the SSH configuration and the files it refers to are.
type Options struct {
	// Ignore skips the SSH configuration. Otherwise ssh is asked about it, if there is one.
	Ignore bool
	// SSH is the ssh program; "": ssh in PATH.
	SSH string
	// KnownHostsFiles are used instead of the files in the SSH configuration, including those of the system. Nil means
	// the files in the SSH configuration, otherwise the defaults of OpenSSH.
	KnownHostsFiles []string
	HomeDir         string // where ~ points
	SystemDir       string // directory of the system's ssh_config and ssh_known_hosts
	Getenv          func(string) string
	// Warn is called with settings that were ignored but may matter, such as unsupported ones.
	Warn func(message string)
}

func (o Options) sshProgram() string { return cmp.Or(o.SSH, "ssh") }

// expandHome replaces a leading ~/ with the home directory.
func (o Options) expandHome(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(o.HomeDir, rest)
	}
	return path
}

// A Resolver completes targets. It is safe for concurrent use.
type Resolver struct {
	opts  Options
	asker *asker

	mu     sync.Mutex
	warned map[string]bool // keywords
}

// New returns a Resolver. It neither reads nor runs anything before the first Resolve.
func New(o Options) *Resolver {
	return &Resolver{opts: o, asker: newAsker(o), warned: map[string]bool{}}
}

// Prefetch asks ssh about future hosts, a few at a time. Resolve returns its errors.
func (p *Resolver) Prefetch(addresses []string) {
	var wait sync.WaitGroup
	next := make(chan string)
	for range maxAsking {
		wait.Go(func() {
			for address := range next {
				_, _, _ = p.asker.askWithDefaults(address)
			}
		})
	}
	for _, address := range addresses {
		next <- address
	}
	close(next)
	wait.Wait()
}

// A Resolved target has every field decided.
type Resolved struct {
	Name    string
	Address string // dialled from here or from the previous hop
	Port    int
	User    string
	AsUser  bool // without sudo
	Keys    credentials.Source
	Peer    hostkey.Peer
	// Ciphers, MACs and KeyExchanges are the only ones allowed; nil leaves the choice to the caller.
	Ciphers, MACs, KeyExchanges []string
	Via                         *Resolved // the previous hop; nil for the first
}

// Addr returns "user@address:port" for messages.
func (r Resolved) Addr() string {
	return r.User + "@" + net.JoinHostPort(r.Address, strconv.Itoa(r.Port))
}

// Resolve completes a target and the hops before it.
func (p *Resolver) Resolve(t host.Target) (Resolved, error) {
	return resolution{opts: p.opts, ask: p.asker.askWithDefaults, warn: p.warnOnce}.resolveTarget(t, 0)
}

// A resolution is the way to one target.
type resolution struct {
	opts Options
	ask  func(alias string) (about, defaults answer, err error)
	warn func(keyword, message string)

	config, defaults answer // of the present hop
}

// resolveTarget completes a target and the hops before it.
func (p resolution) resolveTarget(t host.Target, depth int) (Resolved, error) {
	if err := t.Validate(); err != nil {
		return Resolved{}, err
	}
	if depth > maxHops {
		return Resolved{}, fmt.Errorf("more than %d bastions in a row; does a ProxyJump lead in a circle?", maxHops)
	}
	var err error
	if p.config, p.defaults, err = p.ask(t.Address); err != nil {
		return Resolved{}, err
	}
	r := Resolved{Name: t.DisplayName(), Address: t.Address, Port: t.Port, User: t.User, AsUser: t.AsUser}
	if err := p.resolvePlace(&r); err != nil {
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
	hop, err := p.resolveTarget(*via, depth+1)
	if err != nil {
		return Resolved{}, fmt.Errorf("bastion %s: %w", via.DisplayName(), err)
	}
	r.Via = &hop
	return r, nil
}

// resolvePlace sets the address, port and user.
func (p resolution) resolvePlace(r *Resolved) error {
	c := p.config
	r.Address = cmp.Or(c.firstValue("HostName"), r.Address)
	r.User = cmp.Or(r.User, c.firstValue("User"), "root")
	if s := c.firstValue("Port"); r.Port == 0 && s != "" {
		port, err := strconv.ParseUint(s, 10, 16)
		if err != nil {
			return fmt.Errorf("the SSH configuration: %q is not a port", s)
		}
		r.Port = int(port)
	}
	r.Port = cmp.Or(r.Port, 22)
	return nil
}

// resolveKeys sets the keys to log in with.
func (p resolution) resolveKeys(r *Resolved, t host.Target) {
	c, alias := p.config, t.Address
	identities := c.allValues("IdentityFile")
	r.Keys.Optional = t.KeyFile == ""
	r.Keys.Named = t.KeyFile != "" || len(identities) > 0
	switch {
	case t.KeyFile != "":
		r.Keys.Identities = []credentials.Identity{{Path: p.opts.expandHome(t.KeyFile), From: host.FromManifest}}
	case len(identities) > 0:
		for _, f := range identities {
			r.Keys.Identities = append(r.Keys.Identities, credentials.Identity{
				Path: p.expandTokens(f, *r, alias), From: "IdentityFile in the SSH configuration",
			})
		}
	default:
		for _, f := range []string{"id_ed25519", "id_ecdsa", "id_rsa"} {
			r.Keys.Identities = append(r.Keys.Identities, credentials.Identity{
				Path: filepath.Join(p.opts.HomeDir, ".ssh", f),
			})
		}
	}
	r.Keys.Only = t.KeyFile == "" && strings.EqualFold(c.firstValue("IdentitiesOnly"), "yes")
	r.Keys.Cert = credentials.Identity{Path: p.opts.expandHome(t.CertFile), From: "sshCertFile in the manifest"}
	if file := c.firstValue("CertificateFile"); t.CertFile == "" && file != "" {
		r.Keys.Cert = credentials.Identity{
			Path: p.expandTokens(file, *r, alias), From: "CertificateFile in the SSH configuration",
		}
	}
	p.resolveAgent(r, t)
}

// resolveAgent sets the agent to use.
func (p resolution) resolveAgent(r *Resolved, t host.Target) {
	socket := t.AgentSocket
	r.Keys.AgentFrom = "sshAgentSocket in the manifest"
	if socket == "" {
		socket = p.config.firstValue("IdentityAgent")
		r.Keys.AgentFrom = "IdentityAgent in the SSH configuration"
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
	r.Keys.Agent = p.expandTokens(socket, *r, t.Address)
	r.Keys.AgentName = r.Keys.Agent
}

// expandTokens expands ~ and the % tokens for files in the SSH configuration.
func (p resolution) expandTokens(s string, r Resolved, alias string) string {
	key := p.config.firstValue("HostKeyAlias")
	if key == "" {
		key = alias
	}
	var local string
	if strings.Contains(s, "%u") {
		local = localUser()
	}
	return p.opts.expandHome(strings.NewReplacer("%%", "%", "%d", p.opts.HomeDir, "%h", r.Address, "%k", key, "%n",
		alias,
		"%p", strconv.Itoa(r.Port), "%r", r.User, "%u", local).Replace(s))
}

// hopBefore returns the last bastion before t, with the bastions before that one, or nil if t is dialled directly.
func (p resolution) hopBefore(t host.Target, r Resolved) (*host.Target, error) {
	chain := t.Bastions
	if len(chain) == 0 {
		jumps, err := p.parseProxyJump()
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

// parseProxyJump parses ProxyJump: "[user@]host[:port]" or "ssh://..." separated by commas, outermost first.
func (p resolution) parseProxyJump() ([]host.Target, error) {
	spec := p.config.firstValue("ProxyJump")
	if command := p.config.firstValue("ProxyCommand"); spec == "" && !noneOrEmpty(command) {
		return nil, errors.New("the SSH configuration: ProxyCommand is not supported; use ProxyJump, or name a " +
			"bastion in the manifest")
	}
	if noneOrEmpty(spec) {
		return nil, nil
	}
	var chain []host.Target
	for hop := range strings.SplitSeq(spec, ",") {
		t, err := parseJump(strings.TrimSpace(hop))
		if err != nil {
			return nil, fmt.Errorf("the SSH configuration: ProxyJump: %w", err)
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
