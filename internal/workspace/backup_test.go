package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kubeone/internal/engine"
	"kubeone/internal/model/desired"
)

// Without a quorum a backup may have less than earlier ones: it is stored, and none of those is deleted.
func TestNoBackupIsRemovedWithoutAQuorum(t *testing.T) {
	t.Parallel()
	for _, alone := range []bool{false, true} {
		dir, file := t.TempDir(), filepath.Join(t.TempDir(), "b")
		w := &Workspace{want: desired.Cluster{Name: "prod"}}
		target, err := w.openTarget(dir)
		if err != nil {
			t.Fatal(err)
		}
		old := filepath.Join(dir, "prod-20250101T000000Z.tar.age")
		for _, path := range []string{file, old} {
			if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		result := Backup{Name: "prod-20260101T000000Z.tar.age", Size: 1}
		err = w.storeBackup(t.Context(), target, file, BackupOptions{Prune: true, Keep: 1}, alone, &result)
		var refused *engine.EtcdError
		if errors.As(err, &refused) != alone || !alone && err != nil {
			t.Errorf("alone %v: error %v", alone, err)
		}
		if _, err := os.Stat(old); (err == nil) != alone {
			t.Errorf("alone %v: the older backup: %v", alone, err)
		}
		if _, err := os.Stat(filepath.Join(dir, result.Name)); err != nil {
			t.Errorf("alone %v: the new backup: %v", alone, err)
		}
	}
}

func TestBackupsWithLaterNamesAreNamedAndStay(t *testing.T) {
	t.Parallel()
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "b")
	var warned []string
	w := &Workspace{
		want: desired.Cluster{Name: "prod"}, opt: Options{Warn: func(m string) { warned = append(warned, m) }},
	}
	target, err := w.openTarget(dir)
	if err != nil {
		t.Fatal(err)
	}
	const old = "prod-20250101T000000Z.tar.age"
	paths := []string{file, filepath.Join(dir, old)}
	for day := range 12 {
		paths = append(paths, filepath.Join(dir, fmt.Sprintf("prod-203001%02dT000000Z.tar.age", day+1)))
	}
	for _, path := range paths {
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	result := Backup{Name: "prod-20260101T000000Z.tar.age", Size: 1}
	err = w.storeBackup(t.Context(), target, file, BackupOptions{Prune: true, Keep: 2}, false, &result)
	if err != nil || len(result.Removed) > 0 {
		t.Errorf("removed are %v, %v", result.Removed, err)
	}
	if len(warned) != 1 || !strings.Contains(warned[0], "prod-20300112T000000Z.tar.age, ") ||
		!strings.Contains(warned[0], " and 2 more") {
		t.Errorf("warned is %q", warned)
	}
}
