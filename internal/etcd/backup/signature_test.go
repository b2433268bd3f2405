package backup_test

import (
	"archive/tar"
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"filippo.io/age"

	"kubeone/internal/etcd/backup"
	signer "kubeone/internal/keys/authority"
)

// rewritten returns a backup whose parts were changed by someone who can encrypt to its recipients, as anyone can.
func rewritten(t *testing.T, path string, id *age.X25519Identity,
	change func(name string, content []byte) []byte) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	plain, err := age.Decrypt(f, id)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	encrypted, err := age.Encrypt(&out, id.Recipient())
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(encrypted)
	for r := tar.NewReader(plain); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if content = change(header.Name, content); content == nil {
			continue
		}
		header.Size = int64(len(content))
		if err := errors.Join(w.WriteHeader(header), second(w.Write(content))); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), encrypted.Close()); err != nil {
		t.Fatal(err)
	}
	forged := filepath.Join(t.TempDir(), "forged.tar.age")
	if err := os.WriteFile(forged, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return forged
}

func second(_ int, err error) error { return err }

func TestOnlyClusterCASignsBackup(t *testing.T) {
	t.Parallel()
	c, id := content(t), identity(t)
	path := written(t, c, id.Recipient())
	ours, err := backup.CAHash(c.Keys.PKI["ca.crt"])
	if err != nil {
		t.Fatal(err)
	}
	other := content(t)
	theirs, err := backup.CAHash(other.Keys.PKI["ca.crt"])
	if err != nil {
		t.Fatal(err)
	}
	swap := func(part string, with []byte) func(string, []byte) []byte {
		return func(name string, content []byte) []byte {
			if name == part {
				return with
			}
			return content
		}
	}
	changed := func(how func(string, []byte) []byte) string { return rewritten(t, path, id, how) }
	for name, test := range map[string]struct {
		path  string
		known []string
		want  error
	}{
		"ours":                {path, []string{ours}, nil},
		"ours, by one of two": {path, []string{"", theirs, ours}, nil},
		"the CA is unknown":   {path, []string{""}, backup.ErrUnknownCA},
		"of another cluster":  {written(t, other, id.Recipient()), []string{ours}, backup.ErrCAMismatch},
		"without a signature": {changed(swap(backup.SignatureName, nil)), []string{ours}, backup.ErrUnsigned},
		"with one of something": {changed(swap(backup.SignatureName, []byte("x"))), []string{ours},
			backup.ErrForged},
		"with the CA of another": {changed(func(name string, content []byte) []byte {
			if name == backup.PKIDir+"ca.crt" {
				return append(other.Keys.PKI["ca.crt"], '\n') // with another length
			}
			return content
		}), []string{ours}, backup.ErrIncomplete},
		"with a CA of the same length": {changed(func(name string, content []byte) []byte {
			if name == backup.PKIDir+"ca.crt" {
				content[len(content)/2] ^= 1
			}
			return content
		}), []string{ours}, backup.ErrAltered},
		"with altered metadata": {changed(func(name string, content []byte) []byte {
			if name == backup.MetadataName {
				return bytes.Replace(content, []byte("me@here"), []byte("me@hers"), 1)
			}
			return content
		}), []string{ours}, backup.ErrForged},
	} {
		a, err := backup.Open(test.path, id)
		if err == nil {
			err = a.VerifySignature(test.known...)
			_ = a.Close()
		}
		if !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
}

// The CA's key may be of any kind that kubeadm supports.
func TestEveryKindOfCAKeySigns(t *testing.T) {
	t.Parallel()
	long, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []crypto.Signer{long, newKey(t), edwards} {
		c, id := content(t), identity(t)
		c.Keys.PKI["ca.crt"], c.Keys.PKI["ca.key"] = authority(t, key)
		hash, err := backup.CAHash(c.Keys.PKI["ca.crt"])
		if err != nil {
			t.Fatal(err)
		}
		a, err := backup.Open(written(t, c, id.Recipient()), id)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.VerifySignature(hash); err != nil {
			t.Errorf("%T: %v", key, err)
		}
		_ = a.Close()
	}
}

// An operator who knows a former CA accepts a backup signed by its successor, and no other.
func TestABackupOfAClusterWhoseCAWasRotated(t *testing.T) {
	t.Parallel()
	first, _ := authority(t, newKey(t)) // in the format of kubeadm
	former, err := signer.New(noon, first)
	if err != nil {
		t.Fatal(err)
	}
	now, err := signer.New(noon, first)
	if err != nil {
		t.Fatal(err)
	}
	word, err := signer.SignFollower(now, former)
	if err != nil {
		t.Fatal(err)
	}
	c, id := content(t), identity(t)
	c.Keys.PKI["ca.crt"], c.Keys.PKI["ca.key"] = now.Public.Text(), now.KeyText()
	for name, test := range map[string]struct {
		succession []byte
		known      string
		want       error
	}{
		"by the former one":       {signer.AddSuccession(nil, former.Public, word), former.ID(), nil},
		"by the present one":      {signer.AddSuccession(nil, former.Public, word), now.ID(), nil},
		"without a word for it":   {nil, former.ID(), backup.ErrCAMismatch},
		"with a forged signature": {[]byte("x"), former.ID(), backup.ErrCAMismatch},
		"by another one":          {signer.AddSuccession(nil, former.Public, word), "sha256:other", backup.ErrCAMismatch},
	} {
		c.Keys.PKI[backup.SuccessionName] = test.succession
		a, err := backup.Open(written(t, c, id.Recipient()), id)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.VerifySignature(test.known); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", name, err)
		}
		files, err := a.PKI()
		if err != nil || bytes.Contains(files, word) != (len(test.succession) > 1) {
			t.Errorf("%s: what is restored: %v", name, err)
		}
		_ = a.Close()
	}
}

// A recovery writes files from a backup as root.
func TestTheConfigurationOfEncryptionIsWrittenWhereItBelongs(t *testing.T) {
	t.Parallel()
	for path, good := range map[string]bool{
		"/etc/kubernetes/encryption.yaml": true, "/etc/kubernetes/enc/one.yaml": true,
		"/etc/kubernetes/manifests/evil.yaml": false, "/etc/kubernetes/pki/ca.crt": false, "/etc/passwd": false,
		"/etc/kubernetes/../passwd": false, "/etc/kubernetes/admin.conf": false, "etc/kubernetes/x": false,
		"/etc/kubernetes/": false, "/etc/kubernetes/a b": false, "/etc/kubernetes/$(reboot)": false,
		"/etc/kubernetes/a\nb": false, "/etc/kubernetes//x.yaml": false,
	} {
		c, id := content(t), identity(t)
		c.Keys.EncryptionPath = path
		a, err := backup.Open(written(t, c, id.Recipient()), id)
		if err != nil {
			t.Fatal(err)
		}
		if _, at, err := a.Encryption(); (err == nil) != good || good && at != path {
			t.Errorf("%q: %q, %v", path, at, err)
		}
		_ = a.Close()
	}
}
