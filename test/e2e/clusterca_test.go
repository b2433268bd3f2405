//go:build e2e && long

package e2e

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"kubeone/internal/apply"
	"kubeone/internal/keys/authority"
	"kubeone/internal/model/observed"
	"kubeone/test/lab/fleet"
)

// TestRotateClusterCA replaces the CA of the cluster under load, with two failures in each phase. It takes the manual
// steps that the command requests; hosts join meanwhile. Then a machine that knows the cluster by the former CA
// connects.
func TestRotateClusterCA(t *testing.T) {
	t.Parallel()
	s := begin(t, fleet.Options{Name: "clusterca", ControlPlanes: 3, Workers: 2})
	s.bare = map[string][]string{}
	var before keys
	var former, pin string
	s.parts(
		part{"bare hosts become a cluster", installPlain},
		part{"what runs in the cluster works", workload},
		part{"everybody learns of the new CA", func(s *scenario) {
			before, pin, former = s.keys(), s.pin(), s.adminConf()
			s.caLearnt()
		}},
		part{"a worker joins meanwhile", func(s *scenario) {
			s.joinsMeanwhile("worker-2")
		}},
		part{"pods that do not know it are named, and start anew", (*scenario).podsAnew},
		part{"the new CA signs", (*scenario).caUsed},
		part{"a control-plane host joins meanwhile", func(s *scenario) {
			s.joinsMeanwhile("cp-3")
			s.healthy()
		}},
		part{"the former CA is dropped", func(s *scenario) {
			s.caForgotten()
			s.rotated(before, observed.ClusterCA)
			s.refused(former)
		}},
		part{"a machine that knows the former CA follows, and is told of another one", func(s *scenario) {
			now := s.pin()
			s.pinned(pin)
			s.run(0, []string{"plan"}, "No changes")
			s.same("the pinned CA of the cluster", now, s.pin())
			s.pinned("sha256:" + strings.Repeat("0", 64))
			s.run(15, []string{"plan"}, "another machine is impersonating the cluster")
			s.pinned(now)
			s.healthy()
		}},
	)
}

func (s *scenario) pinFile() string { return filepath.Join(s.Dir, "state", s.Lab.Name, "ca") }

// pin returns the CA that identifies the cluster on this machine.
func (s *scenario) pin() string {
	s.Helper()
	text, err := os.ReadFile(s.pinFile())
	s.must(err)
	return strings.TrimSpace(string(text))
}

func (s *scenario) pinned(ca string) {
	s.Helper()
	s.must(os.WriteFile(s.pinFile(), []byte(ca+"\n"), 0o600))
}

// adminConf returns a copy of the administrator's current kubeconfig.
func (s *scenario) adminConf() string {
	s.Helper()
	text, err := os.ReadFile(filepath.Join(s.Dir, "admin.conf"))
	s.must(err)
	path := filepath.Join(s.Dir, "former.conf")
	s.must(os.WriteFile(path, text, 0o600))
	return path
}

// joinsMeanwhile has a host join again, and checks that it trusts both CAs.
func (s *scenario) joinsMeanwhile(name string) {
	s.Helper()
	s.run(0, []string{"node", "replace", name, "-y", "--bundle", s.Bundle})
	h := s.Lab.Host(name)
	s.same("CAs that "+name+" trusts", 2, len(s.caOf(h)))
	s.must(s.ImportAgnhost(s.Context(), []*fleet.Host{h}))
}

func (s *scenario) caLearnt() {
	s.run(2, []string{"certificates", "rotate-ca", "--authority", "cluster", "--dry-run"},
		"trust a new key beside the present one: the cluster's CA", "start pods anew")
	l := s.loaded()
	s.killedAt(apply.StepDone, "rotate-learn/cp-1", "--authority", "cluster")
	s.run(0, []string{"plan"}, "rotation of cluster has begun")
	s.killedAt(apply.StepStarted, "learn-ca/", "--resume")
	s.run(10, []string{"certificates", "rotate-ca", "--resume", "-y"}, "start pods anew")
	s.unharmed(l)
	s.healthy()
	for _, h := range s.Machines() {
		s.same("CAs that "+h.Hostname+" trusts", 2, len(s.caOf(h)))
	}
}

// caOf returns the CAs that a host's kubelet trusts for its clients. It trusts the same CAs when it dials.
func (s *scenario) caOf(h *fleet.Host) []string {
	s.Helper()
	text, err := h.Exec(s.Context(), `base64 -w 0 /etc/kubernetes/pki/ca.crt; echo
sed -n 's/^ *certificate-authority-data: //p' /etc/kubernetes/kubelet.conf`)
	s.must(err)
	var out []string
	for line := range strings.Lines(text) {
		pem, err := base64.StdEncoding.DecodeString(strings.TrimSpace(line))
		s.must(err)
		has := authority.Keys(pem)
		if out != nil {
			s.same("CAs in kubelet.conf of "+h.Hostname, out, has)
		}
		out = has
	}
	return out
}

// podsAnew checks that the command lists the pods that started before they could know the new CA, and restarts all
// pods.
func (s *scenario) podsAnew() {
	s.run(10, []string{"certificates", "rotate-ca", "--resume", "-y"},
		"default/web-", "kube-flannel/kube-flannel-ds-", "kubectl rollout restart")
	s.healthy()
	for namespace, selector := range map[string]string{
		"kube-system": "k8s-app in (kube-dns, kube-proxy)", "kube-flannel": "app=flannel", "default": "app",
	} {
		s.kube("-n", namespace, "delete", "pods", "-l", selector, "--grace-period=1", "--wait=false")
	}
	s.eventually("pods to run again", 5*time.Minute, func(ctx context.Context) error {
		const each = `{range .items[*]}{.metadata.name}{" "}{.status.containerStatuses[*].ready}{"\n"}{end}`
		text, err := s.Kube(ctx, "get", "pods", "-A", "-o", "jsonpath="+each)
		if err != nil {
			return err
		}
		for line := range strings.Lines(text) {
			if !strings.HasSuffix(line, " true\n") || strings.Contains(line, "false") {
				return fmt.Errorf("pod %s", line)
			}
		}
		return nil
	})
	s.healthy()
}

func (s *scenario) caUsed() {
	s.must(s.FetchKubeconfig(s.Context()))
	l := s.loaded()
	s.killedAt(apply.StepStarted, "rotate-use/", "--resume")
	s.killedAt(apply.StepStarted, "rotate-use/cp-2", "--resume") // cp-3 is left: the next run reports that
	s.run(10, []string{"certificates", "rotate-ca", "--resume", "-y"}, "give people kubeconfigs once more")
	s.unharmed(l)
	s.healthy()
}

func (s *scenario) caForgotten() {
	s.must(s.FetchKubeconfig(s.Context()))
	l := s.loaded()
	s.killedAt(apply.StepStarted, "regenerate/", "--resume")
	s.killedAt(apply.StepStarted, "forget-ca/", "--resume")
	s.killedAt(apply.StepStarted, "rotate-forget/", "--resume")
	s.run(0, []string{"certificates", "rotate-ca", "--resume", "-y"},
		"Done. New keys sign, and are trusted alone: cluster.")
	s.unharmed(l)
	s.must(s.FetchKubeconfig(s.Context()))
	for _, h := range s.Machines() {
		s.same("CAs that "+h.Hostname+" trusts", 1, len(s.caOf(h)))
	}
	s.run(0, []string{"certificates", "rotate-ca", "--resume"}, "No changes.")
	emptyPlan(s)
	s.healthy()
	proxies := strings.Fields(s.kube("-n", "kube-system", "get", "pods", "-l", "k8s-app=kube-proxy", "-o", "name"))
	s.eventually("API servers to believe what kubelets show", time.Minute, func(ctx context.Context) error {
		for _, name := range proxies {
			if _, err := s.Kube(ctx, "-n", "kube-system", "logs", "--tail", "1", name); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	})
}

// refused checks that API servers reject a kubeconfig's certificate.
func (s *scenario) refused(kubeconfig string) {
	s.Helper()
	was, err := clientcmd.LoadFromFile(kubeconfig)
	s.must(err)
	is, err := clientcmd.LoadFromFile(filepath.Join(s.Dir, "admin.conf"))
	s.must(err)
	for name, c := range was.Clusters {
		c.CertificateAuthorityData = is.Clusters[name].CertificateAuthorityData
	}
	s.must(clientcmd.WriteToFile(*was, kubeconfig))
	out, err := s.Kube(s.Context(), "--kubeconfig", kubeconfig, "get", "nodes", "--request-timeout=10s")
	if err == nil {
		err = errors.New(out)
	}
	if !strings.Contains(err.Error(), "logged in") && !strings.Contains(err.Error(), "nauthorized") {
		s.Errorf("a certificate of the former CA: %v", err)
	}
}
