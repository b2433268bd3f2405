package probe

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"testing"
	"time"

	"kubeone/internal/host"
	"kubeone/internal/model/observed"
)

// volunteers is a host that prints credentials for its own API and etcd unasked, and before any other host.
func volunteers(api *fakeAPI, approved bool) *fakeHost {
	h := &fakeHost{run: func(_ context.Context, c host.Cmd) (host.Result, error) {
		if c.Secret && !approved {
			return host.Result{ExitCode: -1}, host.ErrNotApproved
		}
		return host.Result{}, answer(c, []string{"kubeone-probe 1", "uid 0", "health apiserver 200", "health etcd 200",
			"manifest /etc/kubernetes/manifests/kube-apiserver.yaml", api.secret(), "access 1", "end 1"})
	}}
	return through(h, api)
}

// TestUnrequestedCredentialsAreIgnored: a worker and a control-plane host with an unapproved key print credentials
// unasked. Nothing uses them, even if no other host answers.
func TestUnrequestedCredentialsAreIgnored(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		controlPlane, approved, alone bool
	}{
		"a worker":                               {approved: true},
		"a worker alone":                         {approved: true, alone: true},
		"a control-plane host before approval":   {controlPlane: true},
		"one before approval that alone answers": {controlPlane: true, alone: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			theirs, ours := newAPI(t, objects), newAPI(t, objects)
			targets := []Target{{ID: "hostile", Host: volunteers(theirs, c.approved), ControlPlane: c.controlPlane}}
			if !c.alone {
				targets = append(targets,
					Target{ID: "a", Host: through(says(nil, ours.secret()), ours), ControlPlane: true})
			}
			r, err := Run(t.Context(), Request{Targets: targets, Now: at})
			if err != nil {
				t.Fatal(err)
			}
			if len(theirs.paths) > 0 {
				t.Errorf("its API was asked for %q", theirs.paths)
			}
			want := observed.Yes
			if c.alone {
				want = observed.Unknown
			}
			if r.World.API.Reached != want || r.World.API.Via == "hostile" ||
				r.Access != nil && (c.alone || len(r.Access.Via) != 1) || r.Etcd != nil {
				t.Errorf("the API is %+v, access %+v", r.World.API, r.Access)
			}
		})
	}
}

// TestAnotherCAIsNotTheClusters: a control-plane host asked for credentials returns those of another cluster.
func TestAnotherCAIsNotTheClusters(t *testing.T) {
	t.Parallel()
	theirs, ours := newAPI(t, objects, selfSigned(t)), newAPI(t, objects)
	targets := []Target{
		{ID: "hostile", Host: volunteers(theirs, true), ControlPlane: true},
		{ID: "a", Host: through(says(nil, ours.secret()), ours), ControlPlane: true},
	}
	first, err := Run(t.Context(), Request{Targets: targets[1:], Now: at})
	if err != nil || first.CA == "" || first.World.API.Reached != observed.Yes {
		t.Fatalf("%v, %+v", err, first.World.API)
	}
	r, err := Run(t.Context(), Request{Targets: targets, Now: at, CA: first.CA})
	if err != nil {
		t.Fatal(err)
	}
	if len(theirs.paths) > 0 || r.World.API.Via != "a" || len(r.Access.Via) != 1 || r.CA != first.CA {
		t.Errorf("its API was asked for %q; the API is %+v, access %+v", theirs.paths, r.World.API, r.Access)
	}
	if ca := r.World.Hosts["hostile"].AdminCA; ca == "" || ca == first.CA || r.World.Hosts["a"].AdminCA != "" {
		t.Errorf("its CA is %q, the other's %q", ca, r.World.Hosts["a"].AdminCA)
	}
	alone, err := Run(t.Context(), Request{Targets: targets[:1], Now: at, CA: first.CA})
	if err != nil || alone.World.API.Reached == observed.Yes || alone.Access != nil || alone.CA != "" {
		t.Errorf("%v, %+v", err, alone.World.API)
	}
}

// selfSigned returns a certificate that is its own CA.
func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"example.com"}, IsCA: true, BasicConstraintsValid: true,
		NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
