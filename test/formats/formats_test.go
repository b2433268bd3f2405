// Package formats tests that this version reads everything that released versions wrote down: in clusters, on hosts and
// on operators' machines.
//
// A folder below testdata holds what one release wrote, and is never changed. Beside each file, NAME.read.json is what
// this version makes of it; -update rewrites those. testdata/README.md says where the files come from.
package formats

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"kubeone/internal/apply"
	"kubeone/internal/cluster/record"
	"kubeone/internal/etcd/backup"
	"kubeone/internal/locks/leaselock"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
	"kubeone/internal/probe"
	"kubeone/internal/testutil/golden"
)

// Every release has all of these files.
var readers = map[string]func(t *testing.T, path string) any{
	"record.yaml":   readRecord,
	"lease.yaml":    readLease,
	"host":          readHost,
	"plan.json":     readPlan,
	"journal.jsonl": readJournal,
	"backup.tar.age": func(t *testing.T, path string) any {
		return readBackup(t, path, filepath.Join(filepath.Dir(path), "backup.identity"))
	},
}

func TestReleasesAreRead(t *testing.T) {
	t.Parallel()
	releases, err := filepath.Glob("testdata/*/record.yaml")
	if err != nil || len(releases) == 0 {
		t.Fatalf("no release in testdata: %v", err)
	}
	for _, file := range releases {
		dir := filepath.Dir(file)
		for name, read := range readers {
			path := filepath.Join(dir, name)
			t.Run(path, func(t *testing.T) {
				t.Parallel()
				text, err := json.MarshalIndent(read(t, path), "", "  ")
				if err != nil {
					t.Fatal(err)
				}
				golden.Check(t, path+".read.json", string(text)+"\n")
			})
		}
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict(readFile(t, path), into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// readRecord reads the ConfigMap kube-system/kubeone.
func readRecord(t *testing.T, path string) any {
	var stored corev1.ConfigMap
	readYAML(t, path, &stored)
	r := record.Decode(stored.Data)
	if len(r.Unreadable) > 0 {
		t.Errorf("unreadable: %v", r.Unreadable)
	}
	return r
}

// readLease reads the Lease kube-system/kubeone as it is ten seconds after its last renewal.
func readLease(t *testing.T, path string) any {
	var stored coordinationv1.Lease
	readYAML(t, path, &stored)
	holder, since, live := leaselock.State(&stored, stored.Spec.RenewTime.Add(10*time.Second))
	return map[string]any{"holder": holder, "since": since.UTC(), "live": live}
}

// hostFiles are what a host says of files that kubeone wrote there.
type hostFiles struct {
	Marker     *observed.Marker
	Digests    map[string]string
	Upgrading  string
	Controller observed.ControllerFiles
	Hooks      []string
	Lock       *observed.Lock
	Step       *observed.Step
}

// runningStep is a systemctl that shows a step as running: /var/lib/kubeone/step/current counts only then.
const runningStep = `#!/bin/sh
[ "$1" != is-active ] || exit 3
printf '%s\n' Id=kubeone-step.service LoadState=loaded ActiveState=active SubState=running
`

// readHost runs the probe's script over a copy of a host's files, which it finds in a folder.
func readHost(t *testing.T, path string) any {
	root := t.TempDir()
	if err := os.CopyFS(root, os.DirFS(path)); err != nil {
		t.Fatal(err)
	}
	// A lock counts as held while its beat is new.
	now := time.Now()
	if err := os.Chtimes(filepath.Join(root, "var/lib/kubeone/lock/beat"), now, now); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(root, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "bin/systemctl"), []byte(runningStep),
		0o700); err != nil { // #nosec G306
		t.Fatal(err)
	}
	text := strings.NewReplacer("/etc/kubeone", root+"/etc/kubeone", "/var/lib/kubeone", root+"/var/lib/kubeone").
		Replace(probe.Script)
	cmd := exec.CommandContext(t.Context(), "sh", "-c", text, "probe", "facts")
	cmd.Env = append(os.Environ(), "PATH="+root+"/bin:"+os.Getenv("PATH"))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	a, err := probe.Parse(bytes.ReplaceAll(out, []byte(root), nil), now, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	h := a.Host
	return hostFiles{h.Marker, h.Digests, h.Upgrading, h.ControllerFiles, h.HooksOwed, h.Lock, h.Step}
}

// readPlan reads a plan saved with plan --out.
func readPlan(t *testing.T, path string) any {
	p, err := plan.Decode(readFile(t, path))
	if err != nil {
		t.Fatal(err)
	}
	return map[string]any{"digest": p.Digest(), "plan": p}
}

// readJournal reads the journal of a run, which has the same lines as apply -o json.
func readJournal(t *testing.T, path string) any {
	var events []apply.Event
	decoder := json.NewDecoder(bytes.NewReader(readFile(t, path)))
	decoder.DisallowUnknownFields()
	for {
		var e apply.Event
		err := decoder.Decode(&e)
		if err == io.EOF {
			return events
		}
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
}

// readBackup opens a backup, verifies every part of it, and returns its header.
func readBackup(t *testing.T, path, identity string) any {
	id, err := age.ParseX25519Identity(strings.TrimSpace(string(readFile(t, identity))))
	if err != nil {
		t.Fatal(err)
	}
	archive, err := backup.Open(path, id)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = archive.Close() }()
	if err := archive.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	return archive.Metadata
}
