package settings

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
)

func TestABundleIsShownByItsFingerprints(t *testing.T) {
	t.Parallel()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "our proxy's CA"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	text := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	got := strings.Split(certificateFingerprints("# ours\n"+text+text), "\n")
	if len(got) != 3 || got[0] != got[1] || !strings.HasPrefix(got[0], "sha256:") || len(got[0]) < 70 ||
		!strings.HasSuffix(got[0], " CN=our proxy's CA") {
		t.Errorf("%q", got)
	}
	for bundle, want := range map[string]string{"": "", "\n": "", "text": "no certificate\n"} {
		if got := certificateFingerprints(bundle); got != want {
			t.Errorf("%q has %q", bundle, got)
		}
	}
}
