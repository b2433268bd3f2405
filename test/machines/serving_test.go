//go:build e2e

package machines

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeone "kubeone/api/kubeone/v1alpha1"
	"kubeone/internal/cluster"
	"kubeone/internal/cluster/record"
	"kubeone/internal/machines/controllers"
	"kubeone/internal/model/desired"
)

// staticManifest has one worker besides a control-plane host.
const staticManifest = `apiVersion: kubeone.k8c.io/v1beta2
kind: KubeOneCluster
name: test
versions: {kubernetes: 1.36.3}
cloudProvider: {none: {}}
controlPlane: {hosts: [{publicAddress: 192.0.2.1, privateAddress: 192.0.2.1, hostname: cp-1}]}
staticWorkers: {hosts: [{publicAddress: 192.0.2.2, privateAddress: 10.0.0.2, hostname: static}]}
apiEndpoint: {host: 192.0.2.1}
`

// writeRecord writes the record of a cluster with that manifest.
func writeRecord(t *testing.T, c *cluster.Client) {
	t.Helper()
	if err := c.UpdateRecord(t.Context(), func(r *record.Record) error {
		r.Manifest, r.Nodes = staticManifest, map[string]string{"static": "static"}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// kubeletClient returns a client as the kubelet of a node. The API server allows it everything except what policies
// deny.
func kubeletClient(t *testing.T, config *rest.Config, node string) kubernetes.Interface {
	t.Helper()
	as := rest.CopyConfig(config)
	as.Impersonate = rest.ImpersonationConfig{
		UserName: "system:node:" + node, Groups: []string{"system:nodes", "system:masters"},
	}
	c, err := kubernetes.NewForConfig(as)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// requestServing has a kubelet request a serving certificate of a node, at an address.
func requestServing(t *testing.T, kube kubernetes.Interface, name, node, address string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject:     pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}},
		DNSNames:    []string{node},
		IPAddresses: []net.IP{net.ParseIP(address)},
	}, key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kube.CertificatesV1().CertificateSigningRequests().Create(t.Context(),
		&certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: text}),
				SignerName: certificatesv1.KubeletServingSignerName,
				Usages: []certificatesv1.KeyUsage{
					certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth,
				},
			},
		}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestServingCertificatesBetweenRuns has kubelets request serving certificates while no run is active. Those of the
// manifest and of Machines get their own, and none gets another's.
func TestServingCertificatesBetweenRuns(t *testing.T) {
	config, access, c := startAPI(t)
	writeRecord(t, c)
	if err := c.DefineKinds(t.Context()); err != nil {
		t.Fatal(err)
	}
	hostIn(t, config, "w-1", kubeone.HostJoined, "192.0.2.3")
	runProcess(t, access, "first")
	requestServing(t, kubeletClient(t, config, "w-1"), "of-a-machine", "w-1", "192.0.2.3")
	requestServing(t, kubeletClient(t, config, "static"), "of-the-manifest", "static", "10.0.0.2")
	requestServing(t, kubeletClient(t, config, "w-1"), "for-another", "static", "10.0.0.2")
	requestServing(t, kubeletClient(t, config, "w-1"), "at-another-address", "w-1", "10.0.0.2")
	requestServing(t, kubeletClient(t, config, "nobody"), "of-nobody", "nobody", "192.0.2.9")
	hostIn(t, config, "posing", kubeone.HostJoined, "192.0.2.1")
	requestServing(t, kubeletClient(t, config, "posing"), "as-the-endpoint", "posing", "192.0.2.1")
	requests := c.Kubernetes.CertificatesV1().CertificateSigningRequests()
	approved := func(name string) bool {
		csr, err := requests.Get(t.Context(), name, metav1.GetOptions{})
		return err == nil && len(csr.Status.Conditions) == 1 &&
			csr.Status.Conditions[0].Type == certificatesv1.CertificateApproved
	}
	reported := func(name, why string) bool {
		all, err := c.Kubernetes.EventsV1().Events("").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return false
		}
		for _, e := range all.Items {
			if e.Regarding.Name == name && e.Reason == "LeftAlone" && strings.Contains(e.Note, why) {
				return true
			}
		}
		return false
	}
	for _, name := range []string{"of-a-machine", "of-the-manifest"} {
		awaitTrue(t, name+" is approved", func() bool { return approved(name) })
	}
	for name, why := range map[string]string{
		"for-another": `its common name is "system:node:static"`, "at-another-address": "the address 10.0.0.2",
		"of-nobody": "not one of the manifest's hosts", "as-the-endpoint": "not one of the manifest's hosts",
	} {
		awaitTrue(t, name+" is reported", func() bool { return reported(name, why) })
		if approved(name) {
			t.Errorf("%s is approved", name)
		}
	}
}

// hostIn creates a Host in the given state, claimed by a Machine that no longer exists.
func hostIn(t *testing.T, config *rest.Config, name string, in kubeone.HostState, address string) client.Client {
	t.Helper()
	scheme, err := controllers.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	objects, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	h := &kubeone.Host{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       kubeone.HostSpec{Address: address, HostKeys: []string{"ssh-ed25519 AAAA"}},
	}
	if err := objects.Create(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	before := h.DeepCopy()
	h.Status = kubeone.HostStatus{State: in, Claim: &kubeone.HostClaim{Namespace: "ns", Name: "m", UID: "u"}}
	if err := objects.Status().Patch(t.Context(), h, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	return objects
}

// TestOnlyClaimedHostCreatesNode has a kubelet create its Node in each state of its Host, and kubelets of
// hosts outside the pool.
func TestOnlyClaimedHostCreatesNode(t *testing.T) {
	config, _, c := startAPI(t)
	if err := c.DefineKinds(t.Context()); err != nil {
		t.Fatal(err)
	}
	objects := hostIn(t, config, "w-1", kubeone.HostReturning, "192.0.2.3")
	makes := func(node string) error {
		nodes := kubeletClient(t, config, node).CoreV1().Nodes()
		_, err := nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}},
			metav1.CreateOptions{})
		if err == nil {
			if err := c.Kubernetes.CoreV1().Nodes().Delete(t.Context(), node, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		}
		return err
	}
	is := func(status kubeone.HostStatus) {
		t.Helper()
		h := &kubeone.Host{}
		if err := objects.Get(t.Context(), client.ObjectKey{Name: "w-1"}, h); err != nil {
			t.Fatal(err)
		}
		h.Status = status
		if err := objects.Status().Update(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	}
	claim := &kubeone.HostClaim{Namespace: "ns", Name: "m", UID: "u"}
	const reset, unclaimed = "the host w-1 has not been reset", "the host w-1 is in the pool, and no Machine has it"
	for _, step := range []struct {
		name   string
		status kubeone.HostStatus
		wrong  string // "" if it creates its Node
	}{
		{"returning", kubeone.HostStatus{State: kubeone.HostReturning, Claim: claim}, reset},
		{"claimed", kubeone.HostStatus{State: kubeone.HostClaimed, Claim: claim}, ""},
		{"free", kubeone.HostStatus{State: kubeone.HostFree}, unclaimed},
		{"joined", kubeone.HostStatus{State: kubeone.HostJoined, Claim: claim}, ""},
		{"failed", kubeone.HostStatus{State: kubeone.HostFailed}, unclaimed},
		{"claimed again", kubeone.HostStatus{State: kubeone.HostClaimed, Claim: claim}, ""},
		{"not looked after yet", kubeone.HostStatus{}, unclaimed},
	} {
		is(step.status)
		awaitTrue(t, step.name, func() bool {
			err := makes("w-1")
			if step.wrong == "" {
				return err == nil
			}
			return err != nil && strings.Contains(err.Error(), step.wrong)
		})
		if err := makes("w-2"); err != nil {
			t.Errorf("%s: a host that is not of the pool: %v", step.name, err)
		}
	}
	if err := objects.Delete(t.Context(), &kubeone.Host{ObjectMeta: metav1.ObjectMeta{Name: "w-1"}}); err != nil {
		t.Fatal(err)
	}
	awaitTrue(t, "the Host is gone", func() bool { return makes("w-1") == nil })
}

// TestKubeletCannotChangeNodeOwner has kubelets change labels of their own Nodes.
func TestKubeletCannotChangeNodeOwner(t *testing.T) {
	config, _, c := startAPI(t)
	if err := c.DefineKinds(t.Context()); err != nil {
		t.Fatal(err)
	}
	hostIn(t, config, "w-1", kubeone.HostJoined, "192.0.2.3")
	for _, name := range []string{"w-1", "w-2"} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{desired.OwnerLabel: "uid-1"},
		}}
		if _, err := c.Kubernetes.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	labels := func(node, label, value string) error {
		patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, label, value)
		_, err := kubeletClient(t, config, node).CoreV1().Nodes().Patch(t.Context(), node, types.MergePatchType,
			[]byte(patch), metav1.PatchOptions{})
		return err
	}
	for _, value := range []string{`"uid-2"`, "null"} {
		awaitTrue(t, "the owner's label stays", func() bool {
			err := labels("w-1", desired.OwnerLabel, value)
			if err != nil {
				return strings.Contains(err.Error(), "does not change which Machine its Node belongs to")
			}
			// The API server has not read the policy yet.
			_, err = c.Kubernetes.CoreV1().Nodes().Patch(t.Context(), "w-1", types.MergePatchType,
				fmt.Appendf(nil, `{"metadata":{"labels":{%q:"uid-1"}}}`, desired.OwnerLabel), metav1.PatchOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return false
		})
	}
	if err := labels("w-1", "example.com/own", `"x"`); err != nil {
		t.Errorf("another label: %v", err)
	}
	if err := labels("w-2", desired.OwnerLabel, `"uid-2"`); err != nil {
		t.Errorf("a Node that is not of the pool: %v", err)
	}
}
