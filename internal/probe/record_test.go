package probe

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/model/observed"
)

// A user who may write one ConfigMap must not be able to hide the cluster from this program.
func TestUnreadableRecordKeyHidesNothingElse(t *testing.T) {
	t.Parallel()
	const path = "/api/v1/namespaces/kube-system/configmaps/kubeone"
	for key, text := range map[string]string{
		observed.RecordCluster: "x\x1b[2Jy z", observed.RecordManifestDigest: "a b", observed.RecordManifest: "[",
		observed.RecordRunID: "a b", observed.RecordNodes: "x", observed.RecordFormerEndpoints: "a,b",
		observed.RecordHardening: "off", observed.RecordAddons: "\x1b[2J", observed.RecordHistory: "x",
	} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			var held struct {
				Kind       string            `json:"kind"`
				APIVersion string            `json:"apiVersion"`
				Metadata   map[string]string `json:"metadata"`
				Data       map[string]string `json:"data"`
			}
			if err := json.Unmarshal([]byte(objects[path]), &held); err != nil {
				t.Fatal(err)
			}
			held.Data[key] = text
			text, err := json.Marshal(held)
			if err != nil {
				t.Fatal(err)
			}
			changed := maps.Clone(objects)
			changed[path] = string(text)
			api := newAPI(t, changed)
			r, err := Run(t.Context(), Request{
				Targets: []Target{{ID: "a", Host: through(says(nil, api.secret()), api), ControlPlane: true}}, Now: at,
			})
			if err != nil {
				t.Fatal(err)
			}
			got, want := r.World.API, wantAPI
			if !got.Record.IsUnreadable(key) || len(got.Record.Unreadable) != 1 ||
				got.Record.Unreadable[key] != boundText(got.Record.Unreadable[key]) {
				t.Errorf("unreadable: %q", got.Record.Unreadable)
			}
			left := *want.Record
			switch key {
			case observed.RecordCluster:
				left.Cluster = ""
			case observed.RecordManifestDigest:
				left.ManifestDigest = ""
			case observed.RecordManifest:
				left.Manifest = ""
			case observed.RecordRunID:
				left.RunID = ""
			case observed.RecordHardening:
				left.Hardening = ""
			case observed.RecordAddons:
				want.Addons = map[string]string{}
			}
			want.Record, got.Record.Unreadable = &left, nil
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("API (-want +got):\n%s", diff)
			}
		})
	}
}
