package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"

	"kubeone/internal/decide"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan/step"
)

// renameDNS gives the image of cluster DNS another name, or the one that goes without saying, which some hosts have.
func renameDNS(r *rand.Rand, in *decide.Input) {
	notes := []string{"", "here", "there"}
	want := notes[r.IntN(len(notes))]
	for _, h := range in.Want.Hosts() {
		in.Config[h.ID] = withDNSNote(in.Config[h.ID], want)
		if is := in.Is.Hosts[h.ID]; is.Digests != nil {
			is.Digests = withDNSNote(is.Digests, notes[r.IntN(len(notes))])
			in.Is.Hosts[h.ID] = is
		}
	}
	in.Is.API.Pods = []observed.Pod{{App: "kube-dns", Image: "another/coredns", Ready: observed.Yes}}
}

// withDNSNote returns digests with that note of the image of cluster DNS; "" is none.
func withDNSNote(digests map[string]string, note string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, digests)
	if delete(out, desired.DNSImageDigest); note != "" {
		out[desired.DNSImageDigest] = note
	}
	return out
}

// withDigests is what a host notes that got its configurations, and images before, or not.
func withDigests(in decide.Input, h desired.Host, is observed.Host) map[string]string {
	return withDNSNote(in.Config[h.ID], is.Digests[desired.DNSImageDigest])
}

// lacksDNSImage reports whether the host has noted another name of the image than the wanted one.
func lacksDNSImage(in decide.Input, host string) bool {
	return in.Is.Hosts[host].Digests[desired.DNSImageDigest] != in.Config[host][desired.DNSImageDigest]
}

// imagesBeforeDNS wants every member to have the image of cluster DNS before pods may name it.
func imagesBeforeDNS(in decide.Input, p Plan, _ []decide.Decision) error {
	before := ancestorSteps(p)
	for _, s := range p.Steps {
		if s.Intent.Kind != step.SystemAddons {
			continue
		}
		for _, h := range in.Want.Hosts() {
			is := in.Is.Hosts[h.ID]
			member := is.Reach == observed.Reached && is.Marker != nil && is.Marker.Complete &&
				is.Marker.Cluster == cluster
			if !member || !lacksDNSImage(in, h.ID) {
				continue
			}
			_, joins := p.Step(string(step.Images) + "/" + h.Hostname)
			if fetch := string(step.Fetch) + "/" + h.Hostname; !joins && !before[s.ID][fetch] {
				return fmt.Errorf("%s does not wait for %s", s.ID, fetch)
			}
		}
	}
	return nil
}
