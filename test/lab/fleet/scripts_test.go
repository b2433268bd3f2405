package fleet

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
	"sigs.k8s.io/yaml"
)

func TestScriptsAreShell(t *testing.T) {
	entry, err := rootfs.ReadFile("rootfs/usr/local/sbin/lab-init")
	if err != nil {
		t.Fatal(err)
	}
	for name, script := range map[string]string{"lab-init": string(entry), "configureScript": configureScript} {
		if _, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(script),
			name); err != nil {
			t.Error(err)
		}
	}
}

func TestWriteOverlay(t *testing.T) {
	dir := t.TempDir()
	if err := writeOverlay(dir); err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]os.FileMode{
		"usr/local/sbin/lab-init": 0o755, "etc/sudoers.d/ops": 0o440, "etc/kubelet.conf.d/10-lab.conf": 0o644,
	} {
		info, err := os.Stat(filepath.Join(dir, path))
		if err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, want mode %o (%v)", path, info, mode, err)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "etc/kubelet.conf.d/10-lab.conf"))
	if err != nil {
		t.Fatal(err)
	}
	var kubelet map[string]any
	if err := yaml.UnmarshalStrict(text, &kubelet); err != nil || kubelet["kind"] != "KubeletConfiguration" {
		t.Errorf("kubelet's drop-in: %v %v", kubelet, err)
	}
}

func TestOnlyStalePidFilesAreRemoved(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		content, program string
		removed          bool
	}{
		"dead process":                  {"1999999999", "dockerd", true},
		"number of another program now": {strconv.Itoa(os.Getpid()), "dockerd", true},
		"the program itself":            {strconv.Itoa(os.Getpid()) + "\n", filepath.Base(self), false},
		"empty after a crash":           {"", "dockerd", true},
	} {
		path := filepath.Join(t.TempDir(), "docker.pid")
		if err := os.WriteFile(path, []byte(c.content), 0o644); err != nil {
			t.Fatal(err)
		}
		removeStalePid(path, c.program)
		if _, err := os.Stat(path); os.IsNotExist(err) != c.removed {
			t.Errorf("%s: removed = %v, want %v", name, os.IsNotExist(err), c.removed)
		}
	}
}
