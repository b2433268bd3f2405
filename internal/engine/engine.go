// Package engine joins the stages: observe, decide, plan, apply. The packages decide and plan define what to do and
// what is allowed. The engine itself decides when to observe again, what to lock, and which requests to refuse. It is
// a library: an Engine is built from values and interfaces and knows no file, flag, user or environment variable.
// Package workspace builds one from those for the commands.
//
// Every change takes the same two steps. Propose returns a Proposal for a Request; it changes nothing, and the Proposal
// can be shown, compared and kept. CarryOut carries out the Proposal if the Request still leads to the same one.
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
	"kubeone/internal/model/observed"
	"kubeone/internal/probe"
)

// Config holds everything an engine is built from. Its contents must not change afterwards. Interfaces and functions
// in it must be safe for concurrent use.
type Config struct {
	Want     desired.Cluster      // Artifacts and WorkloadImages are ignored: Releases provides them
	Manifest string               // the source of Want for the cluster's record: without secrets
	Hosts    map[string]host.Host // every host of Want, by identity.ProbeKey: its ID there
	Approver Approver             // records host keys; nil if no host is a host.FirstContacter
	Releases Releases             // what can be installed
	Connect  apply.Connectors     // open connections to the API and to etcd; the zero value opens real ones

	// Addons are the operator's own addons and Helm releases. Nil means unknown: then none is applied, compared, or
	// removed.
	Addons *addons.Sources

	Files apply.Files // secret files of Want's extras

	// Credentials are the host credentials for registries and proxies. Nil means unknown, and hosts keep their
	// credentials.
	Credentials *desired.Credentials

	// RunHook runs hooks on the operator's machine; nil if there is none.
	RunHook apply.RunHook

	// CA stores the known CA of the cluster. Nil accepts any CA that the control-plane hosts report.
	CA KnownCA

	// Observe observes the cluster. Nil probes every host, the API and etcd (probe.Run). Callers that already have
	// facts, or need only some hosts, pass their own function.
	Observe  func(context.Context, probe.Request) (probe.Result, error)
	Holder   string            // holder of locks and name in the history: "user@machine"
	Now      func() time.Time  // nil: time.Now
	Record   func(apply.Event) // gets every event of every run, concurrently; nil disables it
	Parallel int               // hosts busy at a time; 0: 32
}

// Approver records host keys that an operator has approved; *sshpool.Pool implements it.
type Approver interface {
	Approve(...host.FirstContact) error
}

// KnownCA stores the CA of a cluster, so that other machines cannot pose as the cluster. It stores the hash of the
// public key of the CA in kubeadm format: "sha256:…".
type KnownCA interface {
	CA() string           // "" if unknown
	Know(ca string) error // "" forgets it; may repeat a known value
}

// Engine holds the desired state of a cluster and everything needed to reach it. It does not change after New, and its
// methods are safe for concurrent use. The caller of New must close the connections to the hosts.
type Engine struct {
	cfg    Config
	addons []addons.Addon
	// network is the Helm release of the network plugin, or none.
	network []addons.HelmRelease
	// addonObjects holds the objects of addons, and of addons of kubeone that can be removed, by addon. It lacks addons
	// whose objects are unknown.
	addonObjects map[string][]observed.AddonObject
	system       map[string]string // image of kubeadm's components, by the app label of their pods
	live         []live.Component  // to compare with the objects in the cluster
	ways         map[identity.ProbeKey]host.Host
	digests      map[identity.ProbeKey]map[string]string // of the desired configuration, by name
	about        []string                                // IDs of the only hosts to probe and change; nil: all
	facts        Facts                                   // about the rest; nil if about is nil
}

const defaultParallel = 32

// New returns an engine without connecting to any host. If the configuration is invalid, the error is a *ConfigError.
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
		return nil, errors.New("engine: no releases: Config.Releases is nil")
	}
	c.Want.Artifacts, c.Want.WorkloadImages = nil, c.Releases.WorkloadImages()
	e := &Engine{cfg: c, ways: map[identity.ProbeKey]host.Host{},
		digests: map[identity.ProbeKey]map[string]string{}}
	digests := componentconfig.Digests(c.Want, c.Want.Hosts()...)
	for _, h := range c.Want.Hosts() {
		if c.Hosts[h.ID] == nil {
			return nil, fmt.Errorf("engine: Config.Hosts lacks host %q", h.ID)
		}
		key := identity.ProbeKey(h.ID)
		e.ways[key], e.digests[key] = c.Hosts[h.ID], digests[h.ID]
	}
	e.cfg.Hosts = nil // they are in ways
	if len(c.Want.ControlPlane) == 0 {
		return e, nil // only workers: nothing is applied to the cluster
	}
	if err := e.renderAddons(); err != nil {
		return nil, &ConfigError{err}
	}
	return e, nil
}

// Want returns the desired cluster.
func (e *Engine) Want() desired.Cluster { return e.cfg.Want }

// Host returns the machine with that key in Config.Hosts, or nil if there is none. HostOf finds one by host ID.
func (e *Engine) Host(key identity.ProbeKey) host.Host { return e.ways[key] }

// Holder returns Config.Holder.
func (e *Engine) Holder() string { return e.cfg.Holder }

// Manifest returns the source of the desired cluster, without secrets.
func (e *Engine) Manifest() string { return e.cfg.Manifest }

// Now returns the time of the engine's clock.
func (e *Engine) Now() time.Time { return e.cfg.Now() }

// renderAddons renders the objects to apply to the cluster. It needs no digests, and image names are the same for every
// architecture.
func (e *Engine) renderAddons() error {
	names, err := e.cfg.Releases.Names(resolveRelease(e.cfg.Want, "amd64", desired.Versions{}))
	if err != nil {
		return err
	}
	want := e.cfg.Want
	want.Artifacts = map[string]desired.Artifacts{names.Arch: names}
	if e.addons, err = addons.Render(want); err != nil {
		return err
	}
	plugin, isRelease, err := addons.NetworkRelease(want)
	if err != nil {
		return err
	}
	if isRelease {
		e.network = []addons.HelmRelease{plugin}
	}
	if e.cfg.Addons != nil {
		custom, err := addons.Custom(want, e.addons, *e.cfg.Addons)
		if err != nil {
			return err
		}
		e.addons = append(e.addons, custom...)
	}
	e.addonObjects = map[string][]observed.AddonObject{}
	for _, name := range addons.RemovableNames() {
		e.addonObjects[name] = addons.Removable(name)
	}
	for _, a := range e.addons {
		if a.Problem == "" {
			e.addonObjects[a.Name] = a.Identities()
		}
	}
	e.system = system.Images(names)
	e.live = system.Components(want, e.system)
	for _, a := range e.addons {
		e.live = append(e.live, live.Component{Name: a.Name, Applied: a.Objects, Problem: a.Problem})
	}
	return nil
}

// NewRunID returns an ID for a run: its time and a random part.
func (e *Engine) NewRunID() string {
	random := make([]byte, 3)
	_, _ = rand.Read(random) // never fails
	return e.Now().UTC().Format("20060102T150405Z") + "-" + hex.EncodeToString(random)
}

// Observe probes every host, the API and etcd. It changes nothing.
func (e *Engine) Observe(ctx context.Context) (probe.Result, error) {
	request := probe.Request{Now: e.cfg.Now, CA: e.knownCA(), Credentials: e.credentialDigests()}
	if e.about == nil {
		request.Components, request.Endpoint = e.live, e.cfg.Want.Endpoint.String()
		request.Releases = e.releaseKeys()
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
		if err := e.saveCA(seen.CA); err != nil {
			return seen, err
		}
	}
	if e.about == nil {
		return seen, nil
	}
	return e.completeAbout(ctx, seen)
}

// knownCA returns the known CA of the cluster, or "" if it is unknown.
func (e *Engine) knownCA() string {
	if e.cfg.CA == nil {
		return ""
	}
	return e.cfg.CA.CA()
}

// saveCA saves the cluster CA in Config.CA; "" deletes it. It is called for the first CA that answers, and with ""
// before a new cluster is created and after a cluster was reset.
func (e *Engine) saveCA(ca string) error {
	if e.cfg.CA == nil {
		return nil
	}
	if err := e.cfg.CA.Know(ca); err != nil {
		return &ConfigError{fmt.Errorf("cannot save the cluster CA: %w", err)}
	}
	return nil
}
