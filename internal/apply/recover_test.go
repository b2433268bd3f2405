package apply

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
	"kubeone/internal/script"
)

func TestARestoreGetsWhatTheCopyHas(t *testing.T) {
	t.Parallel()
	restore := plan.Step{ID: "restore/cp-1", Host: "cp-1", Intent: step.Intent{Kind: step.Restore}}
	for name, c := range map[string]struct {
		copied Copy
		want   map[string][]byte
	}{
		"a survivor": {Copy{}, map[string][]byte{}},
		"a backup":   {Copy{PKI: []byte("keys")}, map[string][]byte{script.PKIFile: []byte("keys")}},
		"an encrypting cluster": {Copy{PKI: []byte("keys"), Encryption: []byte("config")}, map[string][]byte{
			script.PKIFile: []byte("keys"), script.EncryptionFile: []byte("config"),
		}},
	} {
		r := &Run{Copy: &c.copied}
		got, err := r.secretsFor(t.Context(), restore)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if _, err := (&Run{}).secretsFor(t.Context(), restore); err == nil {
		t.Error("a restore without a copy gets secrets")
	}
}

func TestACopyShowsNothingOfItself(t *testing.T) {
	t.Parallel()
	c := Copy{
		PKI:        []byte("hidden"),
		Encryption: []byte("hidden"),
		Snapshot:   func() (io.Reader, int64, error) { return bytes.NewReader(nil), 0, nil },
	}
	encoded, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, shown := range []string{fmt.Sprintf("%v %+v %#v %s", c, c, c, &c), string(encoded)} {
		if strings.Contains(shown, "hidden") || strings.Contains(shown, "104") {
			t.Errorf("it shows %s", shown)
		}
	}
}

// The snapshot arrives as a private file that only the restore of this very copy uses, once.
func TestASnapshotIsSentUnlessItIsThere(t *testing.T) {
	t.Parallel()
	const text = "a snapshot"
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
	restore := plan.Step{
		ID:     "restore/cp-1",
		Host:   "cp-1",
		Intent: step.With(step.RestoreParams{From: step.BareSnapshot, Snapshot: sum}),
	}
	for name, c := range map[string]struct {
		file, content string
		marker, data  bool // the marker says "restoring"; etcd data exists
		sent          int
	}{
		"nothing is there":                  {"", "", true, true, 1},
		"it is there":                       {"snapshot.db", text, false, true, 0},
		"another is there":                  {"snapshot.db", "another snapshot", true, true, 1},
		"it was restored":                   {"done", "snapshot " + sum + "\n", true, true, 0},
		"another was restored":              {"done", "backup 55\n", true, true, 1},
		"it was restored in a former life":  {"done", "snapshot " + sum + "\n", false, true, 1},
		"it was restored, and is not there": {"done", "snapshot " + sum + "\n", true, false, 1},
	} {
		l := newLab(t, ":", restore)
		if c.marker {
			l.Write("etc/kubeone/marker", "cluster=alpha\nrestoring=yes\n", 0o644)
		}
		if c.data {
			l.Write("var/lib/etcd/member/snap/db", "data", 0o600)
		}
		if c.file != "" {
			l.Write("var/lib/kubeone/recovery/"+c.file, c.content, 0o600)
		}
		sent := 0
		l.Copy = &Copy{Snapshot: func() (io.Reader, int64, error) {
			sent++
			return strings.NewReader(text), int64(len(text)), nil
		}}
		if err := l.uploadSnapshot(patience(t), l.Hosts["1"], restore); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if sent != c.sent {
			t.Errorf("%s: sent %d times, want %d", name, sent, c.sent)
		}
		if got := l.Read("var/lib/kubeone/recovery/snapshot.db"); c.sent == 1 && got != text {
			t.Errorf("%s: there is %q", name, got)
		}
	}
}
