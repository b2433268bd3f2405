package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"sort"
	"time"

	"kubeone/internal/decide"
	"kubeone/internal/desired"
	"kubeone/internal/network/plugins"
	"kubeone/internal/observed"
	"kubeone/internal/plan"
	"kubeone/internal/probe"
	"kubeone/internal/release"
	"kubeone/internal/script"
)

// Look is one look at the world, and what follows from it.
type Look struct {
	Result    probe.Result
	Decisions []decide.Decision // the first is about the world as it is, the others about predicted ones
	Plan      plan.Plan
	Scripts   map[string]string // by host ID, of the hosts that the plan touches
	Took      time.Duration
}

// Decision is what the state machine said about the world as it is.
func (l Look) Decision() decide.Decision { return l.Decisions[0] }

// Look probes, decides and plans. It changes nothing.
func (e *Engine) Look(ctx context.Context) (Look, error) {
	started := e.opt.Now()
	result, err := e.probe(ctx)
	if err != nil {
		return Look{}, err
	}
	if archs := e.toInstall(result.World); len(archs) > 0 && !e.opt.LookOnly {
		if err := e.artifacts(ctx, archs); err != nil {
			return Look{}, err
		}
	}
	limit, err := e.selected(result.World)
	if err != nil {
		return Look{}, err
	}
	l := Look{Result: result}
	in := plan.Input{
		Decide: decide.Input{
			Want: e.want, Is: result.World, Config: e.configDigests(), Addons: e.addonOf, System: e.system, ForceUpgrade: e.opt.ForceUpgrade, Limit: limit,
		},
		FirstContacts: firstContacts(result.World),
	}
	l.Plan, l.Decisions = plan.Build(in)
	if l.Scripts, err = e.scripts(l.Plan, result.World); err != nil {
		return Look{}, err
	}
	plan.Sign(&l.Plan, digests(l.Scripts))
	e.report(ctx, &l)
	l.Took = e.opt.Now().Sub(started)
	return l, nil
}

func (e *Engine) probe(ctx context.Context) (probe.Result, error) {
	request := probe.Request{Now: e.opt.Now}
	for _, h := range e.want.Hosts() {
		request.Targets = append(request.Targets, probe.Target{ID: h.ID, Host: e.hosts[h.ID], ControlPlane: h.Role == desired.ControlPlane})
	}
	return probe.Run(ctx, request)
}

// toInstall returns the architectures of hosts that are not finished members, or are to be upgraded, sorted; what those
// need must be known.
func (e *Engine) toInstall(w observed.World) []string {
	seen := map[string]bool{}
	epoch := plan.Epoch(plan.Plan{}, e.want, w)
	stale := e.staleSystem(w) || e.staleNode(w)
	for _, h := range w.Hosts {
		if h.Reach == observed.Reached && h.Arch != "" && (stale || e.needsArtifacts(h) || outlived(h, epoch)) {
			seen[h.Arch] = true
		}
	}
	archs := make([]string, 0, len(seen))
	for a := range seen {
		archs = append(archs, a)
	}
	sort.Strings(archs)
	return archs
}

func (e *Engine) needsArtifacts(h observed.Host) bool {
	want := e.want.KubernetesVersion
	return h.Marker == nil || !h.Marker.Complete || e.opt.ForceUpgrade || rejoins(h) ||
		h.Kubelet.Version != want || h.APIServerVersion != "" && h.APIServerVersion != want
}

// staleSystem reports whether pods of what kubeadm applies run another image than the wanted one.
func (e *Engine) staleSystem(w observed.World) bool {
	for _, p := range w.API.Pods {
		if want, ours := e.system[p.App]; ours && p.Image != want {
			return true
		}
	}
	return false
}

// staleNode reports whether a Node says another version than the wanted one: that of a kubelet which has not been started
// again, whatever program is installed by now.
func (e *Engine) staleNode(w observed.World) bool {
	return slices.ContainsFunc(w.API.Nodes, func(n observed.Node) bool { return n.KubeletVersion != e.want.KubernetesVersion })
}

// outlived reports whether a control-plane host holds the data of the cluster's life before a recovery, and joins anew.
func outlived(h observed.Host, epoch int) bool {
	return h.Marker.Role == string(desired.ControlPlane) && h.Marker.Epoch < epoch
}

// rejoins reports whether a control-plane host may have to join again, because it says that its etcd data is lost.
func rejoins(h observed.Host) bool {
	return h.EtcdLost != "" || h.Marker.Role == string(desired.ControlPlane) && h.EtcdData == observed.No
}

func (e *Engine) configDigests() map[string]map[string]string {
	out := map[string]map[string]string{}
	for _, h := range e.want.Hosts() {
		out[h.ID] = script.Digests(e.want, h)
	}
	return out
}

func firstContacts(w observed.World) map[string]string {
	out := map[string]string{}
	for id, h := range w.Hosts {
		if h.FirstContact != "" {
			out[id] = h.FirstContact
		}
	}
	return out
}

// scripts renders the script of every host that the plan touches.
func (e *Engine) scripts(p plan.Plan, w observed.World) (map[string]string, error) {
	out := map[string]string{}
	epoch := plan.Epoch(p, e.want, w)
	for _, h := range e.want.Hosts() {
		in := script.Input{Want: e.want, Host: h, NodeName: p.Hosts[h.ID], Arch: w.Hosts[h.ID].Arch, OS: w.Hosts[h.ID].OS.ID, Epoch: epoch}
		touched, installs := false, false
		for _, s := range p.Steps {
			if s.Host == h.ID && s.Intent.Kind.OnHost() {
				touched = true
				installs = installs || s.Intent.Kind.Installs()
				in.Units = append(in.Units, s.Intent.Units...)
				in.Parts = append(in.Parts, s.Intent.Parts...)
				in.Recover = recoverInput(s.Intent, in.Recover)
			}
		}
		if !touched {
			continue
		}
		if _, known := e.want.Artifacts[in.Arch]; !known {
			if installs && !e.opt.LookOnly {
				return nil, fmt.Errorf("%s: what Kubernetes %s needs on the architecture %q is not known, so nothing can be installed there", in.NodeName, e.want.KubernetesVersion, in.Arch)
			}
			in.Want.Artifacts = nil
		}
		text, err := e.render(in)
		if err != nil {
			return nil, err
		}
		out[h.ID] = text
	}
	return out, nil
}

func (e *Engine) render(in script.Input) (string, error) {
	in.Network = plugins.Host(in.Want)
	if a, ok := in.Want.Artifacts[in.Arch]; ok && a.Pushed {
		index, blobs, err := release.ImageIndex(a.ImagesFor(in.Host.Role), in.Arch)
		if err != nil {
			return "", fmt.Errorf("%s: %w", in.NodeName, err)
		}
		in.ImageIndex = string(index)
		for _, b := range blobs {
			in.ImageBlobs = append(in.ImageBlobs, "blobs/sha256/"+b.Digest[len("sha256:"):])
		}
	}
	return script.Render(in)
}

func digests(scripts map[string]string) map[string]string {
	out := map[string]string{}
	for id, text := range scripts {
		sum := sha256.Sum256([]byte(text))
		out[id] = hex.EncodeToString(sum[:])
	}
	return out
}

// RunningSteps are the hosts on which a step of an earlier run still runs.
func (l Look) RunningSteps() map[string]observed.Step {
	out := map[string]observed.Step{}
	for id, h := range l.Result.World.Hosts {
		if h.Step != nil {
			out[id] = *h.Step
		}
	}
	return out
}

// Approve records the host keys that were met for the first time: the plan that lists them was approved.
func (e *Engine) Approve() error { return e.pool.Approve(e.pool.FirstContacts()...) }
