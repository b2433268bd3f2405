// Package hostile tests kubeone against a host of an attacker. The host speaks SSH, and its answers try to impersonate
// others, harm them, stop work on them, learn a secret, or fill a memory, a terminal or a file. The tested program is
// the real one, with its engine and its connections; the rest of the cluster answers honestly.
// testdata/attempts.md lists the attempts and their results.
package hostile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"kubeone/internal/decide/condition"
	"kubeone/internal/engine"
	"kubeone/internal/model/problem"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
	"kubeone/internal/probe"
	"kubeone/internal/testutil/golden"
)

// Limits of the effect of an attacker on one round of probes.
const (
	longest  = 3 * time.Minute // of a round on a busy machine
	mostSent = 12 << 20        // bytes read from the attacker, including the buffers of both machines
	mostSaid = 64 << 10        // additional bytes shown
)

// TestHostileHost makes all attempts. It compares the decisions about all other hosts with those next to an honest
// host.
func TestHostileHost(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("all attempts take a minute")
	}
	s := newSuite(t)
	trials := s.allTrials()
	if len(trials) < 60 {
		t.Fatalf("%d attempts", len(trials))
	}
	outcomes := s.runAll(t, trials)
	for i, g := range trials {
		t.Run(string(g.as)+": "+g.name, func(t *testing.T) {
			t.Parallel()
			for _, f := range outcomes[i].failures {
				t.Error(f)
			}
		})
	}
	garbled, beside := runRecords(t)
	for i, g := range garbled {
		t.Run("the record: "+g.key+": "+g.what, func(t *testing.T) {
			t.Parallel()
			for _, f := range beside[i].failures {
				t.Error(f)
			}
		})
	}
	if asked := s.evil.api.requestCount(); asked > 0 {
		t.Errorf("the attacker's API was asked %d times", asked)
	}
	golden.Check(t, "testdata/attempts.md", renderDocument(trials, outcomes)+recordTable(garbled, beside))
}

// suite is the common state of the attempts.
type suite struct {
	common, old, evil *cluster
	honest            map[string]seen // plans next to an honest host, by baseline
}

func newSuite(t *testing.T) *suite {
	t.Helper()
	s := &suite{
		common: newCluster(t, version, nil), old: newCluster(t, "1.36.1", nil), evil: newCluster(t, version, nil),
		honest: map[string]seen{},
	}
	for _, g := range []*trial{
		{as: worker, cluster: s.common}, {as: firstContact, cluster: s.common}, {as: controlPlane, cluster: s.common},
		{as: poolHost, cluster: s.common},
		{as: worker, cluster: s.old, attempt: attempt{runs: "1.36.1"}},
		{as: worker, cluster: s.old, attempt: attempt{runs: "1.36.1", waits: true}},
	} {
		p, _, err := g.proposePlan(t)
		if err != nil {
			t.Fatal(err)
		}
		if why := p.Refusal(); why != nil {
			t.Fatalf("beside an honest %s: %v, %+v", g.as, why, p.Decision().Problems)
		}
		now := g.seeOthers(p)
		if g.as != poolHost && (len(now.Steps) == 0 || p.Observed.World.API.Via == "") {
			t.Fatalf("beside an honest %s there is nothing to do for others: %+v", g.as, p.Decision().Trace)
		}
		s.honest[g.baselineName()] = now
	}
	return s
}

// honestBaseline returns the plan with an honest host in place of the attacker.
func (s *suite) honestBaseline(g *trial) seen { return s.honest[g.baselineName()] }

// baselineName identifies the attempts with equal plans: those with the same role and cluster.
func (g *trial) baselineName() string { return fmt.Sprint(g.as, g.runs, g.waits) }

// allTrials returns all attempts in all their roles.
func (s *suite) allTrials() []*trial {
	var out []*trial
	for _, a := range allAttempts() {
		roles := a.as
		if a.meetsControllers() {
			roles = append(slices.Clone(roles), poolHost)
		}
		for _, as := range roles {
			out = append(out, &trial{attempt: a, as: as, secret: s.evil.api.adminKubeconfig()})
		}
	}
	return out
}

// meetsControllers reports whether the host of a Machine makes a worker's attempt, too. The controllers probe that host
// alone, so that no work on other hosts could wait.
func (a attempt) meetsControllers() bool {
	return slices.Contains(a.as, worker) && a.objects == nil && a.runs == "" && len(a.except) == 0
}

// outcome is the result of an attempt.
type outcome struct {
	came     string
	failures []string
}

// runAll makes all attempts, some in parallel. Slow attempts overlap.
func (s *suite) runAll(t *testing.T, trials []*trial) []outcome {
	t.Helper()
	out := make([]outcome, len(trials))
	var all sync.WaitGroup
	slots := make(chan struct{}, 4)
	for i, g := range trials {
		all.Go(func() {
			if !g.slow {
				slots <- struct{}{}
				defer func() { <-slots }()
			}
			out[i] = s.runTrial(t, g)
		})
	}
	all.Wait()
	return out
}

// runTrial makes one attempt.
func (s *suite) runTrial(t *testing.T, g *trial) (o outcome) {
	t.Helper()
	fail := func(format string, args ...any) { o.failures = append(o.failures, fmt.Sprintf(format, args...)) }
	switch {
	case g.objects != nil:
		g.cluster = newCluster(t, cmp.Or(g.runs, version), g.objects)
	case g.runs != "":
		g.cluster = s.old
	default:
		g.cluster = s.common
	}
	began := time.Now()
	p, knows, err := g.proposePlan(t)
	took := time.Since(began)
	if err != nil {
		fail("no plan: %v", err)
		return o
	}
	if took > longest {
		fail("it took %s", took)
	}
	if sent := g.sent.Load(); sent > mostSent*max(1, g.asked.Load()) {
		fail("%d bytes were taken from it", sent)
	}
	if knows != probe.CAHash(g.cluster.api.caCertificate()) {
		fail("the cluster's CA is %q now", knows)
	}
	if g.as == poolHost {
		checkReach(p, fail)
	} else {
		g.compareOthers(s.honestBaseline(g), p, fail)
	}
	if own := g.ownSteps(p); g.idle && g.as != poolHost && len(own) > 0 {
		fail("it has steps: %v", slices.Sorted(maps.Keys(own)))
	}
	g.checkHeard(fail)
	g.checkTexts(p, s.honestBaseline(g).texts, fail)
	o.came = g.describeResult(p)
	return o
}

// seen is the part of a proposal about hosts other than the attacker.
type seen struct {
	Hosts    map[string]condition.Assessment
	Steps    []plan.Step
	Operator []problem.Instruction
	Warnings []problem.Problem
	texts    map[string]int // their lengths, including everything about the attacker
}

// seeOthers omits the attacker and the machines that the attempt may affect.
func (g *trial) seeOthers(p engine.Proposal) seen {
	out := seen{Hosts: maps.Clone(p.Decision().Hosts), texts: map[string]int{}}
	for name, text := range g.outputTexts(p) {
		out.texts[name] = len(text)
	}
	about, own := g.hostsAbout(), g.ownSteps(p)
	for id := range about {
		delete(out.Hosts, id)
	}
	for _, s := range p.Plan.Steps {
		if own[s.ID] {
			continue
		}
		gone := func(id string) bool { return own[id] }
		s.Needs = slices.Sorted(slices.Values(slices.DeleteFunc(slices.Clone(s.Needs), gone)))
		if s.Intent.Kind == step.SaveRecord {
			s.Reason = "" // it depends on the length of the plan
		}
		s.After = slices.Sorted(slices.Values(slices.DeleteFunc(slices.Clone(s.After), gone)))
		out.Steps = append(out.Steps, s)
	}
	// Independent steps come in any order.
	slices.SortFunc(out.Steps, func(a, b plan.Step) int { return strings.Compare(a.ID, b.ID) })
	for _, i := range p.Plan.Operator {
		if !about[i.Host] {
			out.Operator = append(out.Operator, i)
		}
	}
	for _, w := range p.Decision().Warnings {
		if !g.isAboutAttacker(w) {
			out.Warnings = append(out.Warnings, w)
		}
	}
	return out
}

// hostsAbout returns the IDs of the attacker and of the hosts that the attempt may affect.
func (g *trial) hostsAbout() map[string]bool {
	about := map[string]bool{g.hostID(g.as.seatName()): true}
	for _, name := range g.except {
		about[g.hostID(name)] = true
	}
	return about
}

// ownSteps returns the IDs of the steps on these hosts, with their Nodes, or with a Node of no other member.
func (g *trial) ownSteps(p engine.Proposal) map[string]bool {
	about, own := g.hostsAbout(), map[string]bool{}
	for _, s := range p.Plan.Steps {
		node := s.Intent.NodeName
		invented := !slices.ContainsFunc(append(clusterMachines(), machinesOutsideManifest()...), func(m machine) bool {
			return m.name == node
		})
		if about[s.Host] || s.Host == "" && node != "" &&
			(invented || node == g.as.seatName() || slices.Contains(g.except, node)) {
			own[s.ID] = true
		}
	}
	return own
}

// compareOthers checks that decisions and steps for all others equal those next to an honest host. Two kinds of hosts
// may make all work wait for an operator: a control-plane host, which is trusted with that, and a worker in attempts
// with waits.
func (g *trial) compareOthers(honest seen, p engine.Proposal, fail func(string, ...any)) {
	now := g.seeOthers(p)
	why := p.Refusal()
	switch {
	case g.as == controlPlane && (why != nil || len(now.Steps) == 0):
		now.Steps, honest.Steps, now.Operator, honest.Operator = nil, nil, nil, nil
		told := p.Decision().Problems
		for _, i := range p.Plan.Operator {
			told = append(told, i.Problems...)
		}
		if !slices.ContainsFunc(told, func(f problem.Problem) bool { return g.isAboutAttacker(f) }) &&
			!slices.ContainsFunc(p.Plan.Operator, func(i problem.Instruction) bool {
				return i.Host == g.hostID(g.as.seatName())
			}) {
			fail("work is stopped, and no problem names the attacker: %s", asJSON(told))
		}
	case why != nil:
		fail("work on others is stopped: %v: %s", why, asJSON(p.Decision().Problems))
	}
	if len(g.except) > 0 { // next to an honest host these do not wait
		honest.Hosts = maps.Clone(honest.Hosts)
		for _, name := range g.except {
			delete(honest.Hosts, g.hostID(name))
		}
		honest.Steps = now.Steps
	}
	honest.texts, now.texts = nil, nil
	if diff := gocmp.Diff(asJSON(honest), asJSON(now)); diff != "" {
		fail("what is planned for others changes (-honest +hostile):\n%s", diff)
	}
}

// checkReach checks that the steps for a Machine's host affect only that host and its Node.
func checkReach(p engine.Proposal, fail func(string, ...any)) {
	for _, s := range p.Plan.Steps {
		if s.Host != machineUID && s.Host != "" || s.Intent.NodeName != poolHost.seatName() && s.Intent.NodeName != "" {
			fail("step %s is on host %q, about the Node %q", s.ID, s.Host, s.Intent.NodeName)
		}
	}
	for id := range p.Scripts {
		if id != machineUID {
			fail("there is a script for host %q", id)
		}
	}
}

// isAboutAttacker reports whether a problem names the attacker.
func (g *trial) isAboutAttacker(p problem.Problem) bool {
	id := g.hostID(g.as.seatName())
	if p.Host == id {
		return true
	}
	for _, value := range p.Parameters {
		if text := fmt.Sprint(value); strings.Contains(text, id) || strings.Contains(text, g.as.seatName()) {
			return true
		}
	}
	return false
}

func asJSON(v any) string {
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// checkHeard checks that the attacker received only the probe, and no secret.
func (g *trial) checkHeard(fail func(string, ...any)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.strange {
		fail("to the attacker came %s", s)
	}
	for _, heard := range g.heard {
		for _, secret := range g.cluster.secretTexts() {
			// The probe's own script mentions keys.
			if strings.Contains(strings.ReplaceAll(string(heard), probe.Script, ""), secret) {
				fail("the attacker was told a secret")
			}
		}
	}
}

// checkTexts checks that all output, for people and for other programs, is printable text of limited length.
func (g *trial) checkTexts(p engine.Proposal, honest map[string]int, fail func(string, ...any)) {
	for name, text := range g.outputTexts(p) {
		_, beside := honest[name] // an honest host may not need this script
		if beside && len(text) > honest[name]+mostSaid {
			fail("%s has %d bytes, beside an honest host %d", name, len(text), honest[name])
		}
		for _, shown := range decodeTexts(text) {
			if at := strings.IndexFunc(shown, isStrange); at >= 0 {
				fail("%s has %q", name, shown[max(0, at-40):min(len(shown), at+20)])
				break
			}
		}
	}
}
