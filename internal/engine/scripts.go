package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"kubeone/internal/addons/network/plugins"
	"kubeone/internal/componentconfig"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
	"kubeone/internal/release"
	"kubeone/internal/script"
)

// renderScripts renders the script for every host that the plan changes, except hosts whose artifacts are unknown. The
// keys of known are desired.ArtifactsKey. Scripts contain the file names of credentials, but not the credentials.
func renderScripts(
	p Proposal, known map[string]desired.Artifacts, credentials *desired.Credentials,
) (map[string]string, error) {
	out := map[string]string{}
	needs := map[string]plan.Need{}
	for _, n := range p.Plan.Needs() {
		needs[n.Host] = n
	}
	steps := stepsOf(p.Plan)
	for _, h := range p.Want.Hosts() {
		if len(steps[h.ID]) == 0 {
			continue
		}
		in := scriptInput(p, h, steps[h.ID])
		in.Credentials = credentials
		need, installs := needs[h.ID]
		if p.Observed.World.Hosts[h.ID].Reach != observed.Reached || installs && p.unresolved != nil {
			continue
		}
		if installs {
			key := desired.ArtifactsKey(need.Arch, h.Versions)
			in.Want.Artifacts = map[string]desired.Artifacts{key: known[key]}
		}
		text, err := renderScript(in)
		if err != nil {
			return nil, err
		}
		out[h.ID] = text
	}
	return out, nil
}

// stepsOf returns the steps of a plan that run on hosts, by host ID.
func stepsOf(p plan.Plan) map[string][]step.Intent {
	out := map[string][]step.Intent{}
	for i := range p.Steps {
		if s := &p.Steps[i]; s.Intent.Kind.OnHost() {
			out[s.Host] = append(out[s.Host], s.Intent)
		}
	}
	return out
}

// scriptInput returns the input for the script of a host, without artifacts. steps are the steps of the plan for that
// host.
func scriptInput(p Proposal, h desired.Host, steps []step.Intent) script.Input {
	world := p.Observed.World
	in := script.Input{
		Input: componentconfig.Input{
			Want: p.Want, Host: h, NodeName: p.Plan.NodeOf(h.ID), Arch: world.Hosts[h.ID].Arch,
		},
		OS: world.Hosts[h.ID].OS.ID, Epoch: plan.Epoch(p.Plan, p.Want, world), Steps: steps,
	}
	if _, ok := p.Request.(Snapshots); ok {
		in.Reason = "by-hand"
	}
	return in
}

func renderScript(in script.Input) (string, error) {
	in.Network = plugins.Host(in.Want)
	if a, ok := in.Want.ArtifactsFor(in.Host, in.Arch); ok && a.Pushed {
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

func scriptDigests(scripts map[string]string) map[string]string {
	out := map[string]string{}
	for id, text := range scripts {
		sum := sha256.Sum256([]byte(text))
		out[id] = hex.EncodeToString(sum[:])
	}
	return out
}
