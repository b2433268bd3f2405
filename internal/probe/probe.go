// Package probe finds out what is: it asks every host, the Kubernetes API and etcd, and answers with one
// observed.World.
//
// A host is asked once: one connection, one command, the same script for all (script.sh), parsed here. The API and etcd
// are asked through the tunnel of the first control-plane host that has told its credentials, while it and others are
// still telling the rest, so that one hung host delays nobody. Whatever does not answer is a fact of the world, not an
// error, and what could not be found out stays unknown.
//
// Nothing here changes anything, and credentials never become part of the world.
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

// Host is what is needed of a host; every host.Host is one. One that is a host.FirstContacter too tells of keys that
// nobody has approved yet.
type Host interface {
	Run(ctx context.Context, c host.Cmd) (host.Result, error)
	Dial(ctx context.Context, network, addr string) (net.Conn, error)
}

// Target is one host to ask.
type Target struct {
	ID           string // desired.Host.ID
	Host         Host
	ControlPlane bool // it is asked for credentials, and the API and etcd through it
}

// Request says whom to ask, and how long to wait. Zero durations and counts are the defaults.
type Request struct {
	Targets []Target
	// CA is the hash of the cluster's CA, as observed.Host has it, where that is known: credentials of another one are
	// not used. "" takes whatever the control-plane hosts say.
	CA string
	// Now is the operator's clock; nil means time.Now.
	Now func() time.Time
	// Endpoint is where the API's users look for it, "host:port"; "" does not ask there.
	Endpoint string
	// Credentials are compared with the files of hosts. Nil: hosts are not asked for them.
	Credentials *CredentialFiles
	// Components are what is compared with the objects in the cluster.
	Components []live.Component

	// HostTimeout is for one host to begin its answer, counted from when the host is dialled, not from when the run
	// began: hosts wait for their turn. 8 s.
	HostTimeout   time.Duration
	AnswerTimeout time.Duration // for one host that has begun to end its answer, counted from the same moment; 30 s
	APITimeout    time.Duration // for one attempt to read the API; 4 s
	EtcdTimeout   time.Duration // for one attempt to read etcd; 14 s
	Timeout       time.Duration // for the API and etcd, once every host has answered or used up its time; 9.5 s
	// Parallel is how many hosts are being dialled, or logged in to, at one time. One that has begun its answer does
	// not count. 0 means host.MostDials, the places for that in a pool of connections.
	Parallel int
}

// Result is what was found out, and the means to ask further.
type Result struct {
	World observed.World
	// Access reaches the API through the control-plane hosts that hold credentials, the one that answered first; nil
	// where no host has any. It holds secrets.
	Access *cluster.Access
	// Etcd reaches etcd likewise; nil where no host has credentials. It holds secrets.
	Etcd *etcd.Access
	// CA is the hash of the CA by which the API was verified that answered; "" where none did.
	CA       string
	Requests Requests
	// Spans are where the time went, in the order of their beginnings.
	Spans []Span
}

// Requests counts what was asked besides the one command on each host.
type Requests struct {
	API  int `json:"api"`
	Etcd int `json:"etcd"`
}

// Run asks everybody. It returns within Request.Timeout, or once every host has had its turn and its own time; four
// seconds later where the API of no host answers, and the endpoint is slow to say whether it serves. It fails only if
// the request makes no sense or ctx itself ended; hosts, an API or an etcd that do not answer are part of the result.
func Run(ctx context.Context, r Request) (Result, error) {
	if err := r.validate(); err != nil {
		return Result{}, err
	}
	p := &prober{Request: r.withDefaults(), answers: map[string]Answer{}}
	p.began = p.Now()
	if r.Credentials != nil {
		p.nonce = rand.Text()
	}
	p.unheard.Store(int64(len(r.Targets)))
	within, cancel := withPatience(ctx, p.Timeout, func() bool { return p.unheard.Load() > 0 })
	defer cancel()
	toAPI, toEtcd := make(chan candidate, len(r.Targets)), make(chan candidate, len(r.Targets))
	var api observed.API
	var members etcdResult
	var wait sync.WaitGroup
	wait.Go(func() { p.askHosts(within, toAPI, toEtcd) })
	wait.Go(func() { api = p.readAPI(within, toAPI) })
	wait.Go(func() { members = p.readEtcd(within, toEtcd) })
	wait.Wait()
	if p.staleEpoch(api.Via) {
		api = p.readAPI(within, p.ofNewestLife(func(c Credentials) bool { return len(c.Kubeconfig) > 0 }))
	}
	if p.staleEpoch(members.via) {
		members = p.readEtcd(within, p.ofNewestLife(func(c Credentials) bool { return c.Etcd.Complete() }))
	}
	if api.Reached != observed.Yes {
		api.ReadyAt = p.readyAt(ctx)
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
		r.Parallel = host.MostDials
	}
	if r.Now == nil {
		r.Now = time.Now
	}
	return r
}

// prober is one run.
type prober struct {
	Request

	nonce string // of the digests of files with credentials; "" asks for none

	began   time.Time
	unheard atomic.Int64 // hosts whose turn or answer is still to come

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

// askedAtOnce bounds the answers that are under way: for each place to dial from, so many hosts are asked at one time.
const askedAtOnce = 8

// askHosts asks all hosts, control plane first, and hands those on through which the API and etcd can be asked. A host
// holds one of the places until it has begun its answer, or failed.
func (p *prober) askHosts(ctx context.Context, toAPI, toEtcd chan<- candidate) {
	defer close(toAPI)
	defer close(toEtcd)
	var group errgroup.Group
	group.SetLimit(askedAtOnce * p.Parallel)
	places := make(chan struct{}, p.Parallel)
	for _, t := range controlPlaneFirst(p.Targets) {
		places <- struct{}{}
		group.Go(func() error {
			defer p.unheard.Add(-1)
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
	_ = group.Wait() // no function of the group fails
}

// latestOf is what is known of a candidate's host by now: it may have told no more than its credentials.
func (p *prober) latestOf(c candidate) observed.Host {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a, told := p.answers[c.target.ID]; told {
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

// knownBy is the CA by which the cluster is known: that which was known before as long as a control-plane host trusts
// it, then the one that has followed it. While it is rotated, hosts trust two: it is the one that vouches for the
// other. Where hosts know different clusters it is that of the host through which the API has answered.
func (p *prober) knownBy(via string) string {
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

// trustedKeys are the keys of the CAs by which a host's administrator knows the cluster.
func (p *prober) trustedKeys(id string) []string {
	text := p.answers[id].Credentials.Kubeconfig
	if len(text) == 0 {
		return nil
	}
	return authority.Keys(cluster.Access{Kubeconfig: text}.CA())
}

// succeedingCAs are a CA and those that have followed it, by the word of any control-plane host's file. Each file is
// read by itself: one that is not understood spoils no other.
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

// buildResult puts the parts together.
func (p *prober) buildResult(api observed.API, members etcdResult) Result {
	world := observed.World{Hosts: make(map[string]observed.Host, len(p.answers)), API: api, Etcd: members.Etcd}
	ca, answered := p.knownBy(api.Via), adminCA(p.answers[api.Via].Credentials) != ""
	if !answered && p.CA != "" {
		ca = p.CA // nobody has answered who could be followed to the next one; hosts are of it all the same
	}
	followers := p.succeedingCAs(ca)
	for id, a := range p.answers {
		if slices.ContainsFunc(a.Host.Authorities[observed.ClusterCA].Trusted, func(key string) bool {
			return slices.Contains(followers, key)
		}) {
			a.Host.CAHash = ca // whatever else it trusts, and whether still or already
		}
		world.Hosts[id] = memberHealth(a.Host, members.Etcd)
	}
	if !answered {
		ca = "" // nobody has answered who is of it
	}
	return Result{
		World: world, Access: p.connectAPI(api.Via), Etcd: p.etcdAccess(members.via),
		CA:       ca,
		Requests: p.requests, Spans: inOrder(p.spans),
	}
}

// Script is the text that runs on every host, as root, in POSIX sh. It changes nothing. Its first
// argument, argCredentials, makes it print the credentials of a control-plane host as well; the second is a nonce. Its
// head describes what it prints.
//
//go:embed script.sh
var Script string

// accessLine ends the part of the output that has all with which the cluster can be asked: credentials, certificates
// and the API server's port.
const accessLine = "access\t1\n"

const (
	argCredentials = "credentials"
	argFacts       = "facts"
)
