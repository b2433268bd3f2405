package backup

import (
	"encoding/json"
	"errors"
	"testing"
)

// FuzzMetadata: any metadata of a backup is either refused with an error of a known kind, or within bounds.
func FuzzMetadata(f *testing.F) {
	text, err := json.Marshal(Metadata{Format: Format, Cluster: "prod", EncryptionPath: "/etc/kubernetes/e.yaml"})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{
		string(text), "", "{}", "null", `{"format":3}`, `{"epoch":-1}`, `{"epoch":1000001}`,
		`{"snapshot":{"revision":-5}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := parseMetadata(text)
		switch {
		case err == nil:
			if m.Format > Format || m.Epoch < 0 || m.Epoch > latestEpoch || m.Snapshot.Revision < 0 {
				t.Errorf("%q is believed: %+v", text, m)
			}
		case !errors.Is(err, ErrNotBackup) && !errors.Is(err, ErrNewer) && !errors.Is(err, ErrAltered):
			t.Errorf("%q: an error of no kind: %v", text, err)
		}
		if isAllowedPath(m.EncryptionPath) && (len(m.EncryptionPath) < len("/etc/kubernetes/x") ||
			m.EncryptionPath[:len("/etc/kubernetes/")] != "/etc/kubernetes/") {
			t.Errorf("%q would be written", m.EncryptionPath)
		}
	})
}
