package engine

import (
	"context"
	"fmt"
	"time"

	"kubeone/internal/cluster"
	"kubeone/internal/decide"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
	"kubeone/internal/probe"
)

// observation holds all facts behind a proposal. It is complete before any decision.
type observation struct {
	// base is a proposal without a decision. It contains the probe results, with each machine under the ID of its host.
	base Proposal
	ca   string // the known CA of the cluster; "" if unknown
	// unread is why the CAs that extension API servers trust could not be read; nil if they were read or not needed.
	unread   error
	progress map[string]plan.Progress // for plan.RecoverOptions.Progress, if the request needs it
	risks    cluster.UpgradeRisks     // if the request may upgrade hosts
	unasked  error                    // why some risks could not be checked
}

// factNeeds says which facts a request needs in addition to every probe.
type factNeeds struct {
	extensionCAs bool // CAs that extension API servers trust: an interrupted run may have left some
	progress     bool // revisions of the surviving etcd members
	upgradeRisks bool // what an upgrade would break
}

// newNeeds returns what the request needs after a first probe.
func newNeeds(r Request, base Proposal) factNeeds {
	asks := base.Observed.Access != nil
	switch r := r.(type) {
	case RotateCA:
		return factNeeds{extensionCAs: asks}
	case Recover:
		listed := len(base.Observed.World.Etcd.Members) > 0
		return factNeeds{progress: !listed || r.About.From == step.SurvivingMember}
	case Apply:
		in := decide.Input{Options: r.Options, Want: base.Want, Is: base.Observed.World}
		return factNeeds{upgradeRisks: asks && decide.MayUpgrade(in)}
	}
	return factNeeds{}
}

// observeFor probes, then reads what else the request needs.
func (e *Engine) observeFor(ctx context.Context, r Request) (observation, error) {
	seen, err := e.Observe(ctx)
	if err != nil {
		return observation{base: Proposal{Request: r, Want: e.cfg.Want}}, err
	}
	return e.completeObservation(ctx, r, seen), nil
}

// reportTimeout bounds the API requests beyond the probe.
const reportTimeout = 10 * time.Second

// completeObservation adds the facts that the request needs. Facts that cannot be read are left out, and the plan
// says so.
func (e *Engine) completeObservation(ctx context.Context, r Request, seen probe.Result) observation {
	o := observation{base: e.recognizeHosts(r, seen), ca: e.knownCA()}
	needs := newNeeds(r, o.base)
	if needs.progress {
		o.progress = e.readProgress(ctx, o.base)
	}
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	if needs.extensionCAs {
		var cas map[string][]string
		cas, o.unread = readExtensionCAs(ctx, *o.base.Observed.Access)
		o.base.Observed.World.API.ExtensionCAs, o.base.who.Is.API.ExtensionCAs = cas, cas
	}
	if needs.upgradeRisks {
		o.risks, o.unasked = cluster.FindUpgradeRisks(ctx, *o.base.Observed.Access, o.base.Want.KubernetesVersion)
	}
	return o
}

func readExtensionCAs(ctx context.Context, access cluster.Access) (map[string][]string, error) {
	c, err := cluster.Connect(access)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.ExtensionCAs(ctx)
}

// upgradeNotes returns what an operator should know before approving an upgrade, including what could not be checked.
func (o observation) upgradeNotes(p plan.Plan) []string {
	var drained []string
	for _, s := range p.Steps {
		if step.ParamsOf[step.DrainNodeParams](s.Intent).Upgrade {
			drained = append(drained, s.Intent.NodeName)
		}
	}
	if len(drained) == 0 {
		return nil
	}
	notes := o.risks.Notes(drained)
	if o.unasked != nil {
		notes = append(notes, fmt.Sprintf("some checks before the upgrade failed: %v", o.unasked))
	}
	return notes
}

// firstContacts returns the host keys that approval of a plan records, by host ID.
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
