//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"filippo.io/age"

	"kubeone/internal/etcd/backup"
	"kubeone/internal/etcd/snapshot"
	"kubeone/test/e2e/operator"
)

// checkBackups takes snapshots and backups in every supported way, and reads them again.
func checkBackups(s *scenario) {
	s.runCommand(0, []string{"etcd", "members"}, "All members are healthy and hold the same keys.")
	s.runCommand(0, []string{"etcd", "members", "-o", "json"}, `"format"`, s.Lab.ControlPlanes()[0].Hostname)
	dir := s.TempDir()
	file := filepath.Join(dir, "by-hand.db")
	s.runCommand(0, []string{"etcd", "snapshot", file, "-o", "json"}, file)
	_, err := snapshot.Verify(file)
	s.must(err)
	piped := s.runCommand(0, []string{"etcd", "snapshot", "-"})
	_, err = snapshot.VerifyReader(strings.NewReader(piped.Stdout))
	s.must(err)
	s.snapshotsOnHosts()
	s.backupOffTheHosts(dir)
	s.runCommand(0, []string{"etcd", "defragment"}, "Done. 3 members")
	s.runCommand(0, []string{"etcd", "defragment", s.Lab.ControlPlanes()[1].Hostname}, "Done. 1 member")
	s.runCommand(15, []string{"etcd", "defragment", "nobody"}, "no such etcd member")
	s.runCommand(0, []string{"etcd", "disarm"}, "There is no alarm.")
	s.runCommand(0, []string{"etcd", "disarm", "--all"}, "There is no alarm.")
	s.awaitHealthy()
}

// snapshotsOnHosts has each host take one snapshot on request and one by its timer.
func (s *scenario) snapshotsOnHosts() {
	s.runCommand(0, []string{"etcd", "snapshot", "--on-hosts", "--force-unlock"}, "3 hosts have a new snapshot")
	const fire = `set -e
systemctl is-enabled kubeone-snapshot.timer
systemctl start kubeone-snapshot.service
stat -c '%n %a' /var/lib/kubeone/snapshots /var/lib/kubeone/snapshots/*
ls -A /var/lib/etcd`
	out, err := operator.OnEach(s.Context(), s.Lab.ControlPlanes(), fire)
	s.must(err)
	for host, text := range out {
		for _, want := range []string{"enabled\n", "/snapshots 700\n", "-by-hand.db 600\n", "-scheduled.db 600\n"} {
			if !strings.Contains(text, want) {
				s.Errorf("%s: want %q in\n%s", host, want, text)
			}
		}
		if !strings.HasSuffix(strings.TrimSpace(text), "\nmember") {
			s.Errorf("%s: something is left in etcd's directory:\n%s", host, text)
		}
	}
}

// backupOffTheHosts writes two backups, keeps one, and verifies it.
func (s *scenario) backupOffTheHosts(dir string) {
	id, err := age.GenerateX25519Identity()
	s.must(err)
	key := filepath.Join(dir, "key.txt")
	s.must(os.WriteFile(key, []byte(id.String()+"\n"), 0o600))
	kept := filepath.Join(dir, "kept")
	var written struct {
		Name     string          `json:"name"`
		Metadata backup.Metadata `json:"metadata"`
	}
	for range 2 {
		r := s.runCommand(0, []string{"backup", "--recipient", id.Recipient().String(), "--to", kept, "--keep", "1",
			"-o",
			"json"})
		s.must(json.Unmarshal([]byte(r.Stdout), &written))
	}
	left, err := os.ReadDir(kept)
	s.must(err)
	if len(left) != 1 || left[0].Name() != written.Name {
		s.Errorf("kept are %v, not %s", left, written.Name)
	}
	off := filepath.Join(kept, written.Name)
	s.runCommand(0, []string{"backup", "verify", off, "--identity", key}, "Signed by this CA", "Verified: all")
	s.runCommand(0, []string{"backup", "inspect", off, "--identity", key, "-o", "json"}, `"verified": false`)
	s.checkEqual("Kubernetes version", newest, written.Metadata.KubernetesVersion)
	if written.Metadata.ClusterID == "" || written.Metadata.Snapshot.Keys < 100 ||
		len(written.Metadata.Snapshot.Members) != 3 {
		s.Errorf("metadata %+v", written.Metadata)
	}
	s.runCommand(15, []string{"backup", "--to", kept}, "no recipient")
}
