package script

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"kubeone/internal/testutil/snapshottest"
)

// A host's database says which members there are, and which have left; the host itself need not have etcd's programs.
func TestADatabaseOnTheDiskTellsOfItsMembers(t *testing.T) {
	t.Parallel()
	db := t.TempDir() + "/db"
	if err := os.WriteFile(db, snapshottest.Lived(t), 0o600); err != nil {
		t.Fatal(err)
	}
	const at, asks = "\nDB=/var/lib/etcd/member/snap/db\n", "\nhow_far\n[" // what runs on the machine is not asked
	text := strings.Replace(strings.Replace(Progress(true), at, "\nDB="+db+"\n", 1), asks, "\n[", 1)
	if !strings.Contains(text, db) || strings.Contains(text, asks) {
		t.Fatal("the script is not what it was")
	}
	out, err := exec.CommandContext(t.Context(), "sh", "-c", text).Output()
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSpace(string(out)), "\n")
	for _, line := range []string{
		`member 8e9e05c52164694d{"id":10276657743932975437,"peerURLs":["https://10.0.0.1:2380"],"name":"cp-1"}`,
		`member b2{"id":178,"peerURLs":["https://10.0.0.2:2380"],"name":"cp-2","clientURLs":["https://10.0.0.2:2379"]}`,
		`removed c3removed`,
		`searched`,
	} {
		if !slices.Contains(got, line) {
			t.Errorf("no %q", line)
		}
	}
	for _, line := range got {
		kind, _, _ := strings.Cut(line, " ")
		if kind != "member" && kind != "removed" && kind != "searched" {
			t.Errorf("%q is about something else", line)
		}
	}
	if t.Failed() {
		t.Logf("%s", out)
	}
}
