//go:build e2e && long

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"kubeone/test/lab/fleet"
)

// TestRegistries pulls from every sort of registry that the manifest can describe.
func TestRegistries(t *testing.T) {
	t.Parallel()
	s := newScenario(t, fleet.Options{Name: "registries", ControlPlanes: 1, SSHUser: "ops"})
	s.must(s.WriteManifest())
	s.runParts(
		part{"a bare host becomes a cluster", installPlain},
		part{"images come from registries with any certificate, a known one, and none", registriesOfEverySort},
	)
}

// servedRegistry is one of several registries with the same images.
type servedRegistry struct {
	address string
	asked   atomic.Int64 // requests by clients that trust the certificate
}

func (r *servedRegistry) imageName() string { return r.address + "/agnhost:1" }

// registriesOfEverySort pulls the same image from each registry. Most of them work only once the manifest describes
// them.
func registriesOfEverySort(s *scenario) {
	images := s.filledRegistry()
	known, unknown := s.newAuthority("known"), s.newAuthority("unknown")
	skipped := s.serveRegistry(unknown.newCertificate(s), images)
	trusted := s.serveRegistry(known.newCertificate(s), images)
	plain := s.serveRegistry(nil, images)
	locked := s.serveRegistry(unknown.newCertificate(s), needPassword(images, firstPassword))
	mirrored := s.serveRegistry(known.newCertificate(s), images)
	broken := s.serveRegistry(nil, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "out of order", http.StatusInternalServerError)
	}))

	host := s.Lab.Host("cp-1")
	for _, r := range []*servedRegistry{skipped, trusted, plain, locked, mirrored} {
		s.breakHost(host,
			"! /opt/kubeone/bin/ctr -n k8s.io images pull --hosts-dir /etc/containerd/certs.d "+r.imageName())
	}
	anyCertificate := map[string]any{"insecureSkipVerify": true}
	s.must(s.WriteManifest(editFields(func(all map[string]any) {
		all["certificateAuthority"] = map[string]any{"bundle": known.bundlePEM()}
		all["containerRuntime"] = map[string]any{"containerd": map[string]any{"registries": map[string]any{
			skipped.address:  map[string]any{"tlsConfig": anyCertificate},
			plain.address:    map[string]any{"mirrors": []any{"http://" + plain.address}},
			locked.address:   map[string]any{"tlsConfig": anyCertificate},
			mirrored.address: map[string]any{"mirrors": []any{"http://" + broken.address}},
		}}}
	})))
	credentials := s.credentialsOf(&lockedRegistry{address: locked.address}, firstPassword)
	s.runCommand(0, []string{"apply", "-y", "-c", credentials}, "Done. The cluster matches the manifest.")
	for prefix, r := range map[string]*servedRegistry{
		"any-certificate": skipped, "known-authority": trusted, "plain-http": plain, "password": locked,
		"fallback": mirrored,
	} {
		s.checkPulls(prefix, r.imageName(), host)
		if r.asked.Load() == 0 {
			s.Errorf("%s: nothing was asked of %s", prefix, r.address)
		}
	}
	if broken.asked.Load() == 0 {
		s.Error("the mirror that is out of order was not asked")
	}
	s.runCommand(0, []string{"plan", "-c", credentials}, "No changes.")
	s.checkNoSecrets(firstPassword)
}

// filledRegistry returns a handler: a registry with the test workload's image.
func (s *scenario) filledRegistry() http.Handler {
	s.Helper()
	images := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	filling := s.serveRegistry(nil, images)
	path, err := layout.FromPath(s.Agnhost)
	s.must(err)
	index, err := path.ImageIndex()
	s.must(err)
	contents, err := index.IndexManifest()
	s.must(err)
	image, err := path.Image(contents.Manifests[0].Digest)
	s.must(err)
	ref, err := name.ParseReference(filling.imageName(), name.Insecure)
	s.must(err)
	s.must(remote.Write(ref, image, remote.WithContext(s.Context())))
	return images
}

// serveRegistry listens where the lab's hosts reach it, until the part ends. With a certificate it uses TLS.
func (s *scenario) serveRegistry(certificate *tls.Certificate, handler http.Handler) *servedRegistry {
	s.Helper()
	listener, err := (&net.ListenConfig{}).Listen(s.Context(), "tcp", net.JoinHostPort(s.addressOf("1"), "0"))
	s.must(err)
	r := &servedRegistry{address: listener.Addr().String()}
	if certificate != nil {
		listener = tls.NewListener(listener, &tls.Config{
			Certificates: []tls.Certificate{*certificate}, MinVersion: tls.VersionTLS12,
		})
	}
	server := &http.Server{
		ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			r.asked.Add(1)
			handler.ServeHTTP(w, request)
		}),
	}
	go func() { _ = server.Serve(listener) }()
	s.Cleanup(func() { _ = server.Close() })
	return r
}

// needPassword requires the user puller with the password.
func needPassword(images http.Handler, password string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if user, given, _ := request.BasicAuth(); user != "puller" || given != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="lab"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		images.ServeHTTP(w, request)
	})
}

// registryAuthority signs certificates of registries.
type registryAuthority struct {
	own *x509.Certificate
	key *ecdsa.PrivateKey
}

func (s *scenario) newAuthority(name string) *registryAuthority {
	s.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	s.must(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name + " authority of the lab"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	s.must(err)
	certificate, err := x509.ParseCertificate(der)
	s.must(err)
	return &registryAuthority{own: certificate, key: key}
}

// bundlePEM returns the authority's certificate as PEM.
func (a *registryAuthority) bundlePEM() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.own.Raw}))
}

// newCertificate returns a new certificate for this machine's address in the lab, and for host names.
func (a *registryAuthority) newCertificate(s *scenario, names ...string) *tls.Certificate {
	s.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	s.must(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "registry of the lab"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.ParseIP(s.addressOf("1"))}, DNSNames: names, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.own, key.Public(), a.key)
	s.must(err)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
