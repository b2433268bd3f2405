package workspace

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"filippo.io/age"

	"kubeone/internal/host"
	"kubeone/internal/manifest"
	"kubeone/internal/model/desired"
	"kubeone/internal/release"
)

// Without flags, the manifest says who can read a backup and where to store it.
func TestBackupsAreForWhomAndWhereTheManifestSays(t *testing.T) {
	t.Parallel()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "b")
	w := &Workspace{want: desired.Cluster{
		Name: "prod", Backup: desired.Backup{Recipients: []string{id.Recipient().String()}, Target: dir},
	}}
	recipients, err := w.backupRecipients(BackupOptions{})
	if err != nil || len(recipients) != 1 || fmt.Sprint(recipients[0]) != id.Recipient().String() {
		t.Errorf("recipients %v: %v", recipients, err)
	}
	target, err := w.backupTarget(BackupOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	result := Backup{Name: "prod-20260101T000000Z.tar.age", Size: 1}
	if err := w.storeBackup(t.Context(), target, file, BackupOptions{}, false, &result); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, result.Name)); err != nil {
		t.Error(err)
	}
}

func TestNewHostsAreRefusedWhereTheManifestIsStrict(t *testing.T) {
	t.Parallel()
	for _, strict := range []bool{false, true} {
		w := &Workspace{loaded: manifest.Loaded{StrictHostKeys: strict}, opt: Options{NewHosts: host.PolicyAcceptNew}}
		if got := w.unknownKeyPolicy(); (got == host.PolicyStrict) != strict {
			t.Errorf("strictHostKeys %t: the policy for new hosts is %v", strict, got)
		}
	}
}

// The mirror serves files under their official paths.
func TestHostsDownloadFromTheMirror(t *testing.T) {
	t.Parallel()
	var files atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/dl.k8s.io/release/v1.36.3/") {
			files.Add(1)
		}
		http.NotFound(w, r)
	}))
	defer server.Close()
	r, err := openReleases(t.Context(), Options{InsecureMirror: true}, server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	r.source.CacheDir = t.TempDir()
	want := release.Want{
		KubernetesVersion: "1.36.3", Arch: "amd64", Insecure: true,
		OverwriteRegistry: strings.TrimPrefix(server.URL, "http://"), // so that no other registry is used
	}
	if _, err := r.Resolve(t.Context(), want); err == nil || files.Load() == 0 {
		t.Errorf("%d files were asked for; error %v", files.Load(), err)
	}
}
