package workspace

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kubeone/internal/engine"
	"kubeone/internal/etcd/backup"
	"kubeone/internal/plan/step"
	"kubeone/internal/testutil/snapshottest"
)

// An unusable copy is a mistake of the operator's, reported before any connection to a host.
func TestCopiesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	encrypted := write("backup", "age-encryption.org/v1\n-> X25519 x\n")
	for name, c := range map[string]struct{ from, identity, says string }{
		"nothing there": {filepath.Join(dir, "none"), "", "surviving-member, a backup or a snapshot"},
		"an empty file": {write("empty", ""), "", "it is empty"},
		"something else": {write("text", strings.Repeat("not a snapshot ", 1000)), "",
			"it is not a snapshot of etcd"},
		"a backup without a key":   {encrypted, "", "--identity"},
		"a backup, no key file":    {encrypted, filepath.Join(dir, "none"), "no such file"},
		"a backup, a key of words": {encrypted, write("key", "secret words"), "age-keygen"},
		"an unknown target":        {"ftp://host/backup", "", "ftp"},
	} {
		_, err := (&Workspace{}).OpenSource(t.Context(), c.from, SourceOptions{Identity: c.identity})
		var config *engine.ConfigError
		if !errors.As(err, &config) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want a mistake of the operator's that says %q", name, err, c.says)
		}
		if err != nil && strings.Contains(err.Error(), "secret words") {
			t.Errorf("%s: the error has the key in it", name)
		}
	}
}

func TestASurvivorNeedsNoCopy(t *testing.T) {
	t.Parallel()
	s, err := (&Workspace{}).OpenSource(t.Context(), "surviving-member", SourceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.origin.From != step.SurvivingMember || s.content.Snapshot != nil {
		t.Errorf("got %+v", s.origin)
	}
}

// A bare snapshot shows its cluster by the CA, and its epoch by the revision.
func TestASnapshotTellsItsCAAndRevision(t *testing.T) {
	t.Parallel()
	certificate := newCertificate(t)
	path := snapshottest.File(t, snapshottest.Bytes(t, snapshottest.Content{Keys: 3, CA: string(certificate)}))
	s, err := (&Workspace{}).OpenSource(t.Context(), path, SourceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	want, err := backup.CAHash(certificate)
	if err != nil || s.origin.CAHash != want || s.origin.Revision != 8 {
		t.Errorf("CA %s, want %s; revision %d; %v", s.origin.CAHash, want, s.origin.Revision, err)
	}
}

// A bare snapshot is not signed, so it must not replace a backup, which is.
func TestABareSnapshotDoesNotReplaceABackup(t *testing.T) {
	taken := snapshottest.Bytes(t, snapshottest.Content{Keys: 3, CA: string(newCertificate(t))})
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"x"`)
		http.ServeContent(w, r, "", time.Unix(1, 0), bytes.NewReader(taken))
	}))
	defer store.Close()
	t.Setenv("AWS_ENDPOINT_URL_S3", store.URL)
	t.Setenv("AWS_ACCESS_KEY_ID", "ID")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "KEY")
	t.Setenv("TMPDIR", t.TempDir())
	dir := t.TempDir()
	const name = "prod-20261121T040000Z.tar.age"
	for _, file := range []string{name, "prod.db"} {
		if err := os.WriteFile(filepath.Join(dir, file), taken, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for what, c := range map[string]struct{ from, identity, says string }{
		"a store":            {"s3://vault/prod/" + name, "", "It comes from a store"},
		"a store, a key":     {"s3://vault/prod/prod.db", "key.txt", "It comes from a store"},
		"the name of one":    {filepath.Join(dir, name), "", "It has the name of a backup"},
		"the key of backups": {filepath.Join(dir, "prod.db"), "key.txt", "--identity is for a backup"},
	} {
		o := SourceOptions{Identity: c.identity}
		_, err := (&Workspace{}).OpenSource(t.Context(), c.from, o)
		var config *engine.ConfigError
		if !errors.As(err, &config) || !strings.Contains(err.Error(), c.says) ||
			!strings.Contains(err.Error(), "--allow-unsigned accepts") {
			t.Errorf("%s: got %v, want a mistake of the operator's that says %q", what, err, c.says)
		}
		o.AllowUnsigned = true
		s, err := (&Workspace{}).OpenSource(t.Context(), c.from, o)
		if err != nil {
			t.Errorf("%s, allowed: %v", what, err)
			continue
		}
		if s.origin.From != step.BareSnapshot || !strings.HasPrefix(s.origin.About, filepath.Base(c.from)+", ") {
			t.Errorf("%s: the plan would say %q", what, s.origin.About)
		}
		s.Close()
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

// newCertificate returns a CA's certificate.
func newCertificate(t *testing.T) []byte {
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
