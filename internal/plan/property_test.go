package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"kubeone/internal/decide"
	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan/step"
)

// property is something that holds for the plan of every world; the error says how it does not.
type property struct {
	name  string
	holds func(in decide.Input, p Plan, ds []decide.Decision) error
}

func planProperties() []property {
	return []property{
		{"IDs are unique, needs exist, and there is no way back", checkGraph},
		{"no step outside the limit", insideLimit},
		{"a healthy member is not touched", healthyUntouched},
		{"a cluster is made only where certainly none is", installsOnlyBare},
		{"etcd grows only by hosts that are prepared", etcdPrepared},
		{"members leave only when dead, after a snapshot, within the quorum", membersLeaveSafely},
		{"hosts are upgraded in the order that is safe", upgradesInOrder},
		{"a drain for an upgrade is foreseen", upgradeForeseen},
		{"hosts are reconfigured in the order that is safe", reconfiguresInOrder},
		{"images are everywhere before pods of cluster DNS name them", imagesBeforeDNS},
		{"hooks run before and after what they are for", hooksInPlace},
		{"what a Node that goes has taken along is awaited", awaitsWhatMoves},
		{"an endpoint is dialled when all have its name, and published when all dial it", endpointInOrder},
		{"a blocked plan has no steps", func(_ decide.Input, p Plan, _ []decide.Decision) error {
			return checkPlan(p.Blocked == "" || len(p.Steps) == 0, "%d steps", len(p.Steps))
		}},
		{"afterwards nothing is left to do, or the plan says so", checkConverges},
		{"the same world gives the same plan", checkStable},
	}
}

func TestPlansOfRandomWorlds(t *testing.T) {
	t.Parallel()
	worlds := 3000
	if testing.Short() {
		worlds = 1500
	}
	routes := map[string]int{}
	for seed := range worlds {
		in := randomWorld(rand.New(rand.NewPCG(uint64(seed), 7)))
		p, decisions := Build(Input{Decide: in})
		routes[p.Routes[0]]++
		for _, property := range planProperties() {
			if err := property.holds(in, p, decisions); err != nil {
				t.Fatalf("world %d: %s: %v\n%s", seed, property.name, err, planText(p))
			}
		}
	}
	t.Logf("%d worlds: %v", worlds, routes)
	for _, r := range fsm.Cluster.Routes() {
		if routes[string(r)] == 0 {
			t.Errorf("no world led to %s", r)
		}
	}
}

// upgradeForeseen: what an upgrade would break is asked before the plan is made.
func upgradeForeseen(in decide.Input, p Plan, _ []decide.Decision) error {
	drains := slices.ContainsFunc(p.Steps, func(s Step) bool {
		return step.ParamsOf[step.DrainNodeParams](s.Intent).Upgrade
	})
	return checkPlan(!drains || decide.MayUpgrade(in), "an upgrade drains hosts, and none may be upgraded")
}

func checkPlan(ok bool, format string, args ...any) error {
	if ok {
		return nil
	}
	return fmt.Errorf(format, args...)
}

// checkGraph removes steps without needs until none is left.
func checkGraph(_ decide.Input, p Plan, _ []decide.Decision) error {
	waiting := map[string][]string{}
	for _, s := range p.Steps {
		if _, twice := waiting[s.ID]; twice {
			return fmt.Errorf("two steps %s", s.ID)
		}
		waiting[s.ID] = slices.Concat(s.Needs, s.After)
	}
	for id, needs := range waiting {
		for _, n := range needs {
			if _, ok := waiting[n]; !ok {
				return fmt.Errorf("%s needs %s, which is not there", id, n)
			}
		}
	}
	for len(waiting) > 0 {
		before := len(waiting)
		for id, needs := range waiting {
			if !slices.ContainsFunc(needs, func(n string) bool { _, ok := waiting[n]; return ok }) {
				delete(waiting, id)
			}
		}
		if len(waiting) == before {
			return fmt.Errorf("steps need each other: %v", slices.Sorted(maps.Keys(waiting)))
		}
	}
	return nil
}

func insideLimit(in decide.Input, p Plan, _ []decide.Decision) error {
	for _, s := range p.Steps {
		if in.Limit != nil && s.Host != "" && !in.Limit[s.Host] && s.Intent.Kind != step.Snapshot {
			return fmt.Errorf("%s", s.ID)
		}
	}
	return nil
}

func healthyUntouched(in decide.Input, p Plan, ds []decide.Decision) error {
	for _, s := range p.Steps {
		is, kind := in.Is.Hosts[s.Host], s.Intent.Kind
		old := is.Kubelet.Version != in.Want.KubernetesVersion ||
			is.APIServerVersion != "" && is.APIServerVersion != in.Want.KubernetesVersion
		upgrade := kind == step.Fetch || kind == step.Check || kind == step.UpgradeControlPlane ||
			kind == step.UpgradeWorker
		asks := kind == step.Snapshot || kind == step.SystemAddons // from there: the host stays as it is
		url := in.Want.Endpoint.URL()
		moves := kind == step.APINames && !slices.Contains(is.APINames, in.Want.Endpoint.Host) ||
			kind == step.APINames && len(desired.Missing(in.Want.Endpoint.Former, is.APINames)) > 0 ||
			kind == step.Dial && (is.Endpoint != url || is.AdminEndpoint != "" && is.AdminEndpoint != url)
		files := step.ParamsOf[step.RestoreFilesParams](s.Intent).Files
		closed := step.ParamsOf[step.RestoreFilesParams](s.Intent).Closed
		restores := len(files)+len(closed) > 0 && len(desired.Missing(files, is.Restorable)) == 0 &&
			len(closed) <= len(is.Exposed)
		differs := kind == step.Reconfigure && checkDrift(in, s) || kind == step.CheckSecrets ||
			kind == step.Fetch && lacksDNSImage(in, s.Host) ||
			step.ParamsOf[step.EncryptParams](s.Intent).Phase != ""
		hooked := s.Intent.Moment().Activity != "" && (doesActivity(p, s) ||
			slices.Contains(is.HooksOwed, string(s.Intent.Moment().Activity)))
		if kind.OnHost() && !hooked && !asks && !moves && !restores && !differs && (!upgrade || !old) &&
			ds[0].Hosts[s.Host].Condition == condition.Healthy {
			return fmt.Errorf("%s", s.ID)
		}
	}
	return nil
}

// doesActivity reports whether the plan does to the host what the hooks of the step are for.
func doesActivity(p Plan, hooks Step) bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool {
		of, core := s.Intent.Kind.PartOf()
		wanted := hooks.Intent.Moment().Activity
		return core && s.Host == hooks.Host && (of == wanted || of == desired.Joining && wanted == desired.Installing)
	})
}

// checkDrift reports whether the host has each configuration that the step names, and another one than is desired.
func checkDrift(in decide.Input, s Step) bool {
	names := step.ParamsOf[step.ReconfigureParams](s.Intent).Configurations
	for _, name := range names {
		if name == desired.FirewallDigest && len(in.Is.Hosts[s.Host].Firewalls) > 0 {
			continue
		}
		if have := in.Is.Hosts[s.Host].Digests[name]; have == "" || have == in.Config[s.Host][name] {
			return false
		}
	}
	return len(names) > 0
}

func installsOnlyBare(in decide.Input, p Plan, _ []decide.Decision) error {
	if !slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Intent.Kind == step.Init }) {
		return nil
	}
	for _, h := range in.Want.ControlPlane {
		is := in.Is.Hosts[h.ID]
		ours := is.Marker != nil && is.Marker.Cluster == cluster && !is.Marker.Complete
		if is.Reach != observed.Reached || hasData(is) && !ours {
			return fmt.Errorf("%s: %+v", h.Hostname, is)
		}
	}
	return nil
}

func awaitsWhatMoves(_ decide.Input, p Plan, _ []decide.Decision) error {
	before := ancestorSteps(p)
	for _, s := range p.Steps {
		if s.Intent.Kind == step.DeleteNode && len(p.Operator) == 0 && !before["await-workloads"][s.ID] {
			return fmt.Errorf("nothing is awaited after %s", s.ID)
		}
	}
	return nil
}

// leadsPods are the kinds of steps after which pods on every host look for the API at the endpoint, and the record,
// which waits for everything.
var leadsPods = []step.Kind{step.ApplyAddon, step.SystemAddons, step.SetSystem, step.SaveRecord}

// endpointInOrder checks that every certificate is made before any kubeconfig changes, that all kubeconfigs change
// before the cluster names the endpoint, and that no host joins before that was tried.
func endpointInOrder(in decide.Input, p Plan, _ []decide.Decision) error {
	before := ancestorSteps(p)
	lacks := func(h desired.Host) bool {
		is := in.Is.Hosts[h.ID]
		joined := is.Marker != nil && is.Marker.Complete
		return joined && is.APINames != nil && !slices.Contains(is.APINames, in.Want.Endpoint.Host)
	}
	for _, s := range p.Steps {
		for _, first := range p.Steps {
			names := first.Intent.Kind == step.APINames
			dials := first.Intent.Kind == step.Dial
			needed := names && s.Intent.Kind == step.Dial ||
				(names || dials) && s.Intent.Kind == step.PublishEndpoint ||
				first.Intent.Kind == step.PublishEndpoint && s.Intent.Kind.Joins()
			if needed && !before[s.ID][first.ID] {
				return fmt.Errorf("%s does not wait for %s", s.ID, first.ID)
			}
			if first.Intent.Kind == step.PublishEndpoint && slices.Contains(s.Needs, first.ID) &&
				!slices.Contains(leadsPods, s.Intent.Kind) && s.Intent.Moment().Activity != desired.Applying {
				return fmt.Errorf("a worker that does not find the endpoint stops %s", s.ID)
			}
		}
		if s.Intent.Kind != step.Dial {
			continue
		}
		for _, h := range in.Want.ControlPlane {
			id := string(step.APINames) + "/" + h.Hostname
			_, planned := p.Step(id)
			if _, anew := p.Step(string(step.Quarantine) + "/" + h.Hostname); lacks(h) && !planned && !anew {
				return fmt.Errorf("%s, and %s lacks the name", s.ID, h.Hostname)
			}
		}
	}
	return nil
}

// upgradesInOrder wants each host's upgrade whole, everything fetched before the first one, control-plane hosts one by
// one, and workers after them.
func upgradesInOrder(_ decide.Input, p Plan, _ []decide.Decision) error {
	before := ancestorSteps(p)
	var turns []Step
	for _, s := range p.Steps {
		if s.Intent.Kind == step.UpgradeControlPlane || s.Intent.Kind == step.UpgradeWorker {
			turns = append(turns, s)
		}
	}
	for _, s := range turns {
		name := s.Intent.NodeName
		for _, must := range []string{"check/" + name, "drain-node/" + name, "fetch/" + name} {
			if !before[s.ID][must] {
				return fmt.Errorf("%s does not come after %s", s.ID, must)
			}
		}
		if _, ok := p.Step("uncordon/" + name); !ok || !before["uncordon/"+name][s.ID] {
			return fmt.Errorf("%s is not opened again", name)
		}
		for _, other := range turns {
			control := s.Intent.Kind == step.UpgradeControlPlane
			alone := before["drain-node/"+name]["uncordon/"+other.Intent.NodeName] ||
				before["drain-node/"+other.Intent.NodeName]["uncordon/"+name]
			switch {
			case other.ID == s.ID:
			case control && other.Intent.Kind == step.UpgradeControlPlane && !alone:
				return fmt.Errorf("%s and %s may be down at once", s.ID, other.ID)
			case !control && other.Intent.Kind == step.UpgradeControlPlane &&
				!before["drain-node/"+name]["uncordon/"+other.Intent.NodeName]:
				return fmt.Errorf("worker %s does not wait for %s", name, other.ID)
			case !before["drain-node/"+name]["fetch/"+other.Intent.NodeName]:
				return fmt.Errorf("%s is drained before %s has what it needs", name, other.Intent.NodeName)
			}
		}
	}
	return nil
}

// reconfiguresInOrder: control-plane hosts one at a time and after those that join, workers after all of them,
// and no more at a time than may be unavailable.
func reconfiguresInOrder(in decide.Input, p Plan, _ []decide.Decision) error {
	before := ancestorSteps(p)
	var turns []Step
	for _, s := range p.Steps {
		if s.Intent.Kind == step.Reconfigure || s.Intent.Kind == step.JoinFinish {
			turns = append(turns, s)
		}
	}
	most := max(in.Want.Upgrade.AtOnce(len(in.Want.Workers)), 1)
	for _, s := range turns {
		beside := 1
		for _, other := range turns {
			apart := before[s.ID][other.ID] || before[other.ID][s.ID]
			switch {
			case other.ID == s.ID, s.Intent.Kind == step.JoinFinish:
			case s.Intent.Role == desired.ControlPlane && other.Intent.Role == desired.ControlPlane && !apart:
				return fmt.Errorf("%s and %s may be down at once", s.ID, other.ID)
			case s.Intent.Role == desired.Worker && other.Intent.Role == desired.ControlPlane &&
				other.Intent.Kind == step.Reconfigure && !before[s.ID][other.ID]:
				return fmt.Errorf("%s does not wait for %s", s.ID, other.ID)
			case s.Intent.Role == desired.Worker && !apart:
				beside++
			}
		}
		if beside > 2*most {
			return fmt.Errorf("%d hosts may be reconfigured beside %s", beside-1, s.ID)
		}
	}
	return nil
}

// ancestorSteps are, for each step, all steps that are over when it begins.
func ancestorSteps(p Plan) map[string]map[string]bool {
	out := map[string]map[string]bool{}
	var of func(id string) map[string]bool
	of = func(id string) map[string]bool {
		if known, ok := out[id]; ok {
			return known
		}
		all := map[string]bool{}
		out[id] = all
		s, _ := p.Step(id)
		for _, n := range slices.Concat(s.Needs, s.After) {
			all[n] = true
			maps.Copy(all, of(n))
		}
		return all
	}
	for _, s := range p.Steps {
		of(s.ID)
	}
	return out
}

func etcdPrepared(_ decide.Input, p Plan, _ []decide.Decision) error {
	for _, s := range p.Steps {
		if s.Intent.Kind == step.JoinEtcd && !slices.Contains(s.Needs, "join-prepare/"+s.Intent.NodeName) {
			return fmt.Errorf("%s needs %v", s.ID, s.Needs)
		}
	}
	return nil
}

// checkConverges carries the plan out and plans again.
func checkConverges(in decide.Input, p Plan, ds []decide.Decision) error {
	if p.Again != "" || p.Blocked != "" || len(p.Operator) > 0 || ds[0].Route == fsm.Error {
		return nil
	}
	next, _ := Build(Input{Decide: carryOut(in, p)})
	return checkPlan(next.Empty() && next.Routes[0] == string(fsm.Nothing), "the next plan is\n%s", planText(next))
}

// checkStable builds again from maps that were filled in another order.
func checkStable(in decide.Input, p Plan, _ []decide.Decision) error {
	hosts := map[string]observed.Host{}
	for _, id := range slices.Backward(slices.Sorted(maps.Keys(in.Is.Hosts))) {
		hosts[id] = in.Is.Hosts[id]
	}
	in.Is.Hosts = hosts
	again, _ := Build(Input{Decide: in})
	return checkPlan(planText(again) == planText(p) && again.Digest() == p.Digest(), "another plan:\n%s",
		planText(again))
}
