package sshpool

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"

	"kubeone/internal/host"
	"kubeone/internal/host/credentials"
	"kubeone/internal/host/hostkey"
	"kubeone/internal/host/sshconfig"
)

// A Pool holds at most one SSH connection for each machine and path to it, including bastions, and shares it among its
// Hosts. It keeps at most Options.MaxIdle unused connections and closes the least recently used ones first. It is safe
// for concurrent use. The caller must Close it.
type Pool struct {
	opts   Options
	config *sshconfig.Resolver
	keys   *credentials.Keyring
	known  *hostkey.Verifier
	count  counter
	slots  chan struct{} // one per connection being opened
	idle   *idle

	mu        sync.Mutex
	closed    bool
	endpoints map[string]*endpoint
}

// New returns a pool. The pool reads files and dials only when a Host is first used or Check is called.
func New(o Options) *Pool {
	o = o.withDefaults()
	return &Pool{
		opts:      o,
		config:    sshconfig.New(o.sshconfigOptions()),
		keys:      credentials.New(o.credentialOptions()),
		known:     hostkey.New(o.hostkeyOptions()),
		slots:     make(chan struct{}, o.MaxDials),
		idle:      &idle{most: o.MaxIdle},
		endpoints: map[string]*endpoint{},
	}
}

// Host returns the machine at t. It connects at first use and reconnects after a lost connection. Errors in t appear
// at first use.
func (p *Pool) Host(t host.Target) host.Host {
	return &remote{name: t.DisplayName(),
		endpoint: sync.OnceValues(func() (*endpoint, error) { return p.endpointFor(t) })}
}

// Prefetch asks ssh about the addresses of future targets, a few at a time.
func (p *Pool) Prefetch(addresses []string) { p.config.Prefetch(addresses) }

// Check checks a target and its bastions without dialling. It returns an error if the address, the SSH configuration, a
// file of known or revoked host keys, or a private key is missing, invalid or unreadable. It may ask for a passphrase.
func (p *Pool) Check(t host.Target) error {
	e, err := p.endpointFor(t)
	for ; err == nil && e != nil; e = e.via {
		var auth credentials.Set
		if auth, err = p.keys.Collect(e.r.Keys); err != nil {
			return e.classifyError("find a key to log in with", err)
		}
		auth.Close()
		err = p.known.Check(e.r.Peer)
	}
	return err
}

// FirstContacts returns the unapproved keys that were seen in this run, in that order. They are trusted only for this
// run. Callers should show them to the operator and pass the approved ones to Approve.
func (p *Pool) FirstContacts() []host.FirstContact { return p.known.Contacts() }

// Approve records approved keys in Options.RecordFile; after that, the hosts are known and accept secrets. Contacts
// that are already approved are skipped.
func (p *Pool) Approve(contacts ...host.FirstContact) error { return p.known.Approve(contacts) }

// Stats returns the counts of connections and commands so far.
func (p *Pool) Stats() Stats { return p.count.snapshot() }

// Close closes every connection; commands in progress fail with ErrConnectionLost. The pool cannot be used again.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	all := make([]*endpoint, 0, len(p.endpoints))
	for _, e := range p.endpoints {
		all = append(all, e)
	}
	p.mu.Unlock()
	var errs []error
	for _, e := range all {
		errs = append(errs, e.close())
	}
	return errors.Join(errs...)
}

// endpointFor returns the endpoint of t, shared by all targets that reach it in the same way.
func (p *Pool) endpointFor(t host.Target) (*endpoint, error) {
	r, err := p.config.Resolve(t)
	if err != nil {
		return nil, &host.Error{Class: host.Config, Host: t.DisplayName(), What: "find the way to the host", Err: err}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.internEndpoint(r), nil
}

func (p *Pool) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

func (p *Pool) internEndpoint(r sshconfig.Resolved) *endpoint {
	var via *endpoint
	if r.Via != nil {
		via = p.internEndpoint(*r.Via)
	}
	at := connectionKey(r, via)
	e := p.endpoints[at]
	if e == nil {
		e = &endpoint{pool: p, r: r, via: via, key: at}
		p.endpoints[at] = e
	}
	return e
}

// connectionKey returns a key that is the same for targets that can share a connection.
func connectionKey(r sshconfig.Resolved, via *endpoint) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %q %q %q %t %q", r.Addr(), r.Keys.Identities, r.Keys.Cert, r.Keys.Agent, r.AsUser,
		r.Peer.Accept)
	for _, k := range r.Peer.Pinned {
		b.WriteString(" " + ssh.FingerprintSHA256(k))
	}
	if via != nil {
		b.WriteString(" via " + via.key)
	}
	return b.String()
}
