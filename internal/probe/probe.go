// Package probe observes every host, the Kubernetes API and etcd, and returns one observed.World.
//
// Each host is probed with one connection and one command, which runs the same script (script.sh) everywhere. This
// package parses the output. The API and etcd are read through a tunnel of the first control-plane host that has
// printed its credentials, while all hosts continue to print the rest. So a host that hangs does not delay the others.
// A missing answer is a fact in the world and not an error, and facts that were not read stay unknown. The package
// changes nothing. The world never contains credentials.
package probe

import (
	"context"
	"crypto/rand"
	_ "embed" // the script
	"errors"
	"fmt"
	"golang.org/x/sync/errgroup"
	"kubeone/internal/cluster"
	"kubeone/internal/cluster/live"
	"kubeone/internal/etcd"
	"kubeone/internal/host"
	"kubeone/internal/keys/authority"
	"kubeone/internal/model/observed"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Host contains the methods of host.Host that probes use. If it is also a host.FirstContacter, the probe reports host
// keys that are not approved yet.
type Host interface {
	Run(ctx context.Context, c host.Cmd) (host.Result, error)
	Dial(ctx context.Context, network, addr string) (net.Conn, error)
}

// Target is one host to ask.
type Target struct {
	ID           string // desired.Host.ID
	Host         Host
	ControlPlane bool // asked for credentials, and used to reach the API and etcd
}

// Request says which hosts to probe and how long to wait. Zero durations and counts mean the defaults.
type Request struct {
	Targets []Target
	// CA is the hash of the cluster CA in the format of observed.Host. Credentials of another CA are not used. ""
	// accepts any CA that the control-plane hosts report.
	CA string
	// Now returns the time on the operator's machine; nil: time.Now.
	Now func() time.Time
	// Endpoint is the public endpoint of the API, "host:port". "" means that it is not probed.
	Endpoint string
	// Credentials are compared with the credential files on hosts. Nil means that hosts do not report these files.
	Credentials *CredentialFiles
	// Components are compared with the objects in the cluster.
	Components []live.Component
	// Releases lists the desired Helm releases as "namespace/name". Nil means that no release is read.
	Releases []string

	// HostTimeout limits the time until a host starts to answer. It starts when the host is dialled, because hosts wait
	// for their turn. Default 8 s.
	HostTimeout   time.Duration
	AnswerTimeout time.Duration // until the end of the answer, from the same moment; default 30 s
	APITimeout    time.Duration // for one attempt to read the API; default 4 s
	EtcdTimeout   time.Duration // for one attempt to read etcd; default 14 s
	Timeout       time.Duration // for the API and etcd, after all hosts have finished; default 9.5 s
	// Parallel is the maximum number of hosts being dialled or logged in to at a time. Hosts that have started to
	// answer do not count. 0 means host.MaxDials, which also limits connection pools.
	Parallel int
}

// Result holds the observed world, and access to the API and etcd.
type Result struct {
	World observed.World
	// Access gives access to the API through the control-plane hosts with credentials, the one that answered first at
	// the front. It is nil if no host has credentials. It contains secrets.
	Access *cluster.Access
	// Etcd gives access to etcd in the same way. It is nil if no host has credentials. It contains secrets.
	Etcd *etcd.Access
	// CA is the hash of the CA that verified the API server that answered, or "" if none answered.
	CA       string
	Requests Requests
	// Spans show where the time went, sorted by beginning.
	Spans []Span
}

// Requests counts the requests to the API and etcd.
type Requests struct {
	API  int `json:"api"`
	Etcd int `json:"etcd"`
}

// Run probes the targets. It returns after Request.Timeout, or when every host has had its turn and its timeouts,
// whichever is later. It takes up to four seconds more if no API server on the hosts answers and it has to check the
// endpoint. It returns an error only if the request is invalid or ctx ends. Missing answers from hosts, the API or etcd
// are part of the result.
func Run(ctx context.Context, r Request) (Result, error) {
	if err := r.validate(); err != nil {
		return Result{}, err
	}
	p := &prober{Request: r.withDefaults(), answers: map[string]Answer{}}
	p.began = p.Now()
	if r.Credentials != nil {
		p.nonce = rand.Text()
	}
	p.unanswered.Store(int64(len(r.Targets)))
	within, cancel := withActivityTimeout(ctx, p.Timeout, func() bool { return p.unanswered.Load() > 0 })
	defer cancel()
	toAPI, toEtcd := make(chan candidate, len(r.Targets)), make(chan candidate, len(r.Targets))
	var api observed.API
	var members etcdResult
	var wait sync.WaitGroup
	wait.Go(func() { p.askHosts(within, toAPI, toEtcd) })
	wait.Go(func() { api = p.readAPI(within, toAPI) })
	wait.Go(func() { members = p.readEtcd(within, toEtcd) })
	wait.Wait()
	if p.hasStaleEpoch(api.Via) {
		api = p.readAPI(within, p.candidatesOfNewestLife(func(c Credentials) bool { return len(c.Kubeconfig) > 0 }))
	}
	if p.hasStaleEpoch(members.via) {
		members = p.readEtcd(within, p.candidatesOfNewestLife(func(c Credentials) bool { return c.Etcd.Complete() }))
	}
	if api.Reached != observed.Yes {
		api.ReadyAt = p.findReadyServer(ctx)
	}
	if err := ctx.Err(); err != nil {
		return Result{}, fmt.Errorf("probing %d hosts: %w", len(r.Targets), err)
	}
	return p.buildResult(api, members), nil
}

func (r Request) validate() error {
	seen := map[string]bool{}
	for _, t := range r.Targets {
		if t.ID == "" || t.Host == nil || seen[t.ID] {
			return fmt.Errorf("probe: target %q is empty or given twice", t.ID)
		}
		seen[t.ID] = true
	}
	if len(seen) == 0 {
		return errors.New("probe: no hosts to ask")
	}
	return nil
}

func (r Request) withDefaults() Request {
	set := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	set(&r.HostTimeout, 8*time.Second)
	set(&r.AnswerTimeout, max(30*time.Second, r.HostTimeout))
	set(&r.APITimeout, 4*time.Second)
	set(&r.EtcdTimeout, 14*time.Second)
	set(&r.Timeout, 9500*time.Millisecond)
	if r.Parallel <= 0 {
		r.Parallel = host.MaxDials
	}
	if r.Now == nil {
		r.Now = time.Now
	}
	return r
}

// prober is one probe.
type prober struct {
	Request

	nonce string // for the digests of credential files; "" if they are not requested

	began      time.Time
	unanswered atomic.Int64 // hosts without an answer so far

	mu       sync.Mutex
	answers  map[string]Answer // by ID
	requests Requests
	spans    []Span
}

func (p *prober) countRequests(api, etcd int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests.API += api
	p.requests.Etcd += etcd
}

// asksPerPlace times Request.Parallel is the maximum number of hosts that are probed at a time.
const asksPerPlace = 8

// askHosts probes all hosts, control-plane hosts first. It sends the hosts that give access to the API and etcd to the
// channels, and closes both at the end. A host counts towards Request.Parallel until it starts to answer or fails.
func (p *prober) askHosts(ctx context.Context, toAPI, toEtcd chan<- candidate) {
	defer close(toAPI)
	defer close(toEtcd)
	var group errgroup.Group
	group.SetLimit(asksPerPlace * p.Parallel)
	places := make(chan struct{}, p.Parallel)
	for _, t := range controlPlaneFirst(p.Targets) {
		places <- struct{}{}
		group.Go(func() error {
			defer p.unanswered.Add(-1)
			leave := sync.OnceFunc(func() { <-places })
			defer leave()
			offered := false
			offer := func(a Answer) {
				offered = true
				if len(a.Credentials.Kubeconfig) > 0 {
					toAPI <- candidate{target: t, answer: a}
				}
				if a.Credentials.Etcd.Complete() {
					toEtcd <- candidate{target: t, answer: a}
				}
			}
			a := p.askHost(ctx, t, leave, offer)
			p.mu.Lock()
			p.answers[t.ID] = a
			p.mu.Unlock()
			if !offered {
				offer(a)
			}
			return nil
		})
	}
	_ = group.Wait() // the functions never fail
}

// latestAnswer returns the facts known about the host of a candidate. While its answer is incomplete, these are few.
func (p *prober) latestAnswer(c candidate) observed.Host {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a, found := p.answers[c.target.ID]; found {
		return a.Host
	}
	return c.answer.Host
}

func controlPlaneFirst(targets []Target) []Target {
	var first, rest []Target
	for _, t := range targets {
		if t.ControlPlane {
			first = append(first, t)
		} else {
			rest = append(rest, t)
		}
	}
	return append(first, rest...)
}

// identifyingCA returns the CA that identifies the cluster: the known CA while any control-plane host trusts it, and
// its successor after that. During a rotation hosts trust two CAs, and the older one counts. If hosts belong to
// different clusters, the host through which the API was read decides.
func (p *prober) identifyingCA(via string) string {
	keys := p.trustedKeys(via)
	for _, t := range p.Targets {
		keys = append(keys, p.trustedKeys(t.ID)...)
	}
	if len(keys) == 0 || slices.Contains(keys, p.CA) {
		return p.CA
	}
	for _, key := range keys {
		followers := p.succeedingCAs(key)
		if !slices.ContainsFunc(keys, func(k string) bool { return !slices.Contains(followers, k) }) {
			return key
		}
	}
	return keys[0]
}

// trustedKeys returns the keys of the CAs in the admin.conf of a host.
func (p *prober) trustedKeys(id string) []string {
	text := p.answers[id].Credentials.Kubeconfig
	if len(text) == 0 {
		return nil
	}
	return authority.Keys(cluster.Access{Kubeconfig: text}.CA())
}

// succeedingCAs returns a CA and its successors, according to the succession files on all control-plane hosts.
// Unreadable files are ignored.
func (p *prober) succeedingCAs(ca string) []string {
	out := []string{ca}
	for i := 0; i < len(out); i++ {
		for _, t := range p.Targets {
			succession := p.answers[t.ID].Credentials.Succession
			if len(succession) == 0 {
				continue
			}
			for _, key := range authority.Followers(out[i], succession) {
				if !slices.Contains(out, key) {
					out = append(out, key)
				}
			}
		}
	}
	return out
}

// buildResult combines the answers of the hosts, the API and etcd.
func (p *prober) buildResult(api observed.API, members etcdResult) Result {
	world := observed.World{Hosts: make(map[string]observed.Host, len(p.answers)), API: api, Etcd: members.Etcd}
	ca, answered := p.identifyingCA(api.Via), adminCA(p.answers[api.Via].Credentials) != ""
	if !answered && p.CA != "" {
		ca = p.CA // no answer shows a successor, but the hosts belong to this CA
	}
	followers := p.succeedingCAs(ca)
	for id, a := range p.answers {
		if slices.ContainsFunc(a.Host.Authorities[observed.ClusterCA].Trusted, func(key string) bool {
			return slices.Contains(followers, key)
		}) {
			a.Host.CAHash = ca // even if the host also trusts a previous or the next CA
		}
		world.Hosts[id] = memberHealth(a.Host, members.Etcd)
	}
	if !answered {
		ca = "" // no host of this CA has answered
	}
	return Result{
		World: world, Access: p.connectAPI(api.Via), Etcd: p.etcdAccess(members.via),
		CA:       ca,
		Requests: p.requests, Spans: inOrder(p.spans),
	}
}

// Script runs on every host, as root, in POSIX sh. It changes nothing. Its first argument, argCredentials, also
// prints the credentials of a control-plane host; the second is a nonce. Its header describes the output.
//
//go:embed script.sh
var Script string

// accessLine ends the part of the output that is needed to ask the cluster: credentials, certificates and the API
// server's port.
const accessLine = "access\t1\n"

const (
	argCredentials = "credentials"
	argFacts       = "facts"
)
