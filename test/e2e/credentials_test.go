//go:build e2e && long

package e2e

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"kubeone/internal/plan/step"
	"kubeone/test/e2e/operator"
	"kubeone/test/lab/fleet"
)

const firstPassword, secondPassword = "swordfish-one", "swordfish-two"

// lockedRegistry is a registry on this machine with one user and one valid password at a time.
type lockedRegistry struct {
	address  string
	password atomic.Pointer[string]
	refused  atomic.Int64
}

// lockedRegistry serves the image of the test workload where the lab's hosts reach it, until the part ends.
func (s *scenario) lockedRegistry() *lockedRegistry {
	s.Helper()
	listener, err := (&net.ListenConfig{}).Listen(s.Context(), "tcp", net.JoinHostPort(s.addressOf("1"), "0"))
	s.must(err)
	r := &lockedRegistry{address: listener.Addr().String()}
	r.setPassword(firstPassword)
	images := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := &http.Server{ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			if user, password, _ := request.BasicAuth(); user != "puller" || password != *r.password.Load() {
				r.refused.Add(1)
				w.Header().Set("WWW-Authenticate", `Basic realm="lab"`)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			images.ServeHTTP(w, request)
		})}
	go func() { _ = server.Serve(listener) }()
	s.Cleanup(func() { _ = server.Close() })
	path, err := layout.FromPath(s.Agnhost)
	s.must(err)
	index, err := path.ImageIndex()
	s.must(err)
	contents, err := index.IndexManifest()
	s.must(err)
	image, err := path.Image(contents.Manifests[0].Digest)
	s.must(err)
	ref, err := name.ParseReference(r.imageName(), name.Insecure)
	s.must(err)
	s.must(remote.Write(ref, image, remote.WithContext(s.Context()),
		remote.WithAuth(&authn.Basic{Username: "puller", Password: firstPassword})))
	return r
}

func (r *lockedRegistry) setPassword(password string) { r.password.Store(&password) }

func (r *lockedRegistry) imageName() string { return r.address + "/agnhost:1" }

// mirrorEdit configures hosts to use the registry without TLS.
func (r *lockedRegistry) mirrorEdit() operator.Edit {
	return editFields(func(all map[string]any) {
		all["containerRuntime"] = map[string]any{"containerd": map[string]any{"registries": map[string]any{
			r.address: map[string]any{"mirrors": []any{"http://" + r.address}},
		}}}
	})
}

// credentialsOf writes a file with the registry's credentials, in a place that nowhere does not search.
func (s *scenario) credentialsOf(r *lockedRegistry, password string) string {
	s.Helper()
	path := filepath.Join(s.TempDir(), "credentials.yaml")
	s.must(os.WriteFile(path, fmt.Appendf(nil, `registriesAuth: |
  apiVersion: kubeone.k8c.io/v1beta2
  kind: ContainerRuntimeContainerd
  registries:
    %s:
      auth:
        username: puller
        password: %s
`, r.address, password), 0o600))
	return path
}

// credentialsChange has hosts pull from a registry with the password of a file, with another password, and with none.
// Each plan shows the change, containerd restarts on one host after the other, and no stored file contains the
// password.
func credentialsChange(s *scenario) {
	r := s.lockedRegistry()
	s.must(s.WriteManifest(r.mirrorEdit()))
	before := s.listContainers()
	first := s.credentialsOf(r, firstPassword)
	s.credentialsBrought(r, first, "are uploaded")
	s.checkPulls("first", r.imageName(), s.Members()...)

	r.setPassword(secondPassword)
	second := s.credentialsOf(r, secondPassword)
	s.runCommand(2, []string{"plan", "-v", "--credentials", second}, "registry credentials of "+r.address+" differ")
	s.credentialsBrought(r, second, "differ")
	s.checkPulls("second", r.imageName(), s.Members()...)
	for host, of := range s.listContainers() {
		for line := range strings.Lines(before[host]) {
			if !strings.Contains(of, line) {
				s.Errorf("%s: a container was started anew: %s", host, line)
			}
		}
	}
	s.runCommand(0, []string{"plan"}, "registry credentials of "+r.address+" stay unchanged on")
	s.checkNoSecrets(firstPassword, secondPassword)
}

// credentialsBrought applies a file with credentials, after a plan that shows the change on each host.
func (s *scenario) credentialsBrought(r *lockedRegistry, file, becomes string) {
	s.Helper()
	says := "registry credentials of " + r.address + " " + becomes
	planned := s.runCommand(2, []string{"plan", "-c", file, "-o", "json"}, says)
	if n := strings.Count(planned.Text(), says); n < len(s.Members()) {
		s.Errorf("the plan says %d times that %s, want once for each of %d hosts", n, says, len(s.Members()))
	}
	if !strings.Contains(planned.Text(), string(step.Reconfigure)) {
		s.Errorf("it is no reconfiguration:\n%s", planned)
	}
	s.runCommand(0, []string{"apply", "-y", "-v", "-c", file}, "Done. The cluster matches the manifest.")
	s.runCommand(0, []string{"plan", "-c", file}, "No changes.")
	for _, h := range s.Members() {
		s.breakHost(h, "[ \"$(stat -c %a:%U /etc/containerd/conf.d/kubeone-registry-*.toml)\" = 600:root ]")
	}
}

// checkPulls runs a pod on each of the hosts that must pull its image again.
func (s *scenario) checkPulls(prefix, image string, hosts ...*fleet.Host) {
	s.Helper()
	for _, h := range hosts {
		pod := prefix + "-" + h.Hostname
		s.runKubectl("run", pod, "--image="+image, "--image-pull-policy=Always", "--restart=Never",
			`--overrides={"spec":{"nodeName":"`+h.Hostname+`"}}`, "--command", "--", "/agnhost", "pause")
	}
	for _, h := range hosts {
		pod := prefix + "-" + h.Hostname
		s.eventually(pod+" runs", 2*time.Minute, func(ctx context.Context) error {
			_, err := s.Kube(ctx, "wait", "--for=condition=Ready", "pod/"+pod, "--timeout=10s")
			return err
		})
		s.runKubectl("delete", "pod", pod, "--grace-period=0", "--force")
	}
}

// credentialsEnd uses a file without credentials: hosts lose them, and can no longer pull.
func credentialsEnd(s *scenario) {
	file := filepath.Join(s.TempDir(), "none.yaml")
	s.must(os.WriteFile(file, []byte("{}\n"), 0o600))
	s.runCommand(2, []string{"plan", "-v", "-c", file}, "are removed")
	s.runCommand(0, []string{"apply", "-y", "-c", file}, "Done. The cluster matches the manifest.")
	for _, h := range s.Members() {
		s.breakHost(h, "! ls /etc/containerd/conf.d/kubeone-registry-*.toml 2>/dev/null")
	}
	s.checkNoSecrets(firstPassword, secondPassword)
}

// checkNoSecrets searches for secrets where none may be: the hosts' journals and world-readable files, the operator's
// directory, the cluster record and history, and a support bundle.
func (s *scenario) checkNoSecrets(secrets ...string) {
	s.Helper()
	archive := filepath.Join(s.TempDir(), "support.tar.gz")
	s.runCommand(0, []string{"support", "-f", archive})
	remembered := s.runCommand(0, []string{"history", "-o", "json"}).Text() +
		s.runKubectl("-n", "kube-system", "get", "configmaps,events", "-o", "yaml") +
		s.runKubectl("get", "events", "-o", "yaml")
	for _, secret := range secrets {
		if strings.Contains(remembered, secret) {
			s.Errorf("the cluster or its history remembers %s", secret)
		}
		found, err := operator.OnEach(s.Context(), s.Members(), "journalctl --no-pager -o cat | grep -c "+secret+
			" | grep -v '^0$'; grep -rlF "+secret+" /etc /run/kubeone /var/lib/kubeone /var/log 2>/dev/null | "+
			"grep -v '^/etc/containerd/conf.d/kubeone-registry-'; :")
		s.must(err)
		for host, where := range found {
			if strings.TrimSpace(where) != "" {
				s.Errorf("%s has %s in %s", host, secret, where)
			}
		}
		for _, look := range []string{
			"grep -rlF " + secret + " " + s.Dir, "tar -xzOf " + archive + " | grep -cF " + secret,
		} {
			if where := s.runHere(look); where != "" && where != "0" {
				s.Errorf("%s finds %s", look, where)
			}
		}
	}
}

// runHere returns the output of a shell command on this machine, whatever its status.
func (s *scenario) runHere(command string) string {
	s.Helper()
	out, _ := exec.CommandContext(s.Context(), "sh", "-c", command).Output() // grep without a match has status 1
	return strings.TrimSpace(string(out))
}
