//go:build e2e

package machines

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kubeone/api/cluster/v1alpha1"
	kubeone "kubeone/api/kubeone/v1alpha1"
	"kubeone/internal/addons"
	"kubeone/internal/cluster"
	"kubeone/internal/cluster/certificates"
	"kubeone/internal/cluster/drain"
	"kubeone/internal/cluster/record"
	"kubeone/internal/locks/leaselock"
	"kubeone/internal/machines/controllers"
	"kubeone/internal/machines/manager"
	"kubeone/internal/machines/pool"
	provide "kubeone/internal/machines/provider/ssh"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/nodename"
	"kubeone/internal/probe"
	"kubeone/internal/testutil/sshtest"
	"kubeone/internal/workspace"

	"golang.org/x/crypto/ssh"
)

const account = "kubeone-controller"

// asPod applies the addon and returns access like that of a pod: by the account's files and the API's address.
func asPod(t *testing.T, config *rest.Config, c *cluster.Client) cluster.Access {
	t.Helper()
	rendered, err := addons.Render(desired.Cluster{Controllers: &desired.Controllers{
		Image: desired.Image{Name: "kubeone.k8c.io/kubeone:test"}, Arch: "amd64",
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range rendered {
		if _, err := c.Apply(t.Context(), a.Objects); err != nil {
			t.Fatal(err)
		}
		if again, err := c.Apply(t.Context(), a.Objects); err != nil || len(again.Changed) > 0 {
			t.Errorf("applied again, the addon changes %v (%v)", again.Changed, err)
		}
	}
	// The API server needs time to read new permissions.
	awaitTrue(t, "the account may do its work", func() bool {
		review, err := c.Kubernetes.AuthorizationV1().SubjectAccessReviews().Create(t.Context(),
			&authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: "system:serviceaccount:" + pool.Namespace + ":" + account,
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Verb: "list", Group: "cluster.k8s.io", Resource: "machines",
				},
			}}, metav1.CreateOptions{})
		return err == nil && review.Status.Allowed
	})
	hour := int64(3600)
	token, err := c.Kubernetes.CoreV1().ServiceAccounts(pool.Namespace).CreateToken(t.Context(), account,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &hour}},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, content := range map[string][]byte{"token": []byte(token.Status.Token), "ca.crt": config.CAData} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	server := config.Host
	if !strings.Contains(server, "://") {
		server = "https://" + server
	}
	at, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", dir)
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", at.Hostname())
	t.Setenv("KUBERNETES_SERVICE_PORT", at.Port())
	access, err := workspace.OpenKubeconfigOrPod("", dir)
	if err != nil {
		t.Fatal(err)
	}
	return access
}

// journal is a log that can be read while it is written.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

// linesWith returns the lines that contain a text, in lower case.
func (j *journal) linesWith(of string) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []string
	for _, line := range strings.Split(strings.ToLower(j.text.String()), "\n") {
		if strings.Contains(line, of) {
			out = append(out, line)
		}
	}
	return out
}

// countRefusals returns the requests that the API server has refused since its start, from its metrics.
func countRefusals(t *testing.T, c *cluster.Client) []string {
	t.Helper()
	text, err := c.Kubernetes.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "apiserver_request_total{") && strings.Contains(line, `code="403"`) {
			out = append(out, line)
		}
	}
	return out
}

// TestServiceAccountPermissions runs the controllers with the permissions of the addon alone, including the API
// requests of their runs on hosts. No request is refused. Then it tries requests beyond the account's duties.
func TestServiceAccountPermissions(t *testing.T) {
	config, _, admin := startAPI(t)
	access := asPod(t, config, admin)
	writeRecord(t, admin)
	log := &journal{}
	logger := slog.New(slog.NewJSONHandler(log, nil))
	klog.SetSlogLogger(logger)
	t.Cleanup(func() { klog.SetSlogLogger(slog.New(slog.DiscardHandler)) })
	releases := workspace.NewReleaseOpener(workspace.Options{BundleDir: t.TempDir()})
	t.Cleanup(releases.Close)

	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() {
		done <- manager.Run(ctx, manager.Options{
			Site:    provide.Site{Access: access, Holder: "controller/pod", Releases: releases.From},
			Metrics: "0", Health: "0", Log: logger, SkipNameValidation: true, Registry: prometheus.NewRegistry(),
		})
	}()
	end := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the controllers end: %v", err)
		}
	})
	t.Cleanup(end)

	theyWork(t, config, admin)
	own, err := cluster.Connect(access)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.Close)
	runsWork(t, config, admin, own, access)
	end() // releases the Lease
	if lines := append(log.linesWith("forbidden"), log.linesWith("unauthorized")...); len(lines) > 0 {
		t.Errorf("the controllers say:\n%s", strings.Join(lines, "\n"))
	}
	if all := countRefusals(t, admin); len(all) > 0 {
		t.Errorf("the API server has refused:\n%s", strings.Join(all, "\n"))
	}
	theyMayDoNoMore(t, admin, own)
	if len(countRefusals(t, admin)) == 0 {
		t.Error("the API server counts no refusal, not even those that there were")
	}
}

// theyWork observes the controllers while they do what needs no hosts.
func theyWork(t *testing.T, config *rest.Config, admin *cluster.Client) {
	t.Helper()
	scheme, err := controllers.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	awaitTrue(t, "one leads", func() bool {
		lease, err := admin.Kubernetes.CoordinationV1().Leases(pool.Namespace).Get(t.Context(), manager.Lease,
			metav1.GetOptions{})
		return err == nil && holderOf(lease) != ""
	})
	if _, err := admin.Kubernetes.CoreV1().Secrets(pool.Namespace).Get(t.Context(), pool.KeySecret,
		metav1.GetOptions{}); err != nil {
		t.Errorf("the cluster's key: %v", err)
	}
	objects, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	server, err := sshtest.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	pinned := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(server.PublicKey())))
	for _, name := range []string{"w-1", "w-2", "w-3"} {
		if err := objects.Create(t.Context(), &kubeone.Host{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       kubeone.HostSpec{Address: "192.0.2.9", HostKeys: []string{pinned}},
		}); err != nil {
			t.Fatal(err)
		}
	}
	machines := func() []v1alpha1.Machine {
		var all v1alpha1.MachineList
		if err := objects.List(t.Context(), &all); err != nil {
			return nil
		}
		return all.Items
	}
	claimed := func() (n int) {
		var all kubeone.HostList
		_ = objects.List(t.Context(), &all)
		for _, h := range all.Items {
			if h.Status.Claim != nil {
				n++
			}
		}
		return n
	}
	md := fakeDeployment("pool", 2, "1.36.3")
	md.Spec.Template.Spec.ProviderSpec.Value = v1alpha1.ProviderConfig{
		CloudProvider: provide.Name,
		// Do not wait for a host that never answers.
		CloudProviderSpec: &runtime.RawExtension{Raw: []byte(`{"silentHostTimeoutSeconds": 0}`)},
	}
	if err := objects.Create(t.Context(), md); err != nil {
		t.Fatal(err)
	}
	awaitTrue(t, "two Machines have Hosts", func() bool { return len(machines()) == 2 && claimed() == 2 })
	m := machines()[0]
	createNodeOf(t, objects, admin, &m)
	awaitTrue(t, "its Node is noted, with what the Machine gives it", func() bool {
		err := objects.Get(t.Context(), client.ObjectKeyFromObject(&m), &m)
		return err == nil && m.Status.NodeRef != nil
	})
	// Scaling down deletes Machines and their Nodes.
	scaled := md.DeepCopy()
	none := int32(0)
	scaled.Spec.Replicas = &none
	if err := objects.Patch(t.Context(), scaled, client.MergeFrom(md)); err != nil {
		t.Fatal(err)
	}
	awaitTrue(t, "Machines are deleted", func() bool {
		all := machines()
		return len(all) == 0 || all[0].DeletionTimestamp != nil
	})
	awaitTrue(t, "there are Events of Machines", func() bool {
		all, err := admin.Kubernetes.EventsV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
		return err == nil && len(all.Items) > 0
	})
	requestServing(t, kubeletClient(t, config, "static"), "of-the-manifest", "static", "10.0.0.2")
	awaitTrue(t, "a serving certificate is approved", func() bool {
		csr, err := admin.Kubernetes.CertificatesV1().CertificateSigningRequests().Get(t.Context(), "of-the-manifest",
			metav1.GetOptions{})
		return err == nil && len(csr.Status.Conditions) == 1
	})
	requestServing(t, kubeletClient(t, config, "nobody"), "of-nobody", "nobody", "192.0.2.9")
	awaitTrue(t, "another is left alone, with an Event", func() bool {
		all, err := admin.Kubernetes.EventsV1().Events("default").List(t.Context(), metav1.ListOptions{})
		return err == nil && strings.Contains(all.String(), "LeftAlone")
	})
}

// createNodeOf creates the Node of a Machine like its kubelet.
func createNodeOf(t *testing.T, objects client.Client, admin *cluster.Client, m *v1alpha1.Machine) {
	t.Helper()
	var hosts kubeone.HostList
	if err := objects.List(t.Context(), &hosts); err != nil {
		t.Fatal(err)
	}
	for _, h := range hosts.Items {
		if h.Status.Claim != nil && h.Status.Claim.UID == m.UID {
			nodeIn(t, admin, h.Name, map[string]string{desired.OwnerLabel: string(m.UID)}, corev1.ConditionFalse)
		}
	}
}

func nodeIn(t *testing.T, admin *cluster.Client, name string, labels map[string]string, ready corev1.ConditionStatus) {
	t.Helper()
	nodes := admin.Kubernetes.CoreV1().Nodes()
	if _, err := nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	status := fmt.Sprintf(`{"status": {"conditions": [{"type": "Ready", "status": %q}]}}`, ready)
	if _, err := nodes.Patch(t.Context(), name, types.MergePatchType, []byte(status), metav1.PatchOptions{},
		"status"); err != nil { // the controllers write to it at the same time
		t.Fatal(err)
	}
}

// runsWork makes the API requests of a run about a worker, in their usual order.
func runsWork(t *testing.T, config *rest.Config, admin, own *cluster.Client, access cluster.Access) {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	createAutoApproval(t, admin)
	facts, err := probe.API(ctx, access, time.Now())
	must(err)
	if facts.World.API.ClusterID == "" || facts.World.API.Record == nil {
		t.Errorf("the API says %+v", facts.World.API)
	}
	must(own.RemoveAutoApproval(ctx))

	// The Lease of a kubeone apply.
	me := leaselock.Holder{Name: "ann@laptop", RunID: "a"}
	lock, err := admin.Acquire(ctx, me, leaselock.AcquireOptions{})
	must(err)
	must(lock.Release(ctx))
	lock, err = own.Acquire(ctx, leaselock.Holder{Name: "controller/pod", RunID: "r"}, leaselock.AcquireOptions{})
	must(err)
	must(lock.Release(ctx))

	token, id, err := own.CreateJoinToken(ctx, "r", nodename.Claim{Node: "w-9"}, time.Minute)
	must(err)
	approvesTheFirst(t, config, own, id, "w-9")
	must(own.RevokeJoinToken(ctx, id))
	_, _, err = own.CreateJoinToken(ctx, "r", nodename.Claim{Node: "w-9"}, time.Minute)
	must(err)
	must(own.RevokeJoinTokens(ctx, "r"))
	if token == "" {
		t.Error("the token is empty")
	}

	nodeIn(t, admin, "w-9", nil, corev1.ConditionTrue)
	must(own.WaitNode(ctx, "w-9"))
	must(own.SetNodeMeta(ctx, "w-9", map[string]string{"a": "b"}, nil,
		[]desired.Taint{{Key: "t", Effect: "NoSchedule"}}))
	must(own.WaitNodeReady(ctx, "w-9"))
	must(own.WriteEvent(ctx, record.Event{Node: "w-9", Reason: "KubeOneJoined", RunID: "r", Time: time.Now()}))
	if is, err := own.Record(ctx); err != nil || is == nil {
		t.Errorf("the record: %v, %v", is, err)
	}

	podsOn(t, admin, "w-9")
	now := 0
	must(own.Drain(ctx, "w-9", drain.Options{Mark: "r", Timeout: 5 * time.Second, Grace: &now, Force: true,
		MaxUnavailable: 1}))
	left, err := admin.Kubernetes.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
	must(err)
	for _, p := range left.Items {
		if p.Name != "of-a-daemonset" {
			t.Errorf("a pod is left: %s", p.Name)
		}
	}
	must(own.Uncordon(ctx, "w-9"))
	if _, err := own.DrainLosses(ctx); err != nil {
		t.Error(err)
	}
	must(own.DeleteNode(ctx, "w-9"))
	must(own.WaitNodeSilent(ctx, "w-9"))

	// Approvals during a run list and watch both kinds of requests.
	within, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	own.ServeApprovals(within, certificates.Expected{}, func(certificates.Decision) {})
	must(own.ApprovePending(ctx, certificates.Expected{}, func(certificates.Decision) {}))
}

// createAutoApproval creates kubeadm's binding that approves any Node.
func createAutoApproval(t *testing.T, admin *cluster.Client) {
	t.Helper()
	if _, err := admin.Kubernetes.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: certificates.AutoApprovalBinding},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// approvesTheFirst has a kubelet request its first certificate with a join token, and has the account approve it.
func approvesTheFirst(t *testing.T, config *rest.Config, own *cluster.Client, id, node string) {
	t.Helper()
	as := rest.CopyConfig(config)
	as.Impersonate = rest.ImpersonationConfig{
		UserName: "system:bootstrap:" + id,
		Groups:   []string{"system:bootstrappers", "system:bootstrappers:kubeadm:default-node-token", "system:masters"},
	}
	kube, err := kubernetes.NewForConfig(as)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}},
	}, key)
	if err != nil {
		t.Fatal(err)
	}
	csr, err := kube.CertificatesV1().CertificateSigningRequests().Create(t.Context(),
		&certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: "first-of-" + node},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: text}),
				SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
				Usages: []certificatesv1.KeyUsage{
					certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth,
				},
			},
		}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d, open, err := own.Decide(t.Context(), csr, certificates.Expected{node: {Node: node}})
	if err != nil || !open || !d.Approved {
		t.Errorf("the first certificate of %s: %+v, %t, %v", node, d, open, err)
	}
}

// podsOn creates three pods on a node: one that a budget protects until it is deleted, one that can be evicted, and one
// of a DaemonSet.
func podsOn(t *testing.T, admin *cluster.Client, node string) {
	t.Helper()
	labels := map[string]string{"app": "kept"}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "daemon"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "x"}}},
	}
	set, err := admin.Kubernetes.AppsV1().DaemonSets("default").Create(t.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "daemon"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template,
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all := intstr.FromString("100%")
	budgets := admin.Kubernetes.PolicyV1().PodDisruptionBudgets("default")
	budget, err := budgets.Create(t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "kept"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels}, MinAvailable: &all,
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	budget.Status = policyv1.PodDisruptionBudgetStatus{ // like the controller manager
		ObservedGeneration: budget.Generation, ExpectedPods: 1, DesiredHealthy: 1, CurrentHealthy: 1,
	}
	if _, err := budgets.UpdateStatus(t.Context(), budget, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	no := false
	for name, meta := range map[string]metav1.ObjectMeta{
		"kept": {Labels: labels}, "free": {},
		"of-a-daemonset": {
			Labels: template.Labels,
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("DaemonSet")),
			},
		},
	} {
		meta.Name = name
		pod := &corev1.Pod{ObjectMeta: meta, Spec: *template.Spec.DeepCopy()}
		pod.Spec.NodeName, pod.Spec.AutomountServiceAccountToken = node, &no
		made, err := admin.Kubernetes.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		made.Status.Phase = corev1.PodRunning
		made.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		if _, err := admin.Kubernetes.CoreV1().Pods("default").UpdateStatus(t.Context(), made,
			metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// theyMayDoNoMore tries requests beyond the account's duties. The requested objects exist.
func theyMayDoNoMore(t *testing.T, admin, own *cluster.Client) {
	t.Helper()
	ctx, kube := t.Context(), own.Kubernetes
	for _, at := range []types.NamespacedName{
		{Namespace: "default", Name: "private"}, {Namespace: pool.Namespace, Name: "private"},
		{Namespace: namespace, Name: "private"},
	} {
		if _, err := admin.Kubernetes.CoreV1().Secrets(at.Namespace).Create(ctx,
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: at.Name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := admin.Kubernetes.CoreV1().ConfigMaps(namespace).Create(ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ofToken := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "stolen",
			Annotations: map[string]string{corev1.ServiceAccountNameKey: "clusterrole-aggregation-controller"},
		},
		Type: corev1.SecretTypeServiceAccountToken,
	}
	awaitTrue(t, "the policy about join tokens is in force", func() bool {
		_, err := kube.CoreV1().Secrets(namespace).Create(ctx, ofToken, metav1.CreateOptions{})
		if err == nil {
			_ = admin.Kubernetes.CoreV1().Secrets(namespace).Delete(ctx, ofToken.Name, metav1.DeleteOptions{})
		}
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "join tokens here")
	})
	secrets, beside, one := kube.CoreV1().Secrets(namespace), kube.CoreV1().Secrets(pool.Namespace), metav1.GetOptions{}
	gone := metav1.DeleteOptions{}
	admins := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}
	for what, err := range map[string]error{
		"bind a role": errOf(kube.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "all"}, RoleRef: admins,
		}, metav1.CreateOptions{})),
		"change its own role": errOf(kube.RbacV1().ClusterRoles().Patch(ctx, account, types.MergePatchType,
			[]byte(`{"rules": []}`), metav1.PatchOptions{})),
		"read a Secret of another namespace": errOf(kube.CoreV1().Secrets("default").Get(ctx, "private",
			metav1.GetOptions{})),
		"read another Secret beside the key":    errOf(beside.Get(ctx, "private", one)),
		"list Secrets beside the key":           errOf(beside.List(ctx, metav1.ListOptions{})),
		"delete the key":                        beside.Delete(ctx, pool.KeySecret, gone),
		"delete a Secret that is no join token": secrets.Delete(ctx, "private", gone),
		"read another ConfigMap":                errOf(kube.CoreV1().ConfigMaps(namespace).Get(ctx, "other", one)),
		"change the record": errOf(kube.CoreV1().ConfigMaps(namespace).Patch(ctx, record.Name, types.MergePatchType,
			[]byte(`{"data": {"history": "[]"}}`), metav1.PatchOptions{})),
		"delete a DaemonSet":       kube.AppsV1().DaemonSets("default").Delete(ctx, "daemon", gone),
		"delete its own DaemonSet": kube.AppsV1().DaemonSets(pool.Namespace).Delete(ctx, account, gone),
		"make a pod": errOf(kube.CoreV1().Pods("default").Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "p"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "x"}}},
		}, metav1.CreateOptions{})),
		"make a Node": errOf(kube.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}},
			metav1.CreateOptions{})),
		"change another namespace": errOf(kube.CoreV1().Namespaces().Patch(ctx, namespace, types.MergePatchType,
			[]byte(`{"metadata": {"labels": {"a": "b"}}}`), metav1.PatchOptions{})),
		"change the policy about join tokens": kube.AdmissionregistrationV1().ValidatingAdmissionPolicies().Delete(ctx,
			"kubeone-controller-tokens", metav1.DeleteOptions{}),
		"delete the policy about Nodes": kube.AdmissionregistrationV1().ValidatingAdmissionPolicies().Delete(ctx,
			"kubeone-returning-hosts", metav1.DeleteOptions{}),
		"take the scheduler's Lease": errOf(kube.CoordinationV1().Leases(namespace).Get(ctx, "kube-scheduler",
			metav1.GetOptions{})),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("the controllers may %s: %v", what, err)
		}
	}
}

func errOf[T any](_ T, err error) error { return err }
