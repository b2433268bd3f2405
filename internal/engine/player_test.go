package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kubeone/internal/addons/chart"
	"kubeone/internal/host"
	"kubeone/internal/model/desired"
	"kubeone/internal/release"
)

// wanted is a cluster of one control-plane host and one worker.
func wanted(name string) desired.Cluster {
	return desired.Cluster{
		Name: name, KubernetesVersion: "1.36.3", Digest: "manifest-1",
		Endpoint: desired.Endpoint{Host: "192.0.2.11", Port: 6443},
		Network: desired.Network{
			PodSubnet:     "10.244.0.0/16",
			ServiceSubnet: "10.96.0.0/12",
			CNI:           desired.CNI{Name: "flannel", Supported: []string{"flannel"}},
		},
		ControlPlane: []desired.Host{
			{ID: "192.0.2.11", Role: desired.ControlPlane, PublicAddress: "192.0.2.11", PrivateAddress: "192.0.2.11"},
		},
		Workers: []desired.Host{{
			ID: "192.0.2.21", Role: desired.Worker, PublicAddress: "192.0.2.21", PrivateAddress: "192.0.2.21",
			Hostname: "worker",
		}},
	}
}

const (
	playedControlPlane = "192.0.2.11"
	playedWorker       = "192.0.2.21"
)

// stage is an engine with fakes for everything it works with.
type stage struct {
	*Engine
	hosts    map[string]*player
	releases *shelf
	approver *notary
}

// play returns an engine for bare machines.
func play(t *testing.T, change ...func(*Config)) stage {
	t.Helper()
	facts, err := os.ReadFile("../probe/testdata/empty.txt")
	if err != nil {
		t.Fatal(err)
	}
	s := stage{hosts: map[string]*player{}, releases: &shelf{}, approver: &notary{}}
	c := Config{
		Want: wanted("demo"), Hosts: map[string]host.Host{}, Releases: s.releases, Approver: s.approver,
		Holder:   "me@desk",
		Manifest: "name: demo\n",
	}
	for _, f := range change {
		f(&c)
	}
	for _, h := range c.Want.Hosts() {
		p := &player{id: h.ID, facts: string(facts)}
		s.hosts[h.ID], c.Hosts[h.ID] = p, p
	}
	if s.Engine, err = New(c); err != nil {
		t.Fatal(err)
	}
	return s
}

// carrying is a stage whose hosts complete each step at once and have something to reset.
func carrying(t *testing.T, change ...func(*Config)) stage {
	t.Helper()
	s := play(t, change...)
	for _, h := range s.hosts {
		h.works = true
		h.say("absent\t/etc/kubeone/marker\n", "exists\t/etc/kubeone/marker\nfile\t/etc/kubeone/marker:cluster=demo\n"+
			"file\t/etc/kubeone/marker:run=01HRUN\nfile\t/etc/kubeone/marker:complete=no\n")
	}
	return s
}

// changed returns the commands on all hosts, except probes and locks.
func (s stage) changed() []string {
	var out []string
	for _, p := range s.hosts {
		out = append(out, p.changes()...)
	}
	return out
}

// shelf has every release, unless it fails.
type shelf struct {
	mu        sync.Mutex
	fails     error // of Resolve
	known     func(image string) bool
	damaged   error // of Verify
	resolved  []release.Want
	verified  int
	workloads string // digest of images
	// published replaces the published manifests of each release.
	published []desired.PublishedManifest
}

func (s *shelf) Names(w release.Want) (desired.Artifacts, error) {
	a, err := release.Names(w)
	if s.published != nil {
		a.Published = s.published
	}
	return a, err
}

func (s *shelf) Resolve(_ context.Context, w release.Want) (desired.Artifacts, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resolved = append(s.resolved, w)
	if s.fails != nil {
		return desired.Artifacts{}, s.fails
	}
	a, err := release.Names(w)
	for n := range a.Images {
		a.Images[n].Known = s.known != nil && s.known(a.Images[n].Name)
	}
	return a, err
}

func (s *shelf) Chart(_ context.Context, from chart.Source) ([]byte, error) {
	if from.Archive != nil {
		return from.Archive, nil
	}
	return nil, &release.ChartError{Chart: from.String(), Err: errors.New("no route to host")}
}

func (s *shelf) WorkloadImages() string { return s.workloads }

func (s *shelf) Verify(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.verified++
	return s.damaged
}

func (s *shelf) Blob(string) (io.Reader, int64, error) {
	return nil, 0, errors.New("nothing is uploaded")
}

func (s *shelf) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = err
}

// notary records which keys were approved.
type notary struct {
	mu       sync.Mutex
	approved []string
	then     func() // the hosts' reaction
}

func (n *notary) Approve(contacts ...host.FirstContact) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range contacts {
		n.approved = append(n.approved, c.Fingerprint)
	}
	if n.then != nil {
		n.then()
	}
	return nil
}

// player is a host that answers the probe with recorded facts, grants its lock, and refuses everything else.
type player struct {
	id string

	mu       sync.Mutex
	facts    string
	commands []string
	contacts []host.FirstContact

	works   bool     // it accepts files and carries out steps
	held    bool     // its lock is held
	taken   bool     // another run holds its lock for good
	looked  []bool   // for each probe, whether the lock was held
	started []string // steps
}

var (
	_ host.Host           = (*player)(nil)
	_ host.FirstContacter = (*player)(nil)
)

// FirstContacts returns the unapproved keys.
func (p *player) FirstContacts() []host.FirstContact {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.contacts
}

// meet gives the host an unknown key, or, without a fingerprint, a known one.
func (p *player) meet(fingerprint string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.contacts = nil
	if fingerprint != "" {
		p.contacts = []host.FirstContact{{Host: p.Name(), Address: p.id + ":22", Fingerprint: fingerprint}}
	}
}

func (p *player) Name() string { return "node-" + p.id }

func (p *player) Close() error { return nil }

func (p *player) Dial(context.Context, string, string) (net.Conn, error) {
	return nil, errors.New("nothing listens")
}

func (p *player) Upload(_ context.Context, f host.File) error {
	if p.carriesOut() {
		return nil
	}
	p.note("upload " + f.Path)
	return errors.New("the player takes no files")
}

func (p *player) note(command string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.commands = append(p.commands, command)
}

// changes returns the commands so far, except probes and locks.
func (p *player) changes() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.commands
}

// say replaces something in the host's next answers.
func (p *player) say(old, now string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.facts = strings.ReplaceAll(p.facts, old, now)
}

func (p *player) Run(_ context.Context, c host.Cmd) (host.Result, error) {
	switch {
	case strings.Contains(c.Script, "kubeone-probe 1"):
		p.mu.Lock()
		p.looked = append(p.looked, p.held)
		p.mu.Unlock()
		_, err := io.WriteString(c.Stdout, p.present())
		return host.Result{}, err
	case c.Name == "take the lock":
		if p.isTaken() {
			_, err := io.WriteString(c.Stdout, "held\nholder=you@desk\nrun=another\n")
			return host.Result{}, err
		}
		p.hold(true)
		defer p.hold(false)
		_, _ = io.WriteString(c.Stdout, "granted 1\n")
		_, err := io.Copy(io.Discard, c.Stdin)
		return host.Result{}, err
	case p.carriesOut():
		p.work(c)
		return host.Result{}, nil
	}
	p.note(c.Name)
	return host.Result{ExitCode: 1}, &host.ExitError{Host: p.Name(), What: c.Name, Code: 1}
}

// present turns the recorded answer into a current one of this host.
func (p *player) present() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	clock := fmt.Sprintf("clock\t%f", float64(time.Now().UnixNano())/1e9)
	return strings.NewReplacer(
		"clock\t1800000000.250000000", clock, "clock\t1800000000.350000000", clock,
		"hostname\tcp-1", "hostname\tnode-"+strings.ReplaceAll(p.id, ".", "-"),
		"machine-id\ta7bdb53aa5cf4851a708d39020e5b177", fmt.Sprintf("machine-id\t%032x", net.ParseIP(p.id).To4()),
	).Replace(p.facts)
}

func (p *player) carriesOut() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.works
}

func (p *player) isTaken() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken
}

// hold records whether the lock is held.
func (p *player) hold(held bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = held
}

// looks returns, for each probe, whether the lock was held.
func (p *player) looks() []bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.looked)
}

// work records which step is started.
func (p *player) work(c host.Cmd) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if strings.Contains(c.Script, "systemd-run") {
		p.started = append(p.started, c.Args[2])
	}
}

// begun returns the steps started there.
func (p *player) begun() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.started)
}
