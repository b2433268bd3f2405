package plan

import (
	"fmt"
	"strings"

	"kubeone/internal/decide"
	"kubeone/internal/desired"
	"kubeone/internal/observed"
)

// displayNames are what people call the hosts: the manifest's hostname, else the host's own, else its address.
func displayNames(in decide.Input) map[string]string {
	names := map[string]string{}
	for _, h := range in.Want.Hosts() {
		names[h.ID] = NodeName(h, in.Is.Hosts[h.ID])
	}
	return names
}

// NodeName is the name of a host's Node: the manifest's hostname, else what the host calls itself, else (a host that
// did not answer) its address. Node names are lower case.
func NodeName(h desired.Host, seen observed.Host) string {
	for _, name := range []string{h.Hostname, seen.Hostname, h.ID} {
		if name != "" {
			return strings.ToLower(name)
		}
	}
	return ""
}

func (b *builder) host(id string) desired.Host {
	h, _ := b.in.Want.Host(id)
	return h
}

func (b *builder) node(h desired.Host) string { return b.names[h.ID] }

// id is the ID of a step on a host. Hosts that share a name, as copies of one disk image do, are told apart by their own IDs.
func (b *builder) id(k Kind, h desired.Host) string {
	for id, name := range b.names {
		if id != h.ID && name == b.names[h.ID] {
			return string(k) + "/" + h.ID
		}
	}
	return string(k) + "/" + b.names[h.ID]
}

func (b *builder) has(id string) bool {
	_, ok := b.plan.Step(id)
	return ok
}

// step adds a step on a host and returns its ID.
func (b *builder) step(h desired.Host, k Kind, title, reason string, a Action, r Risk, needs, changes []string) string {
	s := Step{ID: b.id(k, h), Host: h.ID, Title: title, Reason: reason, Action: a, Risk: r, Changes: changes, Needs: union(needs, b.barrier)}
	s.Intent = Intent{Kind: k, Role: h.Role, NodeName: b.node(h), Version: b.in.Want.KubernetesVersion, Arch: b.is.Hosts[h.ID].Arch}
	b.plan.Steps = append(b.plan.Steps, s)
	return s.ID
}

// clusterStep adds a step that goes through the API and returns its ID.
func (b *builder) clusterStep(k Kind, id, title, reason string, a Action, needs, changes []string) string {
	b.plan.Steps = append(b.plan.Steps, Step{
		ID: id, Title: title, Reason: reason, Action: a, Risk: NoRisk, Changes: changes, Needs: union(needs, b.barrier),
		Intent: Intent{Kind: k, Version: b.in.Want.KubernetesVersion},
	})
	return id
}

// intent lets f complete the intent of the step with that ID.
func (b *builder) intent(id string, f func(*Intent)) {
	for i := range b.plan.Steps {
		if b.plan.Steps[i].ID == id {
			f(&b.plan.Steps[i].Intent)
		}
	}
}

// Sign notes in every step on a host the digest of the script that will run there, so that the plan's own digest covers
// what is run to the last byte. Scripts are by host ID.
func Sign(p *Plan, digests map[string]string) {
	for i := range p.Steps {
		if s := &p.Steps[i]; s.Intent.Kind.OnHost() {
			s.Intent.Digest = digests[s.Host]
		}
	}
}

func binaryChanges(binaries []desired.Binary, seen observed.Host) []string {
	return append(newBinaries(binaries, seen), "kernel modules and settings", "containerd.service, kubelet.service")
}

// newBinaries names the binaries that the host does not have in the wanted version.
func newBinaries(binaries []desired.Binary, seen observed.Host) []string {
	var out []string
	for _, b := range binaries {
		have := seen.Binaries[b.Name]
		switch {
		case have == "":
			out = append(out, b.Name+" "+b.Version)
		case have != b.Version:
			out = append(out, fmt.Sprintf("%s %s -> %s", b.Name, have, b.Version))
		}
	}
	return out
}

// count is "1 image", "2 images".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func imageChanges(images []desired.Image) []string {
	out := make([]string, 0, len(images))
	for _, i := range images {
		out = append(out, i.Name)
	}
	return out
}

// missingBinaries are the files that a host lacks: what is uploaded (sha256, hex) or what it downloads.
func missingBinaries(binaries []desired.Binary, pushed bool, seen observed.Host) (uploads, downloads []string) {
	for _, b := range binaries {
		switch {
		case seen.Binaries[b.Name] == b.Version:
		case pushed:
			uploads = append(uploads, b.SHA256)
		default:
			downloads = append(downloads, b.URL)
		}
	}
	return uploads, downloads
}

// missingImages is all of a host's images, or nothing when it has every one of them.
func missingImages(images []desired.Image, pushed bool, seen observed.Host) (uploads, downloads []string) {
	have := map[string]bool{}
	for _, name := range seen.Images {
		have[name] = true
	}
	complete := true
	for _, i := range images {
		complete = complete && have[i.Name]
		downloads = append(downloads, i.Source+"@"+i.Digest)
		for _, blob := range i.Blobs {
			uploads = append(uploads, strings.TrimPrefix(blob.Digest, "sha256:"))
		}
	}
	switch {
	case complete:
		return nil, nil
	case pushed:
		return union(nil, uploads), nil
	default:
		return nil, downloads
	}
}
