//go:build e2e && long

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kubeone/test/lab/components"
	"kubeone/test/lab/fleet"
)

// apiName is the name of the API in the manifest of TestClaimedNames.
const apiName = "api.claims.example.com"

// TestClaimedNames has a worker without a hostname in the manifest claim names of others, like a compromised worker.
// Some Nodes of the cluster have no host in the manifest: one of a Machine, one of a worker that joined otherwise, and
// one of a control-plane host that was left out of the manifest.
func TestClaimedNames(t *testing.T) {
	s := newScenario(t, fleet.Options{
		Name: "claims", ControlPlanes: 2, Workers: 3, SpareWorkers: 1, SSHUser: "ops",
	})
	s.bare = map[string][]string{}
	p := &pool{scenario: s, booted: map[string]bool{}}
	defer func() {
		for _, c := range p.running {
			c.Kill()
		}
	}()
	s.runParts(part{"bare hosts become a cluster", installPlain})
	for _, part := range []struct {
		name string
		run  func(*pool)
	}{
		{"a Machine becomes a Node", (*pool).oneMachine},
		{"a worker claims names, and gets nothing", (*pool).claimNames},
		{"under its own name it is repaired", (*pool).ownName},
	} {
		if !s.runPart(part.name, func(s *scenario) {
			p.scenario = s
			part.run(p)
		}) {
			t.Fatal("each part needs what the one before it left")
		}
	}
}

// oneMachine adds one host to the pool, and creates a Machine.
func (p *pool) oneMachine() {
	p.connectClient()
	spare := p.Lab.Spares()[0]
	p.runCommand(0, []string{
		"host", "add", "-y", "--key-file", p.Lab.Path("id_ed25519"), "--kubeconfig", p.kubeconfigPath(),
		"--labels", "pool=lab", "ops@" + spare.Address,
	}, "Added "+spare.Hostname)
	cache, err := components.DefaultCache()
	p.must(err)
	bundle, err := fleet.Bundle(p.Context(), cache, p.Lab.KubernetesVersion, p.Lab.CNI, nil, p.Logf)
	p.must(err)
	p.bundles = []string{"--bundle", bundle}
	p.startControllers("controller")
	path := filepath.Join(p.Dir, "deployment.yaml")
	text := strings.Replace(fmt.Sprintf(deployment, p.Lab.KubernetesVersion), "replicas: 3", "replicas: 1", 1)
	p.must(os.WriteFile(path, []byte(text), 0o600))
	p.eventually("the kinds are defined", time.Minute, func(ctx context.Context) error {
		_, err := p.Kube(ctx, "get", "machinedeployments", "-A")
		return err
	})
	p.runKubectl("apply", "-f", path)
	p.awaitReady(1, p.Lab.KubernetesVersion, 5*time.Minute)
}

// unnamedManifest returns the manifest without cp-2 and worker-3, whose Nodes stay, and without the hostname of
// worker-1.
func (p *pool) unnamedManifest() string {
	p.Helper()
	manifest, err := p.Variant("unnamed", editSections(func(controlPlane, workers []any) ([]any, []any) {
		delete(workers[0].(map[string]any), "hostname")
		return controlPlane[:1], workers[:2]
	}), editFields(func(all map[string]any) {
		all["apiEndpoint"].(map[string]any)["alternativeNames"] = []any{apiName}
	}))
	p.must(err)
	return manifest
}

// claimNames has worker-1 request new credentials under other names, while a plan has work on worker-2.
func (p *pool) claimNames() {
	manifest, liar, other := p.unnamedManifest(), p.Lab.Host("worker-1"), p.Lab.Host("worker-2")
	p.runCommand(0, []string{"apply", "-y", "-m", manifest})
	for _, name := range []string{
		p.Lab.Spares()[0].Hostname, "worker-3", "cp-2", apiName, "kubernetes.default.svc",
	} {
		before := p.readIdentities(name)
		p.breakHost(liar, "hostname "+name+" && rm -f /etc/kubernetes/kubelet.conf /var/lib/kubelet/pki/*")
		p.breakHost(other, "systemctl stop kubelet")
		plan := p.runCommand(2, []string{"plan", "-m", manifest}, "reports the name \""+name+"\", which is")
		for line := range strings.Lines(plan.Stdout) {
			if strings.HasPrefix(line, name+" ") || strings.HasPrefix(line, name+":") {
				p.Errorf("the plan calls a host by a claimed name: %s", line)
			}
		}
		p.runCommand(10, []string{"apply", "-y", "-m", manifest}, "reports the name \""+name+"\", which is",
			liar.Address)
		p.checkEqual("who is "+name, before, p.readIdentities(name))
		if _, err := other.Exec(p.Context(), "systemctl is-active kubelet"); err != nil {
			p.Errorf("as %s: the kubelet of worker-2 does not run: %v", name, err)
		}
		if _, err := liar.Exec(p.Context(),
			"! test -e /etc/kubernetes/kubelet.conf && ! ls /var/lib/kubelet/pki/*.pem"); err != nil {
			p.Errorf("as %s: worker-1 has credentials: %v", name, err)
		}
	}
}

// readIdentities returns the addresses of a Node, and the number of approved certificate requests in its name.
func (p *pool) readIdentities(name string) string {
	p.Helper()
	address := "no Node"
	node := &corev1.Node{}
	switch err := p.Get(p.Context(), client.ObjectKey{Name: name}, node); {
	case err == nil:
		address = ""
		for _, a := range node.Status.Addresses {
			address += string(a.Type) + " " + a.Address + ", "
		}
	case client.IgnoreNotFound(err) != nil:
		p.Fatal(err)
	}
	approved := p.runKubectl("get", "csr", "-o",
		`jsonpath={range .items[?(@.status.certificate)]}{.metadata.name}{"\n"}{end}`)
	tokens := p.runKubectl("-n", "kube-system", "get", "secrets", "--field-selector",
		"type=bootstrap.kubernetes.io/token",
		"-o", "name")
	return fmt.Sprintf("%s; %d requests approved; tokens: %s", address, strings.Count(approved, "\n"), tokens)
}

// ownName gives worker-1 its name back.
func (p *pool) ownName() {
	manifest := p.unnamedManifest()
	p.breakHost(p.Lab.Host("worker-1"), "hostname worker-1")
	p.runCommand(0, []string{"apply", "-y", "-m", manifest}, "The cluster matches the manifest")
	p.eventually("worker-1 is Ready", time.Minute, func(ctx context.Context) error {
		ready, err := p.Kube(ctx, "get", "node", "worker-1", "-o",
			`jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
		if err == nil && strings.TrimSpace(ready) != "True" {
			err = errors.New("it is not Ready: " + ready)
		}
		return err
	})
}
