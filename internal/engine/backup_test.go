package engine

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"

	"kubeone/internal/backup"
	"kubeone/internal/desired"
	"kubeone/internal/etcd"
	"kubeone/internal/etcd/etcdtest"
	"kubeone/internal/etcd/snapshot"
	"kubeone/internal/etcd/snapshot/snapshottest"
	"kubeone/internal/host"
	"kubeone/internal/host/hostfake"
	"kubeone/internal/manifest"
	"kubeone/internal/observed"
	"kubeone/internal/probe"
)

const kubeSystem = "77eb3138-7c83-4ad6-b1fa-1ff4b59a58e6"

// testCertificate is a CA's.
func testCertificate(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// secretly answers, and fails the test if the command does not say that its output is a secret.
func secretly(t *testing.T, answer string) func(context.Context, host.Cmd) (host.Result, error) {
	t.Helper()
	return func(_ context.Context, c host.Cmd) (host.Result, error) {
		if !c.Secret {
			t.Errorf("%s is not marked as secret", c.Name)
		}
		return host.Result{Stdout: []byte(answer)}, nil
	}
}

// pkiTar is what a control-plane host answers when it is asked for the CAs.
func pkiTar(t *testing.T, certificate []byte) string {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, name := range backup.PKINames() {
		content := []byte("secret of " + name)
		if name == "ca.crt" {
			content = certificate
		}
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// backedUp is the etcd of a cluster of one, through a host that answers what is expected.
func backedUp(t *testing.T, taken []byte, expects ...hostfake.Expect) *Etcd {
	t.Helper()
	c := etcdtest.Start(t, &etcdtest.Cluster{Snapshot: taken, Members: []etcdtest.Member{{ID: 1, Name: "192.0.2.1", Leader: 1}}})
	client, err := etcd.Connect(t.Context(), c.Access())
	if err != nil {
		t.Fatal(err)
	}
	e := &Engine{
		opt:   Options{Now: func() time.Time { return time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC) }, Warn: func(string) {}},
		want:  desired.Cluster{Name: "prod", KubernetesVersion: "1.36.3", ControlPlane: []desired.Host{{ID: "192.0.2.1", Hostname: "cp-1"}}},
		hosts: map[string]host.Host{"192.0.2.1": hostfake.New(t, "cp-1", expects...)}, loaded: manifest.Loaded{ManifestText: []byte("name: prod\n")},
	}
	members := &Etcd{client: client, engine: e, seen: probe.Result{World: observed.World{API: observed.API{ClusterID: kubeSystem, Version: "1.36.1"}}}}
	t.Cleanup(members.Close)
	return members
}

func keysExpected(t *testing.T, encryption string) []hostfake.Expect {
	t.Helper()
	out := []hostfake.Expect{
		{Name: "read the CAs", Do: secretly(t, pkiTar(t, testCertificate(t)))},
		{Name: "look for encryption at rest", Stdout: encryption + "\n"},
	}
	if encryption != "" {
		out = append(out, hostfake.Expect{Name: "read the configuration of encryption at rest", Args: []string{encryption}, Stdout: "kind: EncryptionConfiguration\n"})
	}
	return out
}

func TestABackupHasAllThatAHostKnows(t *testing.T) {
	t.Parallel()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	for _, encryption := range []string{"", "/etc/kubernetes/enc.yaml"} {
		taken := snapshottest.Bytes(t, snapshottest.Content{ClusterID: kubeSystem, Keys: 3})
		members := backedUp(t, taken, keysExpected(t, encryption)...)
		file := filepath.Join(t.TempDir(), "b")
		var result Backup
		if err := members.backup(t.Context(), file, []age.Recipient{id.Recipient()}, members.engine.opt.Now(), &result); err != nil {
			t.Fatal(err)
		}
		a, err := backup.Open(file, id)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Verify(t.Context()); err != nil {
			t.Error(err)
		}
		m := a.Metadata
		got := []string{m.Cluster, m.ClusterID, m.KubernetesVersion, m.EtcdVersion, m.EncryptionPath}
		if diff := cmp.Diff([]string{"prod", kubeSystem, "1.36.1", "3.6.8", encryption}, got); diff != "" {
			t.Error(diff)
		}
		if text, _, err := a.Encryption(); err != nil || (len(text) > 0) != (encryption != "") {
			t.Errorf("encryption at rest %q, %v", text, err)
		}
		if stat, err := os.Stat(file); err != nil || stat.Size() != result.Size {
			t.Errorf("the size is said to be %d: %v", result.Size, err)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestASnapshotOfAnotherClusterIsNotKept(t *testing.T) {
	t.Parallel()
	taken := snapshottest.Bytes(t, snapshottest.Content{ClusterID: "another"})
	members := backedUp(t, taken)
	dir := t.TempDir()
	if _, _, err := members.Snapshot(t.Context(), dir); !errors.Is(err, snapshot.ErrOtherCluster) || !strings.Contains(err.Error(), "cp-1") {
		t.Errorf("error %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
	members = backedUp(t, taken, keysExpected(t, "")...)
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "b")
	if err := members.backup(t.Context(), file, []age.Recipient{id.Recipient()}, time.Now(), &Backup{}); !errors.Is(err, snapshot.ErrOtherCluster) {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a backup was written")
	}
}

func TestASnapshotIsNamedAfterClusterAndTime(t *testing.T) {
	t.Parallel()
	members := backedUp(t, snapshottest.Bytes(t, snapshottest.Content{ClusterID: kubeSystem, Keys: 3}))
	path, info, err := members.Snapshot(t.Context(), t.TempDir())
	if err != nil || filepath.Base(path) != "prod-20260301T000000Z-by-hand.db" || info.Keys != 4 {
		t.Errorf("%s, %+v, %v", path, info, err)
	}
}

// Without a quorum a backup may have less than those before it: it is stored, and none of them goes.
func TestNoBackupIsRemovedWithoutAQuorum(t *testing.T) {
	t.Parallel()
	for _, alone := range []bool{false, true} {
		dir, file := t.TempDir(), filepath.Join(t.TempDir(), "b")
		e := &Engine{want: desired.Cluster{Name: "prod"}}
		target, err := e.Target(dir)
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
		err = e.store(t.Context(), target, file, BackupOptions{Prune: true, Keep: 1}, alone, &result)
		var refused *EtcdError
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
