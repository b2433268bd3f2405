package host

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
)

// A Pool holds at most one SSH connection per machine and way to it, bastions included, and shares them among its
// Hosts. It is safe for concurrent use. Close it.
type Pool struct {
	opts  Options
	keys  *keyring
	known *hostKeys
	count counter
	slots chan struct{} // one per connection being opened

	configOnce sync.Once
	config     *sshConfig
	configErr  error

	mu        sync.Mutex
	closed    bool
	endpoints map[string]*endpoint
}

// NewPool makes a pool. Nothing is read or dialled before the first use of a Host (or Check).
func NewPool(o Options) *Pool {
	o = o.withDefaults()
	return &Pool{
		opts:      o,
		keys:      newKeyring(o),
		known:     newHostKeys(o),
		slots:     make(chan struct{}, o.MaxDials),
		endpoints: map[string]*endpoint{},
	}
}

// Host is the machine at t. It connects when it is first used, and again when the connection was lost; whatever is wrong
// with t is the error of the first use.
func (p *Pool) Host(t Target) Host {
	return &remote{name: t.DisplayName(), endpoint: sync.OnceValues(func() (*endpoint, error) { return p.endpoint(t) })}
}

// Check finds what is wrong with a target and its bastions without dialling anything: the address, the SSH
// configuration, missing, malformed or locked private keys. It may ask for a passphrase.
func (p *Pool) Check(t Target) error {
	e, err := p.endpoint(t)
	for ; err == nil && e != nil; e = e.via {
		var auth credentials
		if auth, err = p.credentials(e.r); err == nil {
			auth.close()
		} else {
			err = e.fail("find a key to log in with", err)
		}
	}
	return err
}

// FirstContacts are the keys met for the first time and trusted for this run only, in the order they were met,
// without those approved since. Show them, and give Approve the ones that were shown.
func (p *Pool) FirstContacts() []FirstContact { return p.known.contacts() }

// Approve records keys that somebody has approved in Options.RecordFile; from then on the hosts are known and take
// secrets. Contacts that are already approved are passed over.
func (p *Pool) Approve(contacts ...FirstContact) error { return p.known.approve(contacts) }

// Stats counts connections and commands so far.
func (p *Pool) Stats() Stats { return p.count.snapshot() }

// Close closes every connection; commands in flight fail with ErrConnectionLost. The pool cannot be used again.
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

// endpoint is where t leads, shared by all targets that lead there in the same way.
func (p *Pool) endpoint(t Target) (*endpoint, error) {
	r, err := p.resolve(t, 0)
	if err != nil {
		return nil, &Error{Class: Config, Host: t.DisplayName(), What: "find the way to the host", Err: err}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.intern(r), nil
}

func (p *Pool) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

func (p *Pool) intern(r resolved) *endpoint {
	var via *endpoint
	if r.via != nil {
		via = p.intern(*r.via)
	}
	key := r.key(via)
	e := p.endpoints[key]
	if e == nil {
		e = &endpoint{pool: p, r: r, via: via, key: key}
		p.endpoints[key] = e
	}
	return e
}

// key tells apart what must not share a connection.
func (r resolved) key(via *endpoint) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %q %q %q %t", r.addr(), r.identities, r.certFile, r.agent, r.asUser)
	for _, k := range r.hostKeys {
		b.WriteString(" " + ssh.FingerprintSHA256(k))
	}
	if via != nil {
		b.WriteString(" via " + via.key)
	}
	return b.String()
}
