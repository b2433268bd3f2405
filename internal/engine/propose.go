package engine

import (
	"context"
	"slices"
	"strings"

	"kubeone/internal/cluster/record"
	"kubeone/internal/decide"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
)

// Propose observes, decides and plans. It changes nothing.
//
// If the request is invalid or must not be carried out in the observed world, the error is a *ConfigError (an
// *EtcdError for Snapshots). The proposal then contains only observations and what is pending (Proposal.Pending). If a
// download location does not answer, there is no error, but the proposal is Unresolved.
func (e *Engine) Propose(ctx context.Context, r Request) (Proposal, error) {
	started := e.cfg.Now()
	o, err := e.observeFor(ctx, r)
	if err != nil {
		return o.base, err
	}
	p, err := e.proposeFor(ctx, o, nil)
	p.Took = e.cfg.Now().Sub(started)
	return p, err
}

// proposeFor plans the request for the observation. approved are the host keys in the approved plan, by host ID. They
// stay in the new plan although the hosts are known by now. Everything is pure except looking up releases, which uses
// ctx.
func (e *Engine) proposeFor(ctx context.Context, o observation, approved map[string]string) (Proposal, error) {
	in := e.newPlanInput(o, approved)
	draft, err := e.planFor(o, in)
	if err != nil {
		return draft, err
	}
	found, err := e.resolveArtifacts(ctx, draft)
	if err != nil {
		return draft, err
	}
	return e.finishProposal(o, in, draft, found)
}

// newPlanInput returns the input of a plan, before releases are known. It is pure.
func (e *Engine) newPlanInput(o observation, approved map[string]string) planInput {
	who, request := o.base.who, o.base.Request
	apply, isApply := request.(Apply)
	in := decide.Input{
		Options: apply.Options, Want: who.Want, Is: who.Is, Moved: who.Moved, Contradictions: who.Contradictions,
		CA: o.ca, Config: e.configDigests(who), System: e.system, About: e.aboutHosts(who),
	}
	e.addAddons(&in)
	settled := decide.Settle(in, !isApply || apply.Limit != nil || apply.Selector != nil)
	return planInput{
		Input:    plan.Input{Decide: settled, FirstContacts: firstContacts(who.Is, approved)},
		progress: o.progress, unread: o.unread, ids: who.IDs,
	}
}

// addAddons adds the desired addons to the input of a decision.
func (e *Engine) addAddons(in *decide.Input) {
	in.Addons, in.AddonObjects, in.AddonManifests = map[string]string{}, e.addonObjects, map[string]string{}
	for _, a := range e.addonsOf(in.Want) {
		in.Addons[a.Name], in.AddonManifests[a.Name] = a.Digest, a.Manifest
		if a.Custom {
			in.CustomAddons = append(in.CustomAddons, a.Name)
		}
	}
	if e.cfg.Addons != nil {
		in.KnowsAddons, in.DeletedAddons = true, e.cfg.Addons.Delete
	}
	for _, r := range e.releases() {
		in.HelmReleases = append(in.HelmReleases, r.Summary())
	}
}

// planFor returns the proposal with its decisions and plan. It is pure.
func (e *Engine) planFor(o observation, in planInput) (Proposal, error) {
	p := o.base
	p.Want = in.Decide.Want
	p.Want.Artifacts = nil
	var err error
	if p.Plan, p.Decisions, err = p.Request.plan(in); err != nil {
		return p, err
	}
	return p, e.checkRecord(p.Plan)
}

// finishProposal plans with the resolved releases, renders the scripts and adds the notes. It is pure.
func (e *Engine) finishProposal(o observation, in planInput, p Proposal, found releases) (Proposal, error) {
	if len(found.known)+len(found.charts) > 0 {
		in.Decide.Want.Artifacts, in.Charts = found.known, chartsOf(found.charts)
		var err error
		if p, err = e.planFor(o, in); err != nil {
			return p, err
		}
		p.charts = found.charts
	}
	p.unresolved, p.Plan.Unresolved = found.missing, found.missingLines()
	p.Plan.Notes = slices.Concat(
		p.Plan.Notes, unknownNotes(p, found), hardeningExceptions(p), credentialsLeft(p), o.upgradeNotes(p.Plan),
		e.undeclaredAddons(p.Plan), e.removedAddonAPIs(p.Plan))
	var err error
	if p.Scripts, err = renderScripts(p, found.known, e.cfg.Credentials); err != nil {
		return p, err
	}
	plan.Sign(&p.Plan, scriptDigests(p.Scripts))
	return p, nil
}

// checkRecord returns a *ConfigError if the plan saves a record that is too large for a ConfigMap. Such a plan must not
// start.
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

// hardeningExceptions returns a note about the hardening defaults that the manifest overrides. It returns none if the
// plan has no steps.
func hardeningExceptions(p Proposal) []string {
	fields := p.Want.Yields()
	if len(fields) == 0 || p.Plan.Empty() {
		return nil
	}
	return []string{"hardening defaults that the manifest overrides: " + strings.Join(fields, ", ")}
}
