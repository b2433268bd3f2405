package workspace

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kubeone/internal/probe"
)

func TestTheKnownCAIsKeptInAFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "alpha", "ca")
	open := func(certificate string) *knownCA {
		t.Helper()
		k, err := openKnownCA(path, certificate)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	if k := open(""); k.CA() != "" {
		t.Errorf("the cluster is not known yet: %q", k.CA())
	}
	ca := "sha256:" + strings.Repeat("a1", 32)
	if err := open("").Know(ca); err != nil {
		t.Fatal(err)
	}
	if k := open(""); k.CA() != ca {
		t.Errorf("got %q", k.CA())
	}
	given := certificate(t)
	text, err := os.ReadFile(given) // #nosec G304 -- the test's own
	if err != nil {
		t.Fatal(err)
	}
	k := open(given)
	if want := probe.CAHash(text); k.CA() != want || want == "" {
		t.Errorf("got %q, want %q", k.CA(), want)
	}
	if open("").CA() != ca {
		t.Error("what is only given has been kept before the cluster has answered")
	}
	if err := k.Know(k.CA()); err != nil || open("").CA() != k.CA() {
		t.Errorf("got %q: %v", open("").CA(), err)
	}
	for range 2 {
		if err := k.Know(""); err != nil || open("").CA() != "" {
			t.Errorf("got %q: %v", open("").CA(), err)
		}
	}
}

func TestWhatIsNoCAIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "ca")
	for _, text := range []string{"", "sha256:abc", "sha256:" + strings.Repeat("A1", 32), "trust everybody\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := openKnownCA(path, ""); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v", text, err)
		}
		if _, err := openKnownCA(filepath.Join(dir, "none"), path); err == nil {
			t.Errorf("--ca-file with %q is taken", text)
		}
	}
	if _, err := openKnownCA(path, filepath.Join(dir, "missing")); err == nil {
		t.Error("a missing --ca-file is taken")
	}
}

// certificate writes a file with a CA's certificate.
func certificate(t *testing.T) string {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "ca.crt")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
