package hostile

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"golang.org/x/crypto/ssh"

	"kubeone/internal/decide"
	"kubeone/internal/engine"
	"kubeone/internal/host"
	"kubeone/internal/host/sshpool"
	"kubeone/internal/model/observed"
	"kubeone/internal/probe"
	"kubeone/internal/view"
)

// proposePlan runs the program: it probes the cluster with the attacker in it, decides and plans. It also returns the
// remembered CA.
func (g *trial) proposePlan(t *testing.T) (engine.Proposal, string, error) {
	t.Helper()
	port, key := g.startAttacker(t)
	home := t.TempDir()
	pool := sshpool.New(sshpool.Options{
		KnownHosts: host.PolicyProbe, RecordFile: filepath.Join(home, "known_hosts"), IgnoreSSHConfig: true,
		KnownHostsFiles: []string{filepath.Join(home, "none")}, HomeDir: home,
		Getenv: func(string) string { return "" },
		// Honest hosts answer late on a busy machine; observe limits the others.
		DialTimeout: 15 * time.Second, HandshakeTimeout: 15 * time.Second,
	})
	defer func() { _ = pool.Close() }()
	want, hosts := desiredCluster(g.as), map[string]host.Host{}
	for _, m := range g.as.presentMachines() {
		target := host.Target{
			Name: m.name, Address: m.at, Port: g.cluster.hosts.Port(), User: "root", KeyFile: g.cluster.key.Path,
			HostKeys: []ssh.PublicKey{g.cluster.hosts.HostKey()},
		}
		if m.name == g.as.seatName() {
			target.Port, target.HostKeys = port, nil
			if g.as == worker || g.as == poolHost {
				target.HostKeys = []ssh.PublicKey{key}
			}
		}
		hosts[g.hostID(m.name)] = pool.Host(target)
	}
	known := &knownCA{ca: probe.CAHash(g.cluster.api.caCertificate())}
	e, err := engine.New(engine.Config{
		Want: want, Manifest: "name: demo\n", Hosts: hosts, Approver: pool, Releases: shelf{}, Holder: "me@desk",
		Observe: g.observeCluster, CA: known,
	})
	if err != nil {
		return engine.Proposal{}, "", err
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*longest)
	defer cancel()
	if g.as == poolHost {
		if e, err = e.About(g.clusterFacts, machineUID); err != nil {
			return engine.Proposal{}, "", err
		}
	}
	p, err := e.Propose(ctx, g.engineRequest())
	return p, known.CA(), err
}

// engineRequest returns an operator's request, or the controllers' request for the attacker's host alone.
func (g *trial) engineRequest() engine.Request {
	switch {
	case g.as == poolHost:
		return engine.Worker{APIServers: []string{g.cluster.runs}, Turn: decide.Now}
	case !g.waits:
		return engine.Apply{}
	}
	limit := map[string]bool{}
	for _, m := range g.as.presentMachines() {
		limit[g.hostID(m.name)] = m.name != g.as.seatName()
	}
	return engine.Apply{Limit: limit}
}

// clusterFacts returns what the controllers learn about the cluster through its API.
func (g *trial) clusterFacts(ctx context.Context) (probe.Result, error) {
	return probe.API(ctx, g.cluster.api.kubeAccess(), time.Now())
}

// observeCluster probes like the program, except for the objects of addons, which the fake API lacks. It probes again
// when this machine is too busy for the honest hosts.
func (g *trial) observeCluster(ctx context.Context, r probe.Request) (probe.Result, error) {
	r.Components, r.Endpoint = nil, ""
	r.HostTimeout, r.APITimeout, r.EtcdTimeout, r.Timeout = 20*time.Second, 20*time.Second, 30*time.Second, time.Minute
	for tries := 1; ; tries++ {
		if g.slow { // longer each time
			n := time.Duration(tries)
			r.HostTimeout, r.AnswerTimeout, r.Timeout = 3*n*time.Second, 5*n*time.Second, 4*n*time.Second
		}
		seen, err := probe.Run(ctx, r)
		if g.as == poolHost { // no honest host is probed
			return seen, err
		}
		members := seen.World.Etcd.Members
		late := len(members) == 0 || slices.ContainsFunc(members, func(m observed.Member) bool {
			return m.Healthy != observed.Yes
		})
		for id, h := range seen.World.Hosts {
			late = late || h.Reach != observed.Reached && id != g.hostID(g.as.seatName())
		}
		if err != nil || tries == 5 || seen.World.API.Reached == observed.Yes && !late {
			return seen, err
		}
	}
}

// knownCA is the CA that the operator's machine remembers.
type knownCA struct {
	mu sync.Mutex
	ca string
}

func (k *knownCA) CA() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ca
}

func (k *knownCA) Know(ca string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ca = ca
	return nil
}

// outputTexts returns all output about a proposal, for people and for programs.
func (g *trial) outputTexts(p engine.Proposal) map[string]string {
	out := map[string]string{}
	shown := func(name string, write func(b *bytes.Buffer)) {
		var b bytes.Buffer
		write(&b)
		out[name] = b.String()
	}
	style := view.Style{Width: 120, Unicode: true}
	status := view.StatusInput{Want: p.Want, World: p.Observed.World, Decision: p.Decision(), Now: time.Now()}
	shown("the plan", func(b *bytes.Buffer) { view.Plan(b, style, p.Plan, view.Normal) })
	shown("the plan in full", func(b *bytes.Buffer) { view.Plan(b, style, p.Plan, view.Verbose) })
	shown("the decision", func(b *bytes.Buffer) { view.Decision(b, style, p.Decisions...) })
	shown("the problems", func(b *bytes.Buffer) {
		view.Problems(b, style, p.Decision().Problems, p.Plan.Hosts)
		view.Warnings(b, style, p.Decision().Warnings, p.Plan.Hosts)
	})
	shown("the status", func(b *bytes.Buffer) { view.Status(b, style, status) })
	shown("the times", func(b *bytes.Buffer) {
		view.PlanTiming(b, style, p.Plan, p.Observed.Spans, time.Second, p.Took)
	})
	encoded := func(name string, text []byte, err error) {
		out[name] = string(text)
		if err != nil {
			out[name] = fmt.Sprintf("\x00 no JSON: %v", err)
		}
	}
	text, err := view.PlanJSON(p.Plan, nil, p.Decisions...)
	encoded("the plan as JSON", text, err)
	text, err = view.StatusJSON(status)
	encoded("the status as JSON", text, err)
	text, err = json.Marshal(p.Observed.World)
	encoded("the world as JSON", text, err)
	for id, script := range p.Scripts {
		out["the script of "+id] = script
	}
	return out
}

// isStrange reports whether a character is neither printable nor a line end.
func isStrange(r rune) bool {
	return r != '\n' && r != '\t' && (r == unicode.ReplacementChar || !unicode.IsPrint(r))
}

// decodeTexts returns the texts in a JSON document, or any other text unchanged.
func decodeTexts(text string) []string {
	var value any
	if !strings.HasPrefix(text, "{") || json.Unmarshal([]byte(text), &value) != nil {
		return []string{text}
	}
	var out []string
	var collect func(any)
	collect = func(v any) {
		switch v := v.(type) {
		case string:
			out = append(out, v)
		case []any:
			for _, one := range v {
				collect(one)
			}
		case map[string]any:
			for key, one := range v {
				out = append(out, key)
				collect(one)
			}
		}
	}
	collect(value)
	return append(out, strings.ReplaceAll(text, "\n", ""))
}

// describeResult describes the result of the attempt.
func (g *trial) describeResult(p engine.Proposal) string {
	id := g.hostID(g.as.seatName())
	h, a := p.Observed.World.Hosts[id], p.Decision().Hosts[id]
	var out []string
	if h.Reach == observed.Reached {
		out = append(out, "it is "+string(a.Condition)+firstCodes(a.Reasons))
	} else {
		out = append(out, "nothing that it says counts ("+h.Class+")")
	}
	steps := 0
	for _, s := range p.Plan.Steps {
		if s.Host == id {
			steps++
		}
	}
	switch {
	case g.as == poolHost && p.Refusal() != nil:
		out = append(out, "its Machine waits"+firstCodes(p.Decision().Problems))
	case p.Refusal() != nil || g.as == controlPlane && len(g.seeOthers(p).Steps) == 0:
		out = append(out, "all work waits for a person"+firstCodes(p.Decision().Problems))
	case g.waits:
		out = append(out, "with `--host` the upgrade goes on without it")
	case steps > 0 && (g.as == firstContact || g.as == controlPlane):
		out = append(out, "it would join once its key is approved")
	case steps > 0:
		out = append(out, "it is worked on like any other")
	default:
		out = append(out, "nothing is done to it")
	}
	for _, name := range g.except {
		out = append(out, name+" waits, too")
	}
	return strings.Join(out, "; ")
}
