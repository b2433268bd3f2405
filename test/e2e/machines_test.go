//go:build e2e && long

package e2e

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/crypto/ssh"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"kubeone/api/cluster/v1alpha1"
	kubeone "kubeone/api/kubeone/v1alpha1"
	"kubeone/internal/apply"
	"kubeone/internal/cluster"
	"kubeone/internal/controllers"
	"kubeone/internal/probe"
	"kubeone/internal/provider"
	provide "kubeone/internal/provider/ssh"
	"kubeone/internal/workspace"
	"kubeone/test/e2e/operator"
	"kubeone/test/lab/fleet"
)

// pool is a cluster with controllers of Machines that work on hosts beside the manifest's.
type pool struct {
	*story
	client.Client
	site *provide.Site
	stop func()
}

// TestMachinesOnHosts has Machines on hosts that exist: they join, are changed in place, up and down, and are returned;
// the controllers are ended in the middle of it.
func TestMachinesOnHosts(t *testing.T) {
	s := begin(t, fleet.Options{Name: "machines", ControlPlanes: 1, SpareWorkers: 2, SSHUser: "ops"})
	s.bare = s.snapshot()
	s.founded()
	p := &pool{story: s}
	p.prepare()
	defer func() { p.stop() }()
	for _, part := range []struct {
		name string
		tell func(*pool)
	}{
		{"two Machines become Nodes", joining},
		{"apply leaves their hosts alone, and refuses them by name", leftAlone},
		{"a kubelet goes down and up in place, and nobody else's does", inPlace},
		{"the controllers end in the middle of it, and others go on", endedInTheMiddle},
		{"a host that is returned is bare, free, and taken again", returned},
		{"a Machine that is gone without having returned its host", orphaned},
	} {
		if !s.chapter(part.name, func(s *story) {
			p.story = s
			part.tell(p)
		}) {
			t.Fatal("each chapter needs what the one before it left")
		}
	}
}

// prepare gives the hosts the cluster's key, and the cluster the definitions and Hosts, and starts controllers.
func (p *pool) prepare() {
	p.Helper()
	log.SetLogger(logr.Discard())
	public, private, err := ed25519.GenerateKey(nil)
	p.must(err)
	signer, err := ssh.NewSignerFromKey(private)
	p.must(err)
	key, err := ssh.NewPublicKey(public)
	p.must(err)
	for _, h := range p.Lab.Spares() {
		_, err := h.Exec(p.Context(), fmt.Sprintf("cat >>~%s/.ssh/authorized_keys <<'E'\n%sE\n", h.SSHUser,
			ssh.MarshalAuthorizedKey(key)))
		p.must(err)
	}
	for _, of := range []string{"cluster", "kubeone"} {
		_, err := p.Kube(p.Context(), "apply", "-f", filepath.Join("../../api", of, "v1alpha1/crds"))
		p.must(err)
	}
	_, err = p.Kube(p.Context(), "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	p.must(err)
	kubeconfig, err := os.ReadFile(filepath.Join(p.Dir, "admin.conf"))
	p.must(err)
	bundles := []string{p.Bundle}
	for _, version := range []string{olderPatch, newest} {
		p.must(p.Want(p.Context(), version))
		bundles = append(bundles, p.Bundle)
	}
	releases, err := workspace.OpenReleases(p.Context(), workspace.Options{Bundles: bundles[:2]}, "")
	p.must(err)
	p.Cleanup(releases.Close)
	access := cluster.Access{Kubeconfig: kubeconfig}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	p.must(err)
	whole := p.story
	p.site = &provide.Site{
		Access: access, CA: probe.CAHash(config.CAData), Releases: releases, Signer: signer,
		Holder: "kubeone-controller@test", Now: time.Now,
		Record: func(e apply.Event) {
			if e.Type == apply.StepDone || e.Type == apply.StepFailed {
				whole.Logf("%s %s %s", e.RunID, e.Type, e.Step)
			}
		},
	}
	p.start()
	for _, h := range p.Lab.Spares() {
		p.must(p.Create(p.Context(), &kubeone.Host{
			ObjectMeta: metav1.ObjectMeta{Name: h.Hostname},
			Spec:       kubeone.HostSpec{Address: h.Address, User: h.SSHUser, HostKeys: h.HostKeys},
		}))
	}
}

// start starts controllers.
func (p *pool) start() {
	p.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(p.site.Access.Kubeconfig)
	p.must(err)
	scheme, err := controllers.Scheme()
	p.must(err)
	p.Client, err = client.New(config, client.Options{Scheme: scheme})
	p.must(err)
	m, err := manager.New(config, manager.Options{Scheme: scheme, Metrics: metrics.Options{BindAddress: "0"}})
	p.must(err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(p.Context()))
	hosts := provide.New(ctx, m.GetClient(), m.GetAPIReader(), p.site)
	p.must(hosts.AddTo(m, true))
	p.must(controllers.Add(ctx, m, provider.Set{provide.Name: hosts}, controllers.Options{SkipNameValidation: true}))
	done := make(chan error, 1)
	go func() { done <- m.Start(ctx) }()
	p.stop = sync.OnceFunc(func() {
		cancel()
		hosts.Wait()
		if err := <-done; err != nil {
			p.Errorf("the controllers end: %v", err)
		}
	})
}

func machineOn(name, host, kubelet string) *v1alpha1.Machine {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name}}
	m.Spec.ProviderSpec.Value.CloudProvider = provide.Name
	m.Spec.Versions.Kubelet = kubelet
	if host != "" {
		text, _ := json.Marshal(provide.Config{Host: host})
		m.Spec.ProviderSpec.Value.CloudProviderSpec = &runtime.RawExtension{Raw: text}
	}
	return m
}

// runs waits until a Machine is a ready Node of that version on the host.
func (p *pool) runs(name, host, kubelet string, limit time.Duration) {
	p.Helper()
	began := time.Now()
	p.eventually(name+" runs "+kubelet, limit, func(ctx context.Context) error {
		m := &v1alpha1.Machine{}
		if err := p.Get(ctx, client.ObjectKey{Namespace: "kube-system", Name: name}, m); err != nil {
			return err
		}
		s := m.Status
		if s.Phase != v1alpha1.Running || s.NodeRef == nil || s.NodeRef.Name != host || s.Versions == nil ||
			s.Versions.Kubelet != kubelet || s.ObservedGeneration != m.Generation {
			text, _ := json.Marshal(s)
			return fmt.Errorf("%s", text)
		}
		return nil
	})
	p.Logf("%5.1f s  Machine %s is a Node of %s", time.Since(began).Seconds(), name, kubelet)
	_, err := p.Kube(p.Context(), "wait", "--for", "condition=Ready", "node/"+host, "--timeout", "60s")
	p.must(err)
}

func joining(p *pool) {
	for i, h := range p.Lab.Spares() {
		p.must(p.Create(p.Context(), machineOn(fmt.Sprintf("m-%d", i+1), h.Hostname, newest)))
	}
	for i, h := range p.Lab.Spares() {
		p.runs(fmt.Sprintf("m-%d", i+1), h.Hostname, newest, 5*time.Minute)
	}
}

func leftAlone(p *pool) {
	p.nothingToDo()
	h := p.Lab.Spares()[0]
	p.must(p.Lab.SetSpare(p.Context(), h, false))
	p.must(p.WriteManifest())
	p.run(2, []string{"plan"}, "the host belongs to Machine kube-system/m-1")
	p.run(15, []string{"reset", "-y", "--host", h.Hostname}, "kubectl -n kube-system delete machine m-1 returns it")
	p.must(p.Lab.SetSpare(p.Context(), h, true))
	p.must(p.WriteManifest())
	p.nothingToDo()
}

// kubelets says since when the kubelets of hosts run.
func (p *pool) kubelets(hosts ...*fleet.Host) map[string]string {
	p.Helper()
	out, err := operator.OnEach(p.Context(), hosts,
		"systemctl show -p ActiveEnterTimestampMonotonic kubelet containerd")
	p.must(err)
	return out
}

// wants changes the kubelet that a Machine wants.
func (p *pool) wants(name, kubelet string) {
	p.Helper()
	m := &v1alpha1.Machine{}
	p.must(p.Get(p.Context(), client.ObjectKey{Namespace: "kube-system", Name: name}, m))
	before := m.DeepCopy()
	m.Spec.Versions.Kubelet = kubelet
	p.must(p.Patch(p.Context(), m, client.MergeFrom(before)))
}

func inPlace(p *pool) {
	spares := p.Lab.Spares()
	others := append([]*fleet.Host{spares[1]}, p.Lab.ControlPlanes()...)
	before := p.kubelets(others...)
	for _, version := range []string{olderPatch, newest} {
		p.wants("m-1", version)
		p.runs("m-1", spares[0].Hostname, version, 3*time.Minute)
	}
	p.same("since when kubelets and containerds of others run", before, p.kubelets(others...))
}

func endedInTheMiddle(p *pool) {
	h := p.Lab.Spares()[0]
	p.wants("m-1", olderPatch)
	p.eventually("the change has begun", time.Minute, func(ctx context.Context) error {
		m := &v1alpha1.Machine{}
		if err := p.Get(ctx, client.ObjectKey{Namespace: "kube-system", Name: "m-1"}, m); err != nil {
			return err
		}
		if m.Status.Phase != v1alpha1.Updating {
			return fmt.Errorf("it is %s", m.Status.Phase)
		}
		return nil
	})
	p.stop()
	p.start()
	p.runs("m-1", h.Hostname, olderPatch, 3*time.Minute)
}

// state waits until a Host is in a state, and nobody has it.
func (p *pool) state(name string, want kubeone.HostState, limit time.Duration) {
	p.Helper()
	p.eventually(name+" is "+string(want), limit, func(ctx context.Context) error {
		h := &kubeone.Host{}
		if err := p.Get(ctx, client.ObjectKey{Name: name}, h); err != nil {
			return err
		}
		if h.Status.State != want || h.Status.Claim != nil {
			return fmt.Errorf("it is %s: %s", h.Status.State, h.Status.Message)
		}
		return nil
	})
}

func returned(p *pool) {
	h := p.Lab.Spares()[0]
	p.must(p.Delete(p.Context(), machineOn("m-1", "", newest)))
	p.state(h.Hostname, kubeone.HostFree, 3*time.Minute)
	nodes, err := p.Kube(p.Context(), "get", "nodes", "-o", "name")
	p.must(err)
	if strings.Contains(nodes, h.Hostname) {
		p.Errorf("its Node is there: %s", nodes)
	}
	p.unchanged(map[string][]string{h.Hostname: p.bare[h.Hostname]}, p.snapshotOf(h))
	p.must(p.Create(p.Context(), machineOn("m-3", "", newest)))
	p.runs("m-3", h.Hostname, newest, 5*time.Minute)
}

// orphaned takes a Machine's finalizer away, as a restored etcd has no word of it: its host is returned all the same.
func orphaned(p *pool) {
	h := p.Lab.Spares()[0]
	m := &v1alpha1.Machine{}
	p.must(p.Get(p.Context(), client.ObjectKey{Namespace: "kube-system", Name: "m-3"}, m))
	before := m.DeepCopy()
	m.Finalizers, m.Annotations = nil, map[string]string{v1alpha1.PausedAnnotation: ""}
	p.must(p.Patch(p.Context(), m, client.MergeFrom(before)))
	p.must(client.IgnoreNotFound(p.Delete(p.Context(), m)))
	p.state(h.Hostname, kubeone.HostFree, 3*time.Minute)
	p.unchanged(map[string][]string{h.Hostname: p.bare[h.Hostname]}, p.snapshotOf(h))
}
