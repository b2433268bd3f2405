// Package engine joins the stages: observe, decide, plan, apply. What is to be done to a cluster, and what may be done,
// is said by decide and plan; the engine's own are when it is looked again, what is locked, and which request is
// refused. It is a library: an Engine is made from values and interfaces and knows no file, flag, user or environment
// variable; whoever has those (package workspace, for the commands) makes an Engine from them.
//
// Everything that is done to a cluster goes the same way. Propose answers a Request with a Proposal, which changes
// nothing and can be shown, compared and kept; CarryOut carries one out, if it is still what the Request leads to.
package engine

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"kubeone/internal/addons"
	"kubeone/internal/addons/system"
	"kubeone/internal/apply"
	"kubeone/internal/cluster/live"
	"kubeone/internal/componentconfig"
	"kubeone/internal/decide/identity"
	"kubeone/internal/host"
	"kubeone/internal/model/desired"
	"kubeone/internal/probe"
)

// Config is all that an engine is made from. What is in it must not be changed afterwards, and must be safe for
// concurrent use where it is an interface or a function.
type Config struct {
	Want     desired.Cluster      // Artifacts is not looked at: Releases has them
	Manifest string               // what Want was made from, as the cluster's record keeps it: without secrets
	Hosts    map[string]host.Host // every host of Want, by identity.ProbeKey: its ID there
	Approver Approver             // records host keys; nil where no host is a host.FirstContacter
	Releases Releases             // what is installed
	Connect  apply.Connectors     // how connections to the API and to etcd are made; the zero value makes real ones

	Files apply.Files // the secret ones of Want's extras

	// Credentials are what hosts are to have for registries and proxies; nil is not known: hosts keep what they have.
	Credentials *desired.Credentials

	// RunHook runs hooks on the operator's machine; nil where there is none.
	RunHook apply.RunHook

	// CA is by which CA the cluster is known to the caller; nil takes whatever its control-plane hosts say.
	CA KnownCA

	// Observe finds out what is. Nil asks every host, the API and etcd (probe.Run). A caller that has facts
	// already, or is concerned with some of the hosts, hands in one of its own.
	Observe  func(context.Context, probe.Request) (probe.Result, error)
	Holder   string            // who holds locks and is named in the history: "user@machine"
	Now      func() time.Time  // nil is time.Now
	Record   func(apply.Event) // is told all that happens in every run; nil is nobody. It may be called concurrently
	Parallel int               // hosts busy at a time; 0 is 32
}

// Approver records host keys that somebody has approved; a *sshpool.Pool is one.
type Approver interface {
	Approve(...host.FirstContact) error
}

// KnownCA remembers by which CA a cluster is known, so that nobody else can pose as it. It is the hash of the CA's
// public key, as kubeadm writes it: "sha256:…".
type KnownCA interface {
	CA() string           // "" while it is not known
	Know(ca string) error // "" forgets it; often it is known already
}

// Engine is one cluster as it is wanted, and the means to make it so. It is not changed after New, and its methods
// may be called by several goroutines at the same time. What its hosts hold open belongs to whoever made them.
type Engine struct {
	cfg     Config
	addons  []addons.Addon
	addonOf map[string]string // digest by name
	system  map[string]string // image of what kubeadm applies, by its pods' app
	live    []live.Component  // what is compared with the objects in the cluster
	ways    map[identity.ProbeKey]host.Host
	digests map[identity.ProbeKey]map[string]string // of the wanted configuration, by name
	about   []string                                // IDs of the only hosts that are probed and acted on; nil is all
	facts   Facts                                   // of the rest; nil where about is
}

const defaultParallel = 32

// New makes an engine. It asks nothing of any host. A cluster that cannot be made is a *ConfigError.
func New(c Config) (*Engine, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Parallel == 0 {
		c.Parallel = defaultParallel
	}
	if c.Observe == nil {
		c.Observe = probe.Run
	}
	if c.Releases == nil {
		return nil, errors.New("engine: no releases are given")
	}
	c.Want.Artifacts = nil
	e := &Engine{cfg: c, addonOf: map[string]string{}, ways: map[identity.ProbeKey]host.Host{},
		digests: map[identity.ProbeKey]map[string]string{}}
	digests := componentconfig.Digests(c.Want, c.Want.Hosts()...)
	for _, h := range c.Want.Hosts() {
		if c.Hosts[h.ID] == nil {
			return nil, fmt.Errorf("engine: no way to the host %q is given", h.ID)
		}
		key := identity.ProbeKey(h.ID)
		e.ways[key], e.digests[key] = c.Hosts[h.ID], digests[h.ID]
	}
	e.cfg.Hosts = nil // ways has them
	if len(c.Want.ControlPlane) == 0 {
		return e, nil // of workers alone, who apply nothing to the cluster
	}
	if err := e.renderAddons(); err != nil {
		return nil, &ConfigError{err}
	}
	return e, nil
}

// Want is the cluster as it is wanted.
func (e *Engine) Want() desired.Cluster { return e.cfg.Want }

// Host returns the way to the machine at a key of Config.Hosts; nil if there is none. HostOf takes a host's ID.
func (e *Engine) Host(key identity.ProbeKey) host.Host { return e.ways[key] }

// Holder is who the engine works for, as in Config.
func (e *Engine) Holder() string { return e.cfg.Holder }

// Manifest is what the wanted cluster was made from, without secrets.
func (e *Engine) Manifest() string { return e.cfg.Manifest }

// Now is the engine's clock.
func (e *Engine) Now() time.Time { return e.cfg.Now() }

// renderAddons renders what is applied to the cluster. Image names are the same for every architecture, and known
// before any digest.
func (e *Engine) renderAddons() error {
	names, err := e.cfg.Releases.Names(e.resolveRelease("amd64", desired.Versions{}))
	if err != nil {
		return err
	}
	want := e.cfg.Want
	want.Artifacts = map[string]desired.Artifacts{names.Arch: names}
	if e.addons, err = addons.Render(want); err != nil {
		return err
	}
	for _, a := range e.addons {
		e.addonOf[a.Name] = a.Digest
	}
	e.system = system.Images(names)
	e.live = system.Components(want, e.system)
	for _, a := range e.addons {
		e.live = append(e.live, live.Component{Name: a.Name, Applied: a.Objects})
	}
	return nil
}

// NewRunID returns a name for a run: its time, and something random.
func (e *Engine) NewRunID() string {
	random := make([]byte, 3)
	_, _ = rand.Read(random) // never fails
	return e.Now().UTC().Format("20060102T150405Z") + "-" + hex.EncodeToString(random)
}

// Observe asks every host, the API and etcd how they are. It changes nothing.
func (e *Engine) Observe(ctx context.Context) (probe.Result, error) {
	request := probe.Request{Now: e.cfg.Now, CA: e.knownCA(), Credentials: e.credentialDigests()}
	if e.about == nil {
		request.Components, request.Endpoint = e.live, e.cfg.Want.Endpoint.String()
	}
	for _, h := range e.cfg.Want.Hosts() {
		if e.about != nil && !slices.Contains(e.about, h.ID) {
			continue
		}
		request.Targets = append(request.Targets, probe.Target{
			ID: h.ID, Host: e.Host(identity.ProbeKey(h.ID)), ControlPlane: h.Role == desired.ControlPlane,
		})
	}
	seen, err := e.cfg.Observe(ctx, request)
	if err != nil {
		return seen, err
	}
	if seen.CA != "" {
		if err := e.rememberCA(seen.CA); err != nil {
			return seen, err
		}
	}
	if e.about == nil {
		return seen, nil
	}
	return e.completeAbout(ctx, seen)
}

// knownCA is the CA by which the caller knows the cluster; "" where it does not.
func (e *Engine) knownCA() string {
	if e.cfg.CA == nil {
		return ""
	}
	return e.cfg.CA.CA()
}

// rememberCA has the caller remember the cluster's CA: the first that answers, a new one with a new cluster, and none
// once the cluster has ended.
func (e *Engine) rememberCA(ca string) error {
	if e.cfg.CA == nil {
		return nil
	}
	if err := e.cfg.CA.Know(ca); err != nil {
		return &ConfigError{fmt.Errorf("the cluster's CA cannot be remembered: %w", err)}
	}
	return nil
}
