//go:build e2e

package machines

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/crypto/ssh"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kubeone/api/cluster/v1alpha1"
	kubeone "kubeone/api/kubeone/v1alpha1"
	"kubeone/internal/cluster"
	"kubeone/internal/engine"
	"kubeone/internal/machines/controllers"
	"kubeone/internal/machines/manager"
	"kubeone/internal/machines/pool"
	provide "kubeone/internal/machines/provider/ssh"
	"kubeone/internal/testutil/sshtest"
	"kubeone/test/lab/apiserver"
)

// kubeconfigOf returns a client's configuration as a kubeconfig.
func kubeconfigOf(t *testing.T, c *rest.Config) []byte {
	t.Helper()
	out := clientcmdapi.NewConfig()
	out.CurrentContext = "test"
	out.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	out.Clusters["test"] = &clientcmdapi.Cluster{Server: c.Host, CertificateAuthorityData: c.CAData}
	out.AuthInfos["test"] = &clientcmdapi.AuthInfo{
		ClientCertificateData: c.CertData, ClientKeyData: c.KeyData, Token: c.BearerToken,
	}
	text, err := clientcmd.Write(*out)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// startAPI starts an API server, and returns access to it.
func startAPI(t *testing.T) (*rest.Config, cluster.Access, *cluster.Client) {
	t.Helper()
	config := apiserver.Start(t.Context(), t, "1.36.3")
	access := cluster.Access{Kubeconfig: kubeconfigOf(t, config)}
	c, err := cluster.Connect(access)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return config, access, c
}

// process is a process of kubeone controller, simulated in this one.
type process struct {
	metrics prometheus.Gatherer
	end     func() error // and returns its result
}

// metricIsOne reports whether a metric has the value 1 for a label.
func (p process) metricIsOne(t *testing.T, metric, label string) bool {
	t.Helper()
	families, err := p.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == metric && len(m.GetLabel()) == 1 && m.GetLabel()[0].GetValue() == label {
				return m.GetGauge().GetValue() == 1
			}
		}
	}
	return false
}

func runProcess(t *testing.T, access cluster.Access, name string) process {
	t.Helper()
	return runWith(t, access, name, func(context.Context, string) (engine.Releases, error) {
		return nil, errors.New("none")
	})
}

func runWith(t *testing.T, access cluster.Access, name string,
	releases func(context.Context, string) (engine.Releases, error)) process {
	t.Helper()
	registry := prometheus.NewRegistry()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() {
		done <- manager.Run(ctx, manager.Options{
			Site:    provide.Site{Access: access, Holder: name, Releases: releases},
			Metrics: "0", Health: "0", Log: slog.New(slog.DiscardHandler), SkipNameValidation: true, Registry: registry,
		})
	}()
	p := process{metrics: registry, end: sync.OnceValue(func() error {
		cancel()
		return <-done
	})}
	t.Cleanup(func() {
		if err := p.end(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// TestControllerProcesses has two processes in a cluster without the kinds of Machines: they define the kinds and
// share one key. One of them works; when it ends, the other one does.
func TestControllerProcesses(t *testing.T) {
	config, access, c := startAPI(t)
	scheme, err := controllers.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	objects, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pool.List(t.Context(), objects); err == nil || !strings.Contains(err.Error(), "no host pool") {
		t.Errorf("before there is a pool: %v", err)
	}
	writeRecord(t, c)
	first := runProcess(t, access, "first")
	leads := func() string {
		lease, err := c.Kubernetes.CoordinationV1().Leases(pool.Namespace).Get(t.Context(), manager.Lease,
			metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		return holderOf(lease)
	}
	awaitTrue(t, "the first one leads", func() bool { return strings.Contains(leads(), "_") })
	before := leads()
	key, err := pool.Key(t.Context(), c.Kubernetes)
	if err != nil {
		t.Fatal(err)
	}
	server, err := sshtest.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	state := func(name string) kubeone.HostState {
		h := &kubeone.Host{}
		if err := objects.Get(t.Context(), client.ObjectKey{Name: name}, h); err != nil {
			return kubeone.HostState(err.Error())
		}
		return h.Status.State
	}
	pinned := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(server.PublicKey())))
	add := func(name string) {
		if err := objects.Create(t.Context(), &kubeone.Host{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       kubeone.HostSpec{Address: "192.0.2.9", HostKeys: []string{pinned}},
		}); err != nil {
			t.Fatal(err)
		}
	}
	add("w-1")
	awaitTrue(t, "a Host is free", func() bool { return state("w-1") == kubeone.HostFree })
	runProcess(t, access, "second")
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "m"}}
	m.Spec.ProviderSpec.Value.CloudProvider = provide.Name
	m.Spec.Versions.Kubelet = "1.36.3"
	if err := objects.Create(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	awaitTrue(t, "a Machine has claimed it", func() bool { return state("w-1") == kubeone.HostClaimed })
	awaitTrue(t, "both are counted", func() bool {
		return first.metricIsOne(t, "kubeone_hosts", "Claimed") &&
			first.metricIsOne(t, "kubeone_machines", "Provisioning")
	})
	if err := first.end(); err != nil {
		t.Fatal(err)
	}
	awaitTrue(t, "the second one leads", func() bool { return leads() != before && strings.Contains(leads(), "_") })
	add("w-2")
	awaitTrue(t, "another Host is free", func() bool { return state("w-2") == kubeone.HostFree })
	again, err := pool.Key(t.Context(), c.Kubernetes)
	if err != nil || ssh.FingerprintSHA256(again.PublicKey()) != ssh.FingerprintSHA256(key.PublicKey()) {
		t.Errorf("the key is another one: %v", err)
	}
	if err := c.DefineKinds(t.Context()); err != nil {
		t.Errorf("defined again: %v", err)
	}
}

func holderOf(l *coordinationv1.Lease) string {
	if l.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.Spec.HolderIdentity
}

// awaitTrue waits until a condition holds.
func awaitTrue(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline, tick := time.After(within), time.NewTicker(100*time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("%s: not within %s", what, within)
		case <-tick.C:
		}
	}
}
