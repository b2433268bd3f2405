package backup_test

import (
	"archive/tar"
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"

	"kubeone/internal/etcd/backup"
	"kubeone/internal/etcd/snapshot"
	"kubeone/internal/testutil/snapshottest"
)

const secretText = "VERY SECRET"

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func identity(t *testing.T) *age.X25519Identity {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// authority returns a CA's certificate and key in kubeadm's format.
func authority(t *testing.T, key crypto.Signer) (certificate, private []byte) {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "kubernetes"},
		NotAfter:     noon,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	kind := "PRIVATE KEY"
	switch key := key.(type) {
	case *rsa.PrivateKey:
		text, kind = x509.MarshalPKCS1PrivateKey(key), "RSA PRIVATE KEY"
	case *ecdsa.PrivateKey:
		if text, err = x509.MarshalECPrivateKey(key); err != nil {
			t.Fatal(err)
		}
		kind = "EC PRIVATE KEY"
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: text})
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// content returns the content of a cluster with encryption at rest.
func content(t *testing.T) backup.Content {
	t.Helper()
	taken := snapshottest.Bytes(t, snapshottest.Content{ClusterID: "uid-1", Keys: 20, Padding: 9000})
	info, err := snapshot.VerifyReader(bytes.NewReader(taken))
	if err != nil {
		t.Fatal(err)
	}
	pki := map[string][]byte{}
	for _, name := range backup.PKINames() {
		pki[name] = []byte(secretText + " " + name)
	}
	pki["ca.crt"], pki["ca.key"] = authority(t, newKey(t))
	return backup.Content{
		Cluster: "prod", CreatedBy: "me@here", KubernetesVersion: "1.36.3", EtcdVersion: "3.6.8", Created: noon,
		Keys: backup.Keys{
			PKI:            pki,
			Encryption:     []byte(secretText + " aescbc"),
			EncryptionPath: "/etc/kubernetes/encryption.yaml",
		},
		Manifest: []byte("name: prod\n"), Snapshot: bytes.NewReader(taken), Info: info,
	}
}

// written returns the path of a file with a backup.
func written(t *testing.T, c backup.Content, recipients ...age.Recipient) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), backup.FileName(c.Cluster, c.Created))
	err := backup.WriteFile(path, func(w io.Writer) error {
		_, err := backup.Write(w, c, recipients)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestABackupGivesEverythingBack(t *testing.T) {
	t.Parallel()
	c, one, two := content(t), identity(t), identity(t)
	path := written(t, c, one.Recipient(), two.Recipient())
	for _, id := range []age.Identity{one, two} {
		a, err := backup.Open(path, identity(t), id)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Verify(t.Context()); err != nil {
			t.Error(err)
		}
		for _, name := range backup.PKINames() {
			if got, err := a.Read(backup.PKIDir + name); err != nil || !bytes.Equal(got, c.Keys.PKI[name]) {
				t.Errorf("%s is %q, %v", name, got, err)
			}
		}
		if got, err := a.Manifest(); err != nil || string(got) != "name: prod\n" {
			t.Errorf("manifest %q, %v", got, err)
		}
		if got, at, err := a.Encryption(); err != nil || at != c.Keys.EncryptionPath ||
			!bytes.Equal(got, c.Keys.Encryption) {
			t.Errorf("encryption %q at %q, %v", got, at, err)
		}
		if got := tarNames(t, a); cmp.Diff(backup.PKINames(), got) != "" {
			t.Errorf("the tar of the PKI has %q", got)
		}
		if diff := cmp.Diff(c.Info, a.Metadata.Snapshot); diff != "" {
			t.Error(diff)
		}
		if a.Metadata.ClusterID != "uid-1" || !strings.HasPrefix(a.Metadata.CAHash, "sha256:") ||
			len(a.Metadata.Parts) != 11 {
			t.Errorf("metadata %+v", a.Metadata)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}

func tarNames(t *testing.T, a *backup.Archive) []string {
	t.Helper()
	pki, err := a.PKI()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for r := tar.NewReader(bytes.NewReader(pki)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, header.Name)
	}
}

func TestTheFileShowsNothing(t *testing.T) {
	t.Parallel()
	path := written(t, content(t), identity(t).Recipient())
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{secretText, "prod", "registry", "metadata"} {
		if bytes.Contains(text, []byte(bad)) {
			t.Errorf("the file has %q in it", bad)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestEachKindOfBadBackupHasItsOwnError(t *testing.T) {
	t.Parallel()
	id := identity(t)
	whole, err := os.ReadFile(written(t, content(t), id.Recipient()))
	if err != nil {
		t.Fatal(err)
	}
	flipped := func(i int) []byte {
		out := append([]byte{}, whole...)
		out[i] ^= 1
		return out
	}
	var foreign bytes.Buffer
	w, err := age.Encrypt(&foreign, id.Recipient())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = w.Write(make([]byte, 4096))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		content []byte
		id      age.Identity
		want    []error // any of these
	}{
		"another's key":              {whole, identity(t), []error{backup.ErrWrongIdentity}},
		"empty":                      {nil, id, []error{backup.ErrNotBackup}},
		"a text":                     {[]byte("hello\n"), id, []error{backup.ErrNotBackup}},
		"encrypted, no backup":       {foreign.Bytes(), id, []error{backup.ErrNotBackup}},
		"its last byte is missing":   {whole[:len(whole)-1], id, []error{backup.ErrTruncated, backup.ErrAltered}},
		"half":                       {whole[:len(whole)/2], id, []error{backup.ErrTruncated, backup.ErrAltered}},
		"its beginning only":         {whole[:100], id, []error{backup.ErrTruncated}},
		"five bytes":                 {whole[:5], id, []error{backup.ErrTruncated}},
		"a byte in the middle":       {flipped(len(whole) / 2), id, []error{backup.ErrAltered}},
		"a byte at the end":          {flipped(len(whole) - 1), id, []error{backup.ErrAltered}},
		"a byte of the key exchange": {flipped(80), id, []error{backup.ErrWrongIdentity, backup.ErrAltered}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "backup")
			if err := os.WriteFile(path, test.content, 0o600); err != nil {
				t.Fatal(err)
			}
			a, err := backup.Open(path, test.id)
			if err == nil {
				err = a.Verify(t.Context())
				_ = a.Close()
			}
			found := false
			for _, want := range test.want {
				found = found || errors.Is(err, want)
			}
			if !found || !strings.Contains(err.Error(), path) {
				t.Errorf("error %v, want one of %v", err, test.want)
			}
		})
	}
}

func TestVerifyComparesTheSnapshotWithTheMetadata(t *testing.T) {
	t.Parallel()
	c, id := content(t), identity(t)
	c.Info.Keys++
	a, err := backup.Open(written(t, c, id.Recipient()), id)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Close() }()
	if err := a.Verify(t.Context()); !errors.Is(err, backup.ErrAltered) {
		t.Errorf("error %v", err)
	}
}

func TestNothingIsWrittenWithoutARecipientOrAKey(t *testing.T) {
	t.Parallel()
	if _, err := backup.Write(io.Discard, content(t), nil); !errors.Is(err, backup.ErrNoRecipient) {
		t.Errorf("without a recipient: %v", err)
	}
	for _, missing := range backup.PKINames()[1:] {
		c := content(t)
		delete(c.Keys.PKI, missing)
		var out bytes.Buffer
		if _, err := backup.Write(&out, c, []age.Recipient{identity(t).Recipient()}); !errors.Is(err,
			backup.ErrIncomplete) || out.Len() > 0 {
			t.Errorf("without %s: %v, %d bytes written", missing, err, out.Len())
		}
	}
}

func TestRecipientsAndIdentities(t *testing.T) {
	t.Parallel()
	id := identity(t)
	got, err := backup.ParseRecipients([]string{id.Recipient().String(), id.Recipient().String()})
	if err != nil || len(got) != 1 {
		t.Errorf("%d recipients, %v", len(got), err)
	}
	for _, bad := range []string{id.String(), "age1nonsense", "ssh-ed25519 AAAA"} {
		if _, err := backup.ParseRecipients([]string{bad}); err == nil || strings.Contains(err.Error(), "SECRET-KEY") {
			t.Errorf("%.10s…: error %v", bad, err)
		}
	}
	if _, err := backup.ParseRecipients(nil); !errors.Is(err, backup.ErrNoRecipient) {
		t.Errorf("none: %v", err)
	}
	path := filepath.Join(t.TempDir(), "key")
	for text, ok := range map[string]bool{
		"# a comment\n" + id.String() + "\n":                true,
		strings.Replace(id.String(), "1Q", "1P", 1) + "x\n": false,
		"age-encryption.org/v1\n":                           false,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := backup.ReadIdentities(path)
		if (err == nil) != ok || err != nil && strings.Contains(err.Error(), "SECRET-KEY-1") {
			t.Errorf("error %v", err)
		}
	}
}

func TestKeysNeverShow(t *testing.T) {
	t.Parallel()
	c := content(t)
	text, err := json.Marshal(c.Keys)
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		text = fmt.Appendf(text, format+format, c.Keys, &c.Keys)
	}
	if strings.Contains(string(text), secretText) || strings.Contains(string(text), fmt.Sprintf("%x", secretText)) {
		t.Errorf("the keys show in %s", text)
	}
}

// An old backup has a valid signature too, so its name must not make it look newer.
func TestABackupIsNotTakenForOneOfAnotherTime(t *testing.T) {
	t.Parallel()
	id := identity(t)
	path := written(t, content(t), id.Recipient()) // at noon
	for name, ok := range map[string]bool{
		backup.FileName("prod", noon):                                             true,
		backup.FileName("prod", noon.Add(-30*time.Minute)):                        true, // its hosts were slow
		"a-copy.tar.age":                                                          true,
		backup.FileName("prod", noon.Add(24*time.Hour)):                           false,
		backup.FileName("prod", noon.Add(time.Hour)):                              false,
		backup.FileName("prod", noon.Add(-24*time.Hour)):                          false,
		backup.FileName("staging", noon.Add(24*time.Hour)):                        false,
		backup.FileName("prod", noon.Add(24*time.Hour)) + ".1":                    false,
		"prod-20260301T120000Z-" + backup.FileName("new", noon.Add(24*time.Hour)): false,
		strings.Replace(backup.FileName("prod", noon), "0301", "0399", 1):         false,
	} {
		renamed := filepath.Join(t.TempDir(), name)
		if err := os.Link(path, renamed); err != nil {
			t.Fatal(err)
		}
		a, err := backup.Open(renamed, id)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Verify(t.Context()); ok && err != nil || !ok && !errors.Is(err, backup.ErrTimeMismatch) {
			t.Errorf("%s: error %v", name, err)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestFileNames(t *testing.T) {
	t.Parallel()
	name := backup.FileName("prod", noon)
	if at, ok := backup.ParseFileName("prod", name); !ok || !at.Equal(noon) {
		t.Errorf("%s is of %v, %v", name, at, ok)
	}
	for _, other := range []string{
		"prod-eu-20260301T120000Z.tar.age", "prod-20260301T120000Z.tar", "prod-x.tar.age", "notes.txt",
	} {
		if _, ok := backup.ParseFileName("prod", other); ok {
			t.Errorf("%s is one of prod's", other)
		}
	}
}
