package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/model/observed"
)

var made = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// ca returns a CA as kubeadm creates it, valid for a hundred days.
func ca(t *testing.T, name string) (public, key []byte) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: made, NotAfter: made.AddDate(0, 0, 100), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: text})
}

// serviceAccounts returns a pair as kubeadm creates it.
func serviceAccounts(t *testing.T) (public, key []byte) {
	t.Helper()
	_, key = ca(t, "any")
	b, _ := pem.Decode(key)
	k, err := x509.ParseECPrivateKey(b.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalPKIXPublicKey(k.Public())
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: text}), key
}

func TestANewCAIsLikeTheFormerOneAndNotIt(t *testing.T) {
	t.Parallel()
	public, _ := ca(t, "etcd-ca")
	now := made.AddDate(1, 0, 0)
	pair, err := New(now, public)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := pem.Decode(pair.Public.Text())
	c, err := x509.ParseCertificate(b.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if c.Subject.CommonName != "etcd-ca" || !slices.Equal(c.DNSNames, []string{"etcd-ca"}) || !c.IsCA ||
		c.KeyUsage&x509.KeyUsageCertSign == 0 || len(c.SubjectKeyId) == 0 {
		t.Errorf("%+v", c.Subject)
	}
	if !c.NotBefore.Before(now) || !c.NotAfter.Equal(now.AddDate(0, 0, 100)) {
		t.Errorf("valid from %v to %v", c.NotBefore, c.NotAfter)
	}
	if pair.ID() == Keys(public)[0] {
		t.Error("it is the same key")
	}
	again, err := ParsePair(pair.Public.Text(), pair.KeyText())
	if err != nil || again.ID() != pair.ID() {
		t.Errorf("as files: %v, %v", again, err)
	}
}

func TestANewKeyOfServiceAccounts(t *testing.T) {
	t.Parallel()
	public, _ := serviceAccounts(t)
	pair, err := New(made, public)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(pair.Public.Text()), "-----BEGIN PUBLIC KEY-----") ||
		!strings.HasPrefix(string(pair.KeyText()), "-----BEGIN EC PRIVATE KEY-----") {
		t.Errorf("%s", pair.Public.Text())
	}
	if id := TokenKeyID(pair.ID()); len(id) != 43 || strings.ContainsAny(id, "+/=") {
		t.Errorf("tokens name it %q", id)
	}
	for _, bad := range []string{"", "sha256:", "sha256:zz", "md5:" + strings.Repeat("a", 64)} {
		if id := TokenKeyID(bad); id != "" {
			t.Errorf("%q is named %q", bad, id)
		}
	}
}

func TestPublicFiles(t *testing.T) {
	t.Parallel()
	one, _ := ca(t, "a")
	two, _ := ca(t, "a")
	both := append(append([]byte("\n"), one...), two...)
	p, err := ParsePublic(append(slices.Clone(both), one...))
	if err != nil {
		t.Fatal(err)
	}
	a, b := Keys(one)[0], Keys(two)[0]
	if diff := cmp.Diff([]string{a, b}, p.Keys()); diff != "" {
		t.Error(diff)
	}
	turned, err := p.Only(b, a)
	if err != nil || string(turned.Text()) != string(two)+string(one) {
		t.Errorf("%s, %v", turned.Text(), err)
	}
	if _, err := p.Only("sha256:other"); err == nil {
		t.Error("a key that is not there is taken")
	}
	if got := Parse(observed.EtcdCA, both, two, []string{"front-proxy use", "etcd learn", "etcd odd"}); !cmp.Equal(got,
		observed.Authority{Trusted: []string{a, b}, Next: b, BegunPhase: "learn"}) {
		t.Errorf("%+v", got)
	}
	_, key := ca(t, "a")
	block := func(kind string) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: []byte("x")}) }
	for name, text := range map[string][]byte{
		"nothing": nil, "no PEM": []byte("x"), "something behind it": append(slices.Clone(one), 'x'),
		"a private key": key, "half a certificate": block("CERTIFICATE"), "no public key": block("PUBLIC KEY"),
		"too many": slices.Concat(slices.Repeat([][]byte{one}, maxKeys+1)...),
	} {
		if p, err := ParsePublic(text); err == nil || Keys(text) != nil {
			t.Errorf("%s: %v", name, p.Keys())
		}
	}
}

func TestPairs(t *testing.T) {
	t.Parallel()
	public, key := ca(t, "a")
	other, otherKey := ca(t, "a")
	pair, err := ParsePair(append(slices.Clone(public), other...), key)
	if err != nil || !slices.Equal(pair.Public.Keys(), Keys(public)) {
		t.Errorf("%v, %v", pair, err)
	}
	secret := string(key[40:80])
	text, _ := json.Marshal(map[string]any{"a": pair})
	for _, shown := range []string{fmt.Sprint(pair), fmt.Sprintf("%+v %#v %s", pair, pair, pair), string(text)} {
		if strings.Contains(shown, secret) || !strings.Contains(shown, pair.ID()) {
			t.Errorf("it shows %s", shown)
		}
	}
	for name, c := range map[string][2][]byte{
		"another's key": {public, otherKey}, "no key": {public, []byte("x")}, "no certificate": {[]byte("x"), key},
		"a certificate as key": {public, public},
	} {
		if _, err := ParsePair(c[0], c[1]); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
