package plan

import (
	"cmp"
	"fmt"
	"slices"

	"kubeone/internal/decide"
	"kubeone/internal/decide/condition"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"kubeone/internal/plan/step"
	"kubeone/internal/text/phrase"
	"kubeone/internal/text/set"
)

// finishPlan adds the last steps of every run that changes something, and notes for the operator.
func (b *builder) finishPlan(first decide.Decision) {
	b.revokeTokens()
	if len(b.plan.Steps) > 0 && (b.init != "" || b.in.Is.API.Reached == observed.Yes) {
		b.saveRecord("record this run")
	}
	for i := range b.plan.Steps {
		s := &b.plan.Steps[i]
		if s.Intent.Kind == step.NodeReady {
			s.Needs = set.Union(s.Needs, b.addons)
		}
		if s.ID == "await-workloads" {
			s.Needs = set.Union(s.Needs, slices.Concat(b.plannedSteps(step.NodeReady), b.plannedSteps(step.DeleteNode),
				b.addons,
				b.controllers))
		}
		if s.Intent.Kind == step.SaveRecord {
			s.Needs = b.otherSteps(s.ID)
		}
	}
	if b.in.Want.Endpoint.Later != "" && b.in.Limit == nil && b.in.About == nil && len(b.plan.Steps) > 0 {
		b.plan.Again = cmp.Or(b.plan.Again, "the API endpoint moves once the control plane is healthy")
	}
	for _, w := range first.Warnings {
		b.addWarnings(w)
	}
	b.plan.Notes = append(b.plan.Notes, b.failedMachines()...)
	b.plan.Notes = append(b.plan.Notes, b.otherBinaries()...)
	if want := b.in.Want; want.Controllers == nil && !want.NoControllers && len(b.plan.Steps) > 0 &&
		b.in.Is.API.Addons[desired.ControllersAddon] != "" {
		b.plan.Notes = append(b.plan.Notes,
			"the cluster runs the Machine controllers, and this plan leaves them as they are; to let apply manage them, set "+
				"machineController.deploy in the manifest or use --with-machines")
	}
	b.plan.NotCarriedOut = b.in.Want.NotCarriedOut
	for _, f := range b.in.Want.NotCarriedOut {
		b.plan.Notes = append(b.plan.Notes, f+" is not carried out by this version")
	}
}

// addWarnings adds a warning to the plan, unless its steps resolve it.
func (b *builder) addWarnings(w problem.Problem) {
	b.plan.Unlike = append(b.plan.Unlike, b.untouchedWarning(w)...)
	if w.Code == problem.StaticPodsEdited && b.hasStep(b.stepID(step.UpgradeControlPlane, b.hostByID(w.Host))) {
		b.plan.Notes = append(b.plan.Notes, discardedEdits(b.names[w.Host], w))
		return
	}
	b.plan.Notes = append(b.plan.Notes, problemText(b.names, w))
}

// failedMachines returns the Machines with an error that only an operator can correct; if there are many, some of them.
func (b *builder) failedMachines() []string {
	pool := b.in.Is.API.Pool
	if pool == nil {
		return nil
	}
	var out []string
	more := 0
	for _, m := range pool.Machines {
		switch {
		case m.Error == "" || m.Deleting:
		case len(out) == maxNamed:
			more++
		default:
			out = append(out, problemText(b.names, problem.Problem{
				Code: problem.MachineFailed, Parameters: problem.Parameters{"machine": m.ID(), "error": m.Error},
			}))
		}
	}
	if more > 0 {
		out = append(out, phrase.Count(more, "more Machine")+" with an error; run kubeone status")
	}
	return out
}

// otherBinaries returns the programs of members that have another version than in the release, and that the plan does
// not change: a changed default waits for the next upgrade. It leaves out the kubelet, whose version decides about
// upgrades.
func (b *builder) otherBinaries() []string {
	hosts := map[string][]string{}
	var order []string
	for _, h := range b.in.Want.Hosts() {
		seen := b.in.Is.Hosts[h.ID]
		upgraded := b.hasStep(b.stepID(step.UpgradeControlPlane, h)) || b.hasStep(b.stepID(step.UpgradeWorker, h))
		if seen.Marker == nil || !seen.Marker.Complete || upgraded || b.in.Limit != nil && !b.in.Limit[h.ID] {
			continue
		}
		for _, binary := range b.hostArtifacts(h).BinariesFor(h.Role) {
			have := seen.Binaries[binary.Name]
			if have == "" || have == binary.Version || binary.Name == desired.BinaryKubelet ||
				binary.Name == desired.BinaryContainerd && h.Versions.Containerd != "" {
				continue
			}
			what := fmt.Sprintf("%s is %s, and %s in this release", binary.Name, have, binary.Version)
			if hosts[what] == nil {
				order = append(order, what)
			}
			hosts[what] = append(hosts[what], b.names[h.ID])
		}
	}
	var out []string
	for _, what := range order {
		out = append(out, problem.List(hosts[what])+": "+what+
			": it comes with the next upgrade, or kubeone upgrade --force")
	}
	return out
}

// discardedEdits reports which edits an upgrade of the host overwrites. Such an upgrade is planned only on request.
func discardedEdits(host string, edited problem.Problem) string {
	files, _ := edited.Parameters["files"].([]string)
	return host + ": its upgrade overwrites edits of " + problem.List(files)
}

// untouchedWarning returns the differences in a warning that no step of the plan changes.
func (b *builder) untouchedWarning(w problem.Problem) []string {
	var out []string
	switch w.Code {
	case problem.EndpointChanged:
		out = append(out, "apiEndpoint (the cluster still has "+fmt.Sprint(w.Parameters["endpoint"])+")")
	case problem.EncryptionWaits:
		out = append(out, "features.encryptionProviders (control-plane host "+fmt.Sprint(w.Parameters["name"])+
			" is in the way)")
	case problem.AddonsUnreadable:
		out = append(out, "addons (the list of addons in the cluster cannot be read)")
	case problem.NotCompared:
		out = append(out, fmt.Sprint(w.Parameters["component"])+" (could not be compared)")
	case problem.ComponentNotRunning:
		if len(b.plannedSteps(step.AwaitWorkloads)) > 0 {
			break // the step waits for it
		}
		nodes, _ := w.Parameters["nodes"].([]string)
		out = append(out, fmt.Sprint(w.Parameters["component"])+" (not running on "+problem.List(nodes)+")")
	case problem.FilesExposed:
		for _, file := range b.world.Is.Hosts[w.Host].Exposed { // in the predicted world: no step closes these
			out = append(out, b.names[w.Host]+" "+file.String())
		}
	case problem.PodsOutsideNetwork:
		pods, _ := w.Parameters["pods"].([]string)
		out = append(out, "clusterNetwork.podSubnet (pods have other addresses: "+problem.List(pods)+")")
	case problem.FilesEdited, problem.StaticPodsEdited:
		for _, file := range b.world.Is.Hosts[w.Host].Edited { // in the predicted world: no step restores these
			if condition.IsStaticPod(file) == (w.Code == problem.StaticPodsEdited) {
				out = append(out, b.names[w.Host]+" "+file+" (edited)")
			}
		}
	}
	return out
}

func problemText(names map[string]string, p problem.Problem) string {
	text := p.Text()
	if p.Host != "" {
		text = names[p.Host] + ": " + text
	}
	if do := p.Remedy(); do != "" {
		text += "; " + do
	}
	return text
}

// revokeTokens plans to revoke the join tokens, if there are any, after the last step that reads one.
func (b *builder) revokeTokens() {
	var readers []Step
	for _, s := range b.plan.Steps {
		if s.Intent.NeedsToken() {
			readers = append(readers, s)
		}
	}
	followed := map[string]bool{}
	for _, s := range readers {
		for _, id := range s.Needs {
			followed[id] = true
		}
	}
	var last []string
	for _, s := range readers {
		if !followed[s.ID] {
			last = append(last, s.ID)
		}
	}
	if len(last) > 0 {
		b.onCluster("revoke-tokens", Step{
			Intent: plainIntent(step.RevokeTokens), Action: Remove, Title: "revoke the join tokens",
			Reason: "every host has joined", Needs: last,
		})
	}
}

func (b *builder) saveRecord(reason string) {
	if b.hasStep("record") || b.in.About != nil {
		return
	}
	changes := []string{"ConfigMap kube-system/kubeone, without secrets"}
	if b.credentialsOfMachines() {
		changes = append(changes, "Secret kubeone-system/host-credentials: credentials for Machine hosts")
	}
	b.onCluster("record", Step{
		Intent: plainIntent(step.SaveRecord), Action: Change, Title: "save manifest and record", Reason: reason,
		Changes: changes,
	})
}

func (b *builder) otherSteps(id string) []string {
	var out []string
	for _, s := range b.plan.Steps {
		if s.ID != id {
			out = append(out, s.ID)
		}
	}
	return out
}

// plannedSteps returns the IDs of the plan's steps of that kind.
func (b *builder) plannedSteps(kind step.Kind) []string {
	var out []string
	for _, s := range b.plan.Steps {
		if s.Intent.Kind == kind {
			out = append(out, s.ID)
		}
	}
	return out
}
