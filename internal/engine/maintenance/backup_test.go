package maintenance

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
	"io"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"

	"kubeone/internal/engine"
	"kubeone/internal/etcd"
	"kubeone/internal/etcd/backup"
	"kubeone/internal/etcd/snapshot"
	"kubeone/internal/host"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/probe"
	"kubeone/internal/release"
	"kubeone/internal/testutil/etcdtest"
	"kubeone/internal/testutil/hostfake"
	"kubeone/internal/testutil/snapshottest"
)

const kubeSystem = "77eb3138-7c83-4ad6-b1fa-1ff4b59a58e6"

// testAuthority returns a CA's certificate and key.
func testAuthority(t *testing.T) (certificate, private []byte) {
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
	text, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: text})
}

// secretly answers, and fails the test unless the command marks its output as secret.
func secretly(t *testing.T, answer string) func(context.Context, host.Cmd) (host.Result, error) {
	t.Helper()
	return func(_ context.Context, c host.Cmd) (host.Result, error) {
		if !c.Secret {
			t.Errorf("%s is not marked as secret", c.Name)
		}
		return host.Result{Stdout: []byte(answer)}, nil
	}
}

// pkiTar is a control-plane host's answer to a request for the CAs.
func pkiTar(t *testing.T) string {
	t.Helper()
	certificate, key := testAuthority(t)
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, name := range backup.PKINames() {
		content := []byte("secret of " + name)
		switch name {
		case "ca.crt":
			content = certificate
		case "ca.key":
			content = key
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

// backedUp is the etcd of a cluster of one, through a host with these expectations.
func backedUp(t *testing.T, taken []byte, expects ...hostfake.Expect) *Etcd {
	t.Helper()
	c := etcdtest.Start(t, &etcdtest.Cluster{
		Snapshot: taken,
		Members:  []etcdtest.Member{{ID: 1, Name: "192.0.2.1", Leader: 1}},
	})
	client, err := etcd.Connect(t.Context(), c.Access())
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(engine.Config{
		Now: func() time.Time { return time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC) },
		Want: desired.Cluster{
			Name:              "prod",
			KubernetesVersion: "1.36.3",
			ControlPlane:      []desired.Host{{ID: "192.0.2.1", Hostname: "cp-1"}},
		},
		Hosts: map[string]host.Host{"192.0.2.1": hostfake.New(t, "cp-1", expects...)}, Manifest: "name: prod\n",
		Releases: nothing{},
	})
	if err != nil {
		t.Fatal(err)
	}
	seen := probe.Result{World: observed.World{API: observed.API{ClusterID: kubeSystem, Version: "1.36.1"}}}
	members := &Etcd{client: client, engine: e, seen: seen}
	t.Cleanup(members.Close)
	return members
}

// nothing are the releases of an engine that installs nothing.
type nothing struct{ engine.Releases }

func (nothing) Names(release.Want) (desired.Artifacts, error) { return desired.Artifacts{}, nil }

func (nothing) WorkloadImages() string { return "" }

// writeTo writes a backup into a file.
func writeTo(file string) func(func(io.Writer) error) error {
	return func(write func(io.Writer) error) error { return backup.WriteFile(file, write) }
}

func keysExpected(t *testing.T, encryption string) []hostfake.Expect {
	t.Helper()
	out := []hostfake.Expect{
		{Name: "read the CAs", Do: secretly(t, pkiTar(t)), Times: -1},
		{Name: "find the encryption configuration", Stdout: encryption + "\n", Times: -1},
	}
	if encryption != "" {
		out = append(out, hostfake.Expect{
			Name: "read the configuration of encryption at rest", Times: -1,
			Args:   []string{encryption},
			Stdout: "kind: EncryptionConfiguration\n",
		})
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
		metadata, err := members.Backup(t.Context(), []age.Recipient{id.Recipient()}, writeTo(file))
		if err != nil {
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
		if diff := cmp.Diff(m, metadata); diff != "" {
			t.Error(diff)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestASnapshotIsWrittenWhole(t *testing.T) {
	t.Parallel()
	taken := snapshottest.Bytes(t, snapshottest.Content{ClusterID: kubeSystem})
	var written bytes.Buffer
	info, err := backedUp(t, taken).WriteSnapshot(t.Context(), &written)
	if err != nil || !bytes.Equal(written.Bytes(), taken) || info.Size != int64(len(taken)) {
		t.Errorf("%d bytes of %d, %d by its own account, error %v", written.Len(), len(taken), info.Size, err)
	}
}

func TestASnapshotOfAnotherClusterIsNotKept(t *testing.T) {
	t.Parallel()
	taken := snapshottest.Bytes(t, snapshottest.Content{ClusterID: "another"})
	members := backedUp(t, taken)
	path := filepath.Join(t.TempDir(), "s.db")
	_, err := members.Snapshot(func(from snapshot.Source) (snapshot.Info, error) {
		return snapshot.Save(t.Context(), from, path)
	})
	var etcd *engine.EtcdError
	if !errors.Is(err, snapshot.ErrOtherCluster) || !errors.As(err, &etcd) || !strings.Contains(err.Error(), "cp-1") {
		t.Errorf("error %v", err)
	}
	var written bytes.Buffer
	if _, err := members.WriteSnapshot(t.Context(), &written); !errors.Is(err, snapshot.ErrOtherCluster) ||
		written.Len() > 0 {
		t.Errorf("%d bytes were written, error %v", written.Len(), err)
	}
	members = backedUp(t, taken, keysExpected(t, "")...)
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "b")
	if _, err := members.Backup(t.Context(), []age.Recipient{id.Recipient()}, writeTo(file)); !errors.Is(err,
		snapshot.ErrOtherCluster) {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a backup was written")
	}
}
