//go:build e2e && long

package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kubeone/internal/machines/manager"
	poolof "kubeone/internal/machines/pool"
	"kubeone/test/e2e/operator"
	"kubeone/test/lab/fleet"
)

// checkServingCertificates deletes the serving certificates of a kubelet of the manifest and of one of a Machine: the
// controllers approve new ones. The Machine's kubelet then requests a certificate with the other name, which is denied.
// It cannot send a request in the name of the other Node at all.
func (p *pool) checkServingCertificates() {
	all, err := p.listMachines(p.Context())
	p.must(err)
	static, its := p.Lab.Workers()[0], p.Lab.Host(all[0].Status.NodeRef.Name)
	for _, h := range []*fleet.Host{static, its} {
		p.certifiedAnew(h)
	}
	kube, err := kubernetes.NewForConfig(p.kubeletOf(its))
	p.must(err)
	requests := kube.CertificatesV1().CertificateSigningRequests()
	if _, err := requests.Create(p.Context(), p.servingRequest(static.Hostname, static.Hostname),
		metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		p.Errorf("%s asks in the name of %s: %v", its.Hostname, static.Hostname, err)
	}
	forged, err := requests.Create(p.Context(), p.servingRequest(its.Hostname, static.Hostname), metav1.CreateOptions{})
	p.must(err)
	p.eventually("an Event says that the forged request is left alone", time.Minute, func(ctx context.Context) error {
		says, err := p.Kube(ctx, "get", "events", "-A", "--field-selector", "involvedObject.name="+forged.Name, "-o",
			"jsonpath={.items[*].reason}")
		if err == nil && !slices.Contains(strings.Fields(says), "LeftAlone") {
			err = fmt.Errorf("its Events: %q", says)
		}
		return err
	})
	p.must(p.Get(p.Context(), client.ObjectKeyFromObject(forged), forged))
	if len(forged.Status.Conditions) > 0 || len(forged.Status.Certificate) > 0 {
		p.Errorf("the forged request is answered: %+v", forged.Status.Conditions)
	}
	p.must(p.Delete(p.Context(), forged))
}

// servingRequest returns a request for a serving certificate in the name of a Node, for a DNS name.
func (p *pool) servingRequest(node, name string) *certificatesv1.CertificateSigningRequest {
	p.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	p.must(err)
	text, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject:  pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}},
		DNSNames: []string{name},
	}, key)
	p.must(err)
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "forged"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: text}),
			SignerName: certificatesv1.KubeletServingSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth},
		},
	}
}

// certifiedAnew deletes the serving certificate of a host's kubelet, and waits for the next one.
func (p *pool) certifiedAnew(h *fleet.Host) {
	p.Helper()
	approved := func() (n int) {
		for _, c := range p.running {
			for line := range strings.Lines(c.Log()) {
				if strings.Contains(line, "serving certificate approved") && strings.Contains(line, h.Hostname) {
					n++
				}
			}
		}
		return n
	}
	before, began := approved(), time.Now()
	p.breakHost(h, "rm /var/lib/kubelet/pki/kubelet-server* && systemctl restart kubelet")
	p.eventually(h.Hostname+" has another serving certificate", time.Minute, func(ctx context.Context) error {
		_, err := h.Exec(ctx, "test -s /var/lib/kubelet/pki/kubelet-server-current.pem")
		return err
	})
	p.Logf("%5.1f s  until %s has another serving certificate", time.Since(began).Seconds(), h.Hostname)
	if approved() == before {
		p.Errorf("the controllers do not say that they have approved it")
	}
	p.eventually("kubectl logs", time.Minute, func(ctx context.Context) error {
		name, err := p.Kube(ctx, "-n", "kube-system", "get", "pods", "-l", "k8s-app=kube-proxy", "--field-selector",
			"spec.nodeName="+h.Hostname, "-o", "name")
		if err == nil {
			_, err = p.Kube(ctx, "-n", "kube-system", "logs", "--tail=1", strings.TrimSpace(name))
		}
		return err
	})
}

// kubeletOf returns the client configuration of a host's kubelet, with its certificate.
func (p *pool) kubeletOf(h *fleet.Host) *rest.Config {
	p.Helper()
	text, err := os.ReadFile(p.kubeconfigPath())
	p.must(err)
	admin, err := clientcmd.RESTConfigFromKubeConfig(text)
	p.must(err)
	both, err := h.Exec(p.Context(), "cat /var/lib/kubelet/pki/kubelet-client-current.pem")
	p.must(err)
	config := rest.AnonymousClientConfig(admin)
	config.CertData, config.KeyData = []byte(both), []byte(both)
	return config
}

// apiAway stops every API server for two minutes, while a Machine is being created.
func (p *pool) apiAway() {
	const pod, aside = "/etc/kubernetes/manifests/kube-apiserver.yaml", "/root/kube-apiserver.yaml"
	before := p.hostsByMachine()
	p.runKubectl("-n", "kube-system", "scale", "machinedeployment", "lab", "--replicas", "4")
	p.atWork(1, 4, newest)
	_, err := operator.OnEach(p.Context(), p.Lab.ControlPlanes(), "mv "+pod+" "+aside)
	p.must(err)
	p.eventually("no API server answers", time.Minute, func(ctx context.Context) error {
		for _, h := range p.Lab.ControlPlanes() {
			if _, err := h.Exec(ctx, "! curl -sk -m 2 https://127.0.0.1:6443/livez"); err != nil {
				return err
			}
		}
		return nil
	})
	silent := time.Now()
	p.eventually("two minutes have passed", 3*time.Minute, func(context.Context) error {
		if left := 2*time.Minute - time.Since(silent); left > 0 {
			return fmt.Errorf("%s are left", left)
		}
		return nil
	})
	_, err = operator.OnEach(p.Context(), p.Lab.ControlPlanes(), "mv "+aside+" "+pod)
	p.must(err)
	for _, h := range p.Lab.ControlPlanes() {
		p.eventually("the API server of "+h.Hostname, 2*time.Minute, readyAPI(h))
	}
	p.awaitLeader()
	p.awaitConverged(4)
	for name, host := range p.hostsByMachine() {
		if was, there := before[name]; there && was != host {
			p.Errorf("Machine %s had %s, and has %s", name, was, host)
		}
	}
	p.runKubectl("-n", "kube-system", "scale", "machinedeployment", "lab", "--replicas", "3")
	p.awaitConverged(3)
}

// awaitLeader restarts controller processes that have ended, like systemd, until one of them leads.
func (p *pool) awaitLeader() {
	p.Helper()
	began := time.Now()
	p.eventually("a process of controllers leads", 2*time.Minute, func(ctx context.Context) error {
		for _, c := range slices.Clone(p.running) {
			if c.Ended() {
				p.running = slices.DeleteFunc(p.running, func(of *operator.Controllers) bool { return of == c })
				p.startControllers("controller")
			}
		}
		lease := &coordinationv1.Lease{}
		if err := p.Get(ctx, client.ObjectKey{Namespace: poolof.Namespace, Name: manager.Lease}, lease); err != nil {
			return err
		}
		if at := lease.Spec.RenewTime; at == nil || at.Time.Before(began) {
			return fmt.Errorf("the Lease was renewed last at %s", at)
		}
		return nil
	})
}

// awaitConverged waits until the deployment has count ready Machines, each with one host, by both the objects and the
// hosts.
func (p *pool) awaitConverged(count int) {
	p.Helper()
	p.awaitReady(count, newest, 10*time.Minute)
	p.eventually("each Machine has one host, and no other is taken", 6*time.Minute, func(ctx context.Context) error {
		all, err := p.listMachines(ctx)
		if err != nil {
			return err
		}
		left := map[string]bool{}
		for _, m := range all {
			left[string(m.UID)] = true
		}
		for _, h := range p.listHosts() {
			c := h.Status.Claim
			if c != nil && !left[string(c.UID)] {
				return fmt.Errorf("%s is %s, of %s, which has another host or is gone: %s", h.Name, h.Status.State,
					c.Name, h.Status.Message)
			}
			if c != nil {
				delete(left, string(c.UID))
			}
		}
		if len(left) > 0 {
			return fmt.Errorf("without a host: %v", slices.Collect(maps.Keys(left)))
		}
		return nil
	})
	p.claimedOnce()
}

// restoreSnapshot goes back to a snapshot from before a claim: the host names a Machine that no longer exists.
func (p *pool) restoreSnapshot() {
	before := p.hostsByMachine()
	file := filepath.Join(p.TempDir(), "before.db")
	p.runCommand(0, []string{"etcd", "snapshot", file}, file)
	p.runKubectl("-n", "kube-system", "scale", "machinedeployment", "lab", "--replicas", "4")
	p.awaitReady(4, newest, 6*time.Minute)
	forgotten := ""
	for name, host := range p.hostsByMachine() {
		if before[name] == "" {
			forgotten = host
		}
	}
	for _, h := range p.Lab.ControlPlanes() {
		p.breakHost(h, "rm -rf /var/lib/etcd/member; kill -9 $(pidof etcd)")
	}
	p.eventually("no host serves", time.Minute, func(ctx context.Context) error {
		_, err := operator.OnEach(ctx, p.Lab.ControlPlanes(), "! pidof etcd && [ ! -e /var/lib/etcd/member ]")
		return err
	})
	p.runCommand(0, []string{"recover", "-y", "--from", file}, "Done. The cluster matches the manifest.")
	p.awaitLeader()
	p.awaitReady(3, newest, 6*time.Minute)
	p.checkEqual("which Machine has which host", before, p.hostsByMachine())
	p.runKubectl("-n", "kube-system", "scale", "machinedeployment", "lab", "--replicas", "4")
	p.awaitReady(4, newest, 10*time.Minute)
	p.eventually("the host whose claim was forgotten is bare, or a Machine's of today", 10*time.Minute,
		func(ctx context.Context) error {
			its, err := p.Lab.Host(forgotten).Exec(ctx, "sed -n 's/^machine=//p' /etc/kubeone/marker 2>/dev/null || :")
			if its = strings.TrimSpace(its); err != nil || its == "" {
				return err
			}
			for name, host := range p.hostsByMachine() {
				if host == forgotten && its == metav1.NamespaceSystem+"/"+name {
					return nil
				}
			}
			return errors.New(forgotten + " says that it is of " + its)
		})
	p.awaitConverged(4)
	p.runKubectl("-n", "kube-system", "scale", "machinedeployment", "lab", "--replicas", "3")
	p.awaitConverged(3)
	p.healthyNodes()
}

// healthyNodes checks that the Nodes of the manifest's hosts and of Machines are Ready.
func (p *pool) healthyNodes() {
	p.Helper()
	p.eventually("all Nodes are Ready, and no other is left", 4*time.Minute, func(ctx context.Context) error {
		var nodes corev1.NodeList
		if err := p.List(ctx, &nodes); err != nil {
			return err
		}
		want := slices.Concat(hostnamesOf(p.Members()), slices.Collect(maps.Values(p.hostsByMachine())))
		var ready []string
		for _, n := range nodes.Items {
			if operator.Ready(n) {
				ready = append(ready, n.Name)
			}
		}
		slices.Sort(want)
		slices.Sort(ready)
		if !slices.Equal(want, ready) || len(nodes.Items) != len(want) {
			return fmt.Errorf("%d Nodes, Ready are %v, want %v", len(nodes.Items), ready, want)
		}
		return nil
	})
}
