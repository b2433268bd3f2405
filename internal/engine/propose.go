package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"kubeone/internal/cluster"
	"kubeone/internal/cluster/record"
	"kubeone/internal/decide"
	"kubeone/internal/observed"
	"kubeone/internal/plan"
	"kubeone/internal/probe"
	"kubeone/internal/step"
)

// Propose observes, decides and plans. It changes nothing.
//
// A request that makes no sense, or that must not be carried out in the world as it is, is an error (*ConfigError, or
// *EtcdError for Snapshots); the proposal then says no more than what was observed and what is pending (Proposal.Pending). A download location that does not answer is none: such a proposal says so
// (Proposal.Unresolved).
func (e *Engine) Propose(ctx context.Context, r Request) (Proposal, error) {
	started := e.cfg.Now()
	result, err := e.Observe(ctx)
	if err != nil {
		return Proposal{Request: r, Want: e.cfg.Want}, err
	}
	p, err := e.propose(ctx, r, result, nil)
	p.Took = e.cfg.Now().Sub(started)
	return p, err
}

// propose plans the request for the world given. The contacts are host keys, by host ID, that are approved as part of
// the proposal although nobody meets them for the first time any more.
func (e *Engine) propose(ctx context.Context, r Request, answers probe.Result,
	approved map[string]string) (Proposal, error) {
	p := e.recognised(r, answers)
	who := p.who
	extensionCAs, unread := e.extensionCAs(ctx, p)
	who.Is.API.ExtensionCAs = extensionCAs
	in := planInput{
		Input: plan.Input{
			Decide: decide.Input{
				Want: who.Want, Is: who.Is, Moved: who.Moved, Contradictions: who.Contradictions,
				CA: e.knownCA(), Config: e.configs(who), Addons: e.addonOf, System: e.system, About: e.aboutHosts(who),
			},
			FirstContacts: firstContacts(who.Is, approved),
		},
		progress: e.progress(ctx, p),
		unread:   unread,
		ids:      who.IDs,
	}
	apply, whole := r.(Apply)
	in.Decide.Options = apply.Options
	in.Decide = decide.Settle(in.Decide, !whole || apply.Limit != nil || apply.Selector != nil)
	p.Want = in.Decide.Want
	var err error
	if p.Plan, p.Decisions, err = r.plan(in); err != nil {
		return p, err
	}
	if err := e.checkRecord(p.Plan); err != nil {
		return p, err
	}
	known, err := e.resolve(ctx, &p)
	if err != nil {
		return p, err
	}
	if len(known) > 0 {
		unresolved := p.Plan.Unresolved
		in.Decide.Want.Artifacts = known
		if p.Plan, p.Decisions, err = r.plan(in); err != nil {
			return p, err
		}
		p.Plan.Unresolved = unresolved
	}
	if note := unknown(p, known); note != "" && p.unresolved == nil {
		p.Plan.Notes = append(p.Plan.Notes, note)
	}
	p.Plan.Notes = slices.Concat(p.Plan.Notes, yields(p), credentialsLeft(p))
	if p.Scripts, err = scripts(p, known, e.cfg.Credentials); err != nil {
		return p, err
	}
	plan.Sign(&p.Plan, digests(p.Scripts))
	e.report(ctx, &p)
	return p, nil
}

// checkRecord returns a *ConfigError where the plan ends with a record that cannot be saved: nothing is begun then.
func (e *Engine) checkRecord(p plan.Plan) error {
	saves := slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return s.Intent.Kind == step.SaveRecord })
	if !saves {
		return nil
	}
	if err := record.CheckSize(e.cfg.Manifest, p.Nodes); err != nil {
		return &ConfigError{err}
	}
	return nil
}

// yields says what of the baseline of hardening the manifest sets otherwise, where something is done.
func yields(p Proposal) []string {
	fields := p.Want.Yields()
	if len(fields) == 0 || p.Plan.Empty() {
		return nil
	}
	return []string{"the baseline of hardening leaves to the manifest: " + strings.Join(fields, ", ")}
}

// firstContacts are the host keys that approval of a plan records, by host ID.
func firstContacts(w observed.World, approved map[string]string) map[string]string {
	out := map[string]string{}
	for id, h := range w.Hosts {
		if h.FirstContact != "" {
			out[id] = h.FirstContact
		}
	}
	for id, keys := range approved {
		if out[id] == "" {
			out[id] = keys
		}
	}
	return out
}

// reportTimeout bounds what is asked only so that the plan's reader knows more.
const reportTimeout = 10 * time.Second

// report adds to an upgrade's plan what its reader should know before saying yes: APIs in use that the new version no
// longer has, and pods that a drain loses or cannot move. What cannot be found out is said so.
func (e *Engine) report(ctx context.Context, p *Proposal) {
	var nodes []string
	for _, s := range p.Plan.Steps {
		if step.ParamsOf[step.DrainNodeParams](s.Intent).Upgrade {
			nodes = append(nodes, s.Intent.NodeName)
		}
	}
	if len(nodes) == 0 || p.Observed.Access == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	notes, err := cluster.BeforeUpgrade(ctx, *p.Observed.Access, p.Want.KubernetesVersion, nodes)
	if err != nil {
		notes = append(notes, fmt.Sprintf("not all could be looked at before the upgrade: %v", err))
	}
	p.Plan.Notes = append(p.Plan.Notes, notes...)
}
