package hostile

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"kubeone/internal/componentconfig"
	"kubeone/internal/engine"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
)

// garbling is a text in the cluster's record that kubeone never writes. A user who may only write ConfigMaps can write
// it.
type garbling struct{ key, text, what string }

func allGarblings() []garbling {
	names := strings.TrimSpace(strings.Repeat("a.example.com ", 257))
	out := []garbling{
		{observed.RecordFormerEndpoints, "a,b", "two names with a comma"},
		{observed.RecordFormerEndpoints, "https://old.example.com", "a URL"},
		{observed.RecordFormerEndpoints, "fe80::1%eth0", "an address with a zone"},
		{observed.RecordFormerEndpoints, names, "257 names"},
	}
	for _, key := range []string{
		observed.RecordCluster, observed.RecordManifestDigest, observed.RecordManifest, observed.RecordRunID,
		observed.RecordNodes, observed.RecordHardening, observed.RecordAddons, observed.RecordHistory,
	} {
		out = append(out, garbling{key, "a,b: [" + escape, "terminal escapes"})
	}
	out = append(out, garbling{observed.RecordNodes, `{"127.0.3.22":"cp-1 w-2"}`, "two names as one"},
		garbling{observed.RecordAddons, `{"flannel":{}}`, "an object as a digest"},
		garbling{observed.RecordHardening, "off", "another word"})
	slices.SortStableFunc(out, func(a, b garbling) int { return strings.Compare(a.key, b.key) })
	return out
}

// writeRecord returns the cluster's record after a run, with one key replaced. An addon is outdated, and only the
// record says how the cluster is hardened.
func writeRecord(want desired.Cluster, hardening string, g garbling) func(objects) {
	return func(o objects) {
		nodes := map[string]string{}
		for _, m := range clusterMachines() {
			if h, ok := want.Host(m.at); ok && !m.bare {
				nodes[h.ID] = m.name
			}
		}
		names, err := json.Marshal(nodes)
		if err != nil {
			panic(err) // always texts
		}
		data := o[systemPath+"/configmaps/kubeone"].(object)["data"].(object)
		var sums map[string]string
		if err := json.Unmarshal([]byte(data[observed.RecordAddons].(string)), &sums); err != nil {
			panic(err) // written by the neighbouring file
		}
		sums["flannel"] = "older"
		older, err := json.Marshal(sums)
		if err != nil {
			panic(err) // always texts
		}
		data[observed.RecordAddons], data[observed.RecordNodes] = string(older), string(names)
		data[observed.RecordManifest], data[observed.RecordRunID] = manifestText(worker), "run-1"
		data[observed.RecordFormerEndpoints], data[observed.RecordHardening] = "old.example.com", hardening
		data[observed.RecordHistory] = `[{"id":"run-1","result":"done"}]`
		if g.key != "" {
			data[g.key] = g.text
		}
	}
}

// proposeBeside proposes for a healthy cluster with that record.
func (g garbling) proposeBeside(t *testing.T, hardening string) (*trial, engine.Proposal, error) {
	t.Helper()
	c := newCluster(t, version, writeRecord(desiredCluster(worker), hardening, g))
	c.sums = componentconfig.Digests(c.want.Harden(hardening), c.want.Hosts()...)
	honest := &trial{as: worker, cluster: c}
	p, _, err := honest.proposePlan(t)
	return honest, p, err
}

// runRecords garbles one key of the record after the other, in a hardened cluster and in one that is not hardened.
func runRecords(t *testing.T) ([]garbling, []outcome) {
	t.Helper()
	all := allGarblings()
	out := make([]outcome, len(all))
	for _, hardening := range []string{desired.HardeningBaseline, desired.HardeningNone} {
		honest, intact, err := garbling{}.proposeBeside(t, hardening)
		if err != nil {
			t.Fatal(err)
		}
		if why := intact.Refusal(); why != nil || !hasStep(intact, step.ApplyAddon) ||
			!hasStep(intact, step.JoinWorker) || hasStep(intact, step.Reconfigure) || hasStep(intact, step.APINames) {
			t.Fatalf("beside an intact record: %v, %s", why, asJSON(intact.Plan.Steps))
		}
		var group sync.WaitGroup
		for i, g := range all {
			group.Go(func() {
				now := g.runGarbling(t, hardening, honest.outputTexts(intact), intact)
				out[i].came, out[i].failures = now.came, append(out[i].failures, now.failures...)
			})
		}
		group.Wait()
	}
	return all, out
}

// runGarbling compares the proposals for the garbled and the intact record.
func (g garbling) runGarbling(t *testing.T, hardening string, texts map[string]string,
	intact engine.Proposal) (o outcome) {
	t.Helper()
	fail := func(format string, args ...any) { o.failures = append(o.failures, fmt.Sprintf(format, args...)) }
	honest, p, err := g.proposeBeside(t, hardening)
	if err != nil {
		fail("no plan: %v", err)
		return o
	}
	if api := p.Observed.World.API; api.Reached != observed.Yes || p.Refusal() != nil {
		fail("the API is known: %s (%s); refused: %v", api.Reached, api.Problem, p.Refusal())
	}
	named := slices.DeleteFunc(p.Decision().Warnings, func(w problem.Problem) bool {
		return w.Code != problem.RecordUnreadable && w.Code != problem.AddonsUnreadable
	})
	if len(named) != 1 || !strings.Contains(named[0].Text(), g.key) {
		fail("the warnings of the record are %s", asJSON(named))
	}
	var left []string
	for _, s := range intact.Plan.Steps {
		if i := indexOf(p.Plan.Steps, s.ID); i < 0 {
			left = append(left, s.ID)
		} else if s.Intent.Kind != step.SaveRecord && asJSON(s.Intent) != asJSON(p.Plan.Steps[i].Intent) {
			fail("the step %s is another one: %s", s.ID, asJSON(p.Plan.Steps[i].Intent))
		}
	}
	for _, s := range p.Plan.Steps {
		if s.Intent.Kind != step.SaveRecord && indexOf(intact.Plan.Steps, s.ID) < 0 {
			fail("there is a step more: %s, %s", s.ID, s.Reason)
		}
	}
	lengths := map[string]int{}
	for name, text := range texts {
		lengths[name] = len(text)
	}
	honest.checkTexts(p, lengths, fail)
	o.came = "the key is named" + firstCodes(named) + "; the plan is the same"
	if len(left) > 0 {
		o.came += " without " + strings.Join(left, " and ")
	}
	return o
}

func indexOf(steps []plan.Step, id string) int {
	return slices.IndexFunc(steps, func(s plan.Step) bool { return s.ID == id })
}

func hasStep(p engine.Proposal, kind step.Kind) bool {
	return slices.ContainsFunc(p.Plan.Steps, func(s plan.Step) bool { return s.Intent.Kind == kind })
}
