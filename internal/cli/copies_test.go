package cli

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"filippo.io/age"

	"kubeone/internal/etcd/backup"
	"kubeone/internal/etcd/snapshot"
	"kubeone/internal/testutil/snapshottest"
)

// copies writes a backup of the cluster "demo", and the snapshot in it, to files.
func copies(t *testing.T, to age.Recipient) (backupFile, snapshotFile string) {
	t.Helper()
	taken := snapshottest.Bytes(t, snapshottest.Content{ClusterID: "uid-1", Keys: 20})
	info, err := snapshot.VerifyReader(bytes.NewReader(taken))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	backupFile, snapshotFile = filepath.Join(dir, "demo.tar.age"), filepath.Join(dir, "demo.db")
	err = backup.WriteFile(backupFile, func(w io.Writer) error {
		_, err := backup.Write(w, backup.Content{
			Cluster: "demo", CreatedBy: "me@here", KubernetesVersion: "1.36.3", EtcdVersion: "3.6.8",
			Created: time.Date(2026, time.August, 10, 12, 0, 0, 0, time.UTC), Keys: backup.Keys{PKI: pki(t)},
			Manifest: []byte("name: demo\n"), Snapshot: bytes.NewReader(taken), Info: info,
		}, []age.Recipient{to})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(snapshotFile, taken, 0o600); err != nil {
		t.Fatal(err)
	}
	return backupFile, snapshotFile
}

// pki returns every file of a backup, made from one CA.
func pki(t *testing.T) map[string][]byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubernetes"}, IsCA: true,
		NotAfter: time.Now().Add(time.Hour),
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, name := range backup.PKINames() {
		block := &pem.Block{Type: "CERTIFICATE", Bytes: certificate}
		if filepath.Ext(name) == ".key" {
			block = &pem.Block{Type: "EC PRIVATE KEY", Bytes: private}
		}
		files[name] = pem.EncodeToMemory(block)
	}
	return files
}
