//go:build e2e && long

package e2e

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"
	"time"

	"kubeone/internal/apply"
	"kubeone/internal/keys/authority"
	"kubeone/internal/model/observed"
	"kubeone/test/lab/fleet"
)

// TestRotateCA rotates the keys of etcd, the front proxy and service accounts under load, with a failure in each phase.
// Then it rotates the key of service accounts while a worker is away, and replaces a host. After each step it checks
// the keys on the hosts, all signatures, and the tokens of pods and Secrets.
func TestRotateCA(t *testing.T) {
	t.Parallel()
	s := newScenario(t, fleet.Options{Name: "rotation", ControlPlanes: 3, Workers: 2})
	s.bare = map[string][]string{}
	var before keys
	s.runParts(
		part{"bare hosts become a cluster", installPlain},
		part{"a token stands in a Secret", func(s *scenario) {
			_, err := s.Feed(s.Context(), tokenSecret, "create", "-f", "-")
			s.must(err)
			before = s.readKeys()
		}},
		part{"all keys are rotated, killed once in each phase", func(s *scenario) {
			before = rotatedUnderLoad(s, before)
		}},
		part{"a worker is away", func(s *scenario) { before = rotatedWhileAway(s, before) }},
		part{"a host joins anew with the new keys", func(s *scenario) {
			s.runCommand(0, []string{"node", "replace", "cp-3", "-y", "--bundle", s.Bundle})
			s.checkEqual("keys", before, s.readKeys())
			s.tokensWork()
			emptyPlan(s)
			s.awaitHealthy()
		}},
	)
}

const tokenSecret = `apiVersion: v1
kind: ServiceAccount
metadata: {name: robot, namespace: default}
---
apiVersion: v1
kind: Secret
metadata:
  name: robot
  namespace: default
  annotations: {kubernetes.io/service-account.name: robot}
type: kubernetes.io/service-account-token
`

// keys are the trusted keys on all control-plane hosts, by authority.
type keys map[string]string

// readKeys checks that all hosts trust the same key for each authority, that it has signed all certificates of the
// authority, and returns it.
func (s *scenario) readKeys() keys {
	s.Helper()
	out := keys{}
	for _, h := range s.Lab.ControlPlanes() {
		text, err := h.Exec(s.Context(), `cd /etc/kubernetes/pki
[ ! -e next ] && [ ! -e /etc/kubeone/rotation ] || echo 'left over!'
for file in sa.pub *.crt etcd/*.crt; do echo "$file $(base64 -w 0 $file)"; done`)
		s.must(err)
		files := map[string][]byte{}
		for line := range strings.Lines(text) {
			name, encoded, _ := strings.Cut(strings.TrimSpace(line), " ")
			files[name], err = base64.StdEncoding.DecodeString(encoded)
			if err != nil {
				s.Fatalf("%s: %s", h.Hostname, line)
			}
		}
		for _, name := range observed.Authorities() {
			trusted := authority.Keys(files[authority.FilesOf(name).Public])
			if len(trusted) != 1 || out[name] != "" && out[name] != trusted[0] {
				s.Fatalf("%s trusts %v for %s, another host %s", h.Hostname, trusted, name, out[name])
			}
			out[name] = trusted[0]
		}
		for ca, signed := range map[string][]string{
			"ca.crt":             {"apiserver.crt", "apiserver-kubelet-client.crt"},
			"front-proxy-ca.crt": {"front-proxy-client.crt"},
			"etcd/ca.crt": {
				"apiserver-etcd-client.crt", "etcd/server.crt", "etcd/peer.crt", "etcd/healthcheck-client.crt",
			},
		} {
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(files[ca])
			for _, file := range signed {
				block, _ := pem.Decode(files[file])
				c, err := x509.ParseCertificate(block.Bytes)
				s.must(err)
				if _, err := c.Verify(x509.VerifyOptions{
					Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
				}); err != nil {
					s.Errorf("%s: %s: %v", h.Hostname, file, err)
				}
			}
		}
	}
	s.eventually("extension API servers trust one CA alone", time.Minute, func(ctx context.Context) error {
		for key, name := range map[string]string{
			"client-ca-file": observed.ClusterCA, "requestheader-client-ca-file": observed.FrontProxyCA,
		} {
			told, err := s.Kube(ctx, "-n", "kube-system", "get", "configmap", "extension-apiserver-authentication",
				"-o", "jsonpath={.data."+key+"}")
			if err != nil {
				return err
			}
			if got := authority.Keys([]byte(told)); len(got) != 1 || got[0] != out[name] {
				return fmt.Errorf("%s has %v", key, got)
			}
		}
		return nil
	})
	return out
}

// checkRotated checks that only the named authorities have another key than before.
func (s *scenario) checkRotated(before keys, names ...string) keys {
	s.Helper()
	now := s.readKeys()
	for _, name := range observed.Authorities() {
		rotated := false
		for _, n := range names {
			rotated = rotated || n == name
		}
		if (now[name] != before[name]) != rotated {
			s.Errorf("%s: the key is %s, and was %s", name, now[name], before[name])
		}
	}
	return now
}

// secretToken returns the token in the Secret.
func (s *scenario) secretToken() string {
	s.Helper()
	token, err := s.Kube(s.Context(), "get", "secret", "robot", "-o", "go-template={{.data.token | base64decode}}")
	s.must(err)
	return token
}

// tokensWork sends the tokens of all pods, and the one in the Secret, to each API server.
func (s *scenario) tokensWork() {
	s.Helper()
	for _, server := range s.Lab.ControlPlanes() {
		for _, h := range s.Machines() {
			said, err := h.Exec(s.Context(), `cd /var/lib/kubelet/pods
for token in */volumes/kubernetes.io~projected/*/token; do
[ -f "$token" ] && echo "$(curl -s -k -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $(cat "$token")" \
https://`+server.Address+`:6443/version)"; done | sort | uniq -c`)
			s.must(err)
			if fields := strings.Fields(said); len(fields) != 2 || fields[1] != "200" {
				s.Errorf("%s answers tokens of pods on %s with %q", server.Hostname, h.Hostname, said)
			}
		}
		s.checkAnswer(server, s.secretToken(), "200")
	}
}

// checkAnswer checks the status with which an API server answers a token.
func (s *scenario) checkAnswer(server *fleet.Host, token, status string) {
	s.Helper()
	said, err := server.Exec(s.Context(), `curl -s -k -o /dev/null -w '%{http_code}' -H "Authorization: Bearer `+token+
		`" https://`+server.Address+`:6443/version`)
	s.must(err)
	s.checkEqual("status with which "+server.Hostname+" answers a token", status, said)
}

// killedAt runs the command and kills it at the first event of that type about a step with the prefix.
func (s *scenario) killedAt(event apply.EventType, prefix string, args ...string) {
	s.Helper()
	run, err := s.Start(s.Context(), append([]string{"certificates", "rotate-ca", "-y"}, args...)...)
	s.must(err)
	at, reached := run.Await(func(e apply.Event) bool {
		return e.Type == event && strings.HasPrefix(e.Step, prefix)
	})
	if !reached {
		s.Fatalf("no step %s\n%s", prefix, run.Wait())
	}
	s.must(run.Kill())
	run.Wait()
	s.Logf("killed at %s %s", at.Type, at.Step)
}

func rotatedUnderLoad(s *scenario, before keys) keys {
	former := s.secretToken()
	s.runCommand(2, []string{"certificates", "rotate-ca", "--dry-run"},
		"trust a new key in addition to the present one",
		"renew the tokens of its pods", "trust only the new key")
	l := s.startLoad()
	s.killedAt(apply.StepDone, "rotate-learn/cp-1")
	s.runCommand(0, []string{"plan"}, "the rotation of etcd, front-proxy and service-account is unfinished")
	s.killedAt(apply.StepStarted, "rotate-learn/", "--resume")
	s.killedAt(apply.StepStarted, "rotate-use/", "--resume")
	s.killedAt(apply.StepDone, "rotate-use/cp-2", "--resume")
	s.killedAt(apply.StepStarted, "renew-tokens/", "--resume")
	s.killedAt(apply.StepStarted, "rotate-forget/", "--resume")
	s.runCommand(0, []string{"certificates", "rotate-ca", "--resume", "-y"},
		"Done. Only the new keys are trusted: etcd, front-proxy and service-account.")
	s.endLoad(l)
	now := s.checkRotated(before, observed.EtcdCA, observed.FrontProxyCA, observed.ServiceAccounts)
	s.tokensWork()
	for _, h := range s.Lab.ControlPlanes() {
		s.checkAnswer(h, former, "401")
	}
	s.runCommand(0, []string{"certificates", "rotate-ca", "--resume"}, "No changes.")
	emptyPlan(s)
	s.awaitHealthy()
	return now
}

// rotatedWhileAway rotates the key of service accounts while a worker is off, so that the tokens of its pods are
// unknown.
func rotatedWhileAway(s *scenario, before keys) keys {
	worker := s.Lab.Host("worker-2")
	s.must(worker.Kill(s.Context()))
	args := []string{"certificates", "rotate-ca", "-y"}
	s.runCommand(10, append(args, "--authority", "service-account"), "unknown for worker-2")
	s.must(worker.Start(s.Context()))
	s.eventually("worker-2 is Ready", 3*time.Minute, func(ctx context.Context) error {
		if r := s.Run(ctx, "status"); r.Status != 0 {
			return fmt.Errorf("%s", r)
		}
		return nil
	})
	s.runCommand(0, append(args, "--resume"), "Done. Only the new keys are trusted: service-account.")
	now := s.checkRotated(before, observed.ServiceAccounts)
	s.tokensWork()
	return now
}
