package step

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/decide"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
)

// What is fetched is under the wanted name; nothing else of the host's notes changes by it, and no note of before.
func TestAFetchGivesTheWantedNoteOfTheImageOfDNS(t *testing.T) {
	t.Parallel()
	const note, workloads, addons = desired.DNSImageDigest, desired.WorkloadImagesDigest, desired.AddonImagesDigest
	for name, c := range map[string]struct{ config, had, want map[string]string }{
		"nothing to note": {map[string]string{"kubelet": "b"}, map[string]string{"kubelet": "a"},
			map[string]string{"kubelet": "a"}},
		"no notes": {map[string]string{note: "x"}, nil, map[string]string{note: "x"}},
		"set": {map[string]string{"kubelet": "b", note: "x"}, map[string]string{"kubelet": "a"},
			map[string]string{"kubelet": "a", note: "x"}},
		"removed": {map[string]string{}, map[string]string{"kubelet": "a", note: "x"},
			map[string]string{"kubelet": "a"}},
		"of addons and workloads": {map[string]string{workloads: "x", addons: "y"}, map[string]string{addons: "z"},
			map[string]string{workloads: "x", addons: "y"}},
		"no longer of workloads": {map[string]string{}, map[string]string{workloads: "x", addons: "y"},
			map[string]string{addons: "y"}},
	} {
		h := desired.Host{ID: "one"}
		in := decide.Input{Config: map[string]map[string]string{"one": c.config}}
		in.Is.Hosts = map[string]observed.Host{"one": {Digests: c.had}}
		before := len(c.had)
		w := NewWorld(in, nil, 0)
		w.Predict(h, With(FetchParams{}))
		if diff := cmp.Diff(c.want, w.Is.Hosts["one"].Digests); diff != "" || len(c.had) != before {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
