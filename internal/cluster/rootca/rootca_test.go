package rootca

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"kubeone/internal/keys/authority"
	"kubeone/internal/testutil/authoritytest"
)

var told = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// cas returns two CA certificates, in PEM, and their keys.
func cas(t *testing.T) (pem []byte, keys []string) {
	t.Helper()
	var all authority.Public
	for range 2 {
		made, err := authority.New(told, []byte(authoritytest.CA))
		if err != nil {
			t.Fatal(err)
		}
		all = all.With(made.Public)
	}
	return all.Text(), all.Keys()
}

func TestWhoJoinsIsNamedTheCAs(t *testing.T) {
	t.Parallel()
	text, _ := cas(t)
	config := clientcmdapi.NewConfig()
	config.Clusters[""] = &clientcmdapi.Cluster{Server: "https://api:6443", CertificateAuthorityData: []byte("former")}
	written, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	info := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespacePublic, Name: "cluster-info"},
		Data:       map[string]string{"kubeconfig": string(written), "jws-kubeconfig-abcdef": "stays"},
	}
	client := fake.NewClientset(info)
	for range 2 {
		if err := (Publisher{client}).PublishCAs(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	got, err := client.CoreV1().ConfigMaps(metav1.NamespacePublic).Get(t.Context(), "cluster-info", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	now, err := clientcmd.Load([]byte(got.Data["kubeconfig"]))
	if err != nil || string(now.Clusters[""].CertificateAuthorityData) != string(text) ||
		now.Clusters[""].Server != "https://api:6443" || got.Data["jws-kubeconfig-abcdef"] != "stays" {
		t.Errorf("%v, %v", got.Data, err)
	}
	updates := 0
	for _, a := range client.Actions() {
		if a.GetVerb() == "update" {
			updates++
		}
	}
	if updates != 1 {
		t.Errorf("%d updates", updates)
	}
	if err := (Publisher{fake.NewClientset()}).PublishCAs(t.Context(), text); err != nil {
		t.Errorf("nobody joins by it: %v", err)
	}
}

// pod returns a pod that started some time after its namespace got the CAs. Its container started later.
func pod(name string, began, container time.Duration, change ...func(*corev1.Pod)) *corev1.Pod {
	at := metav1.NewTime(told.Add(container))
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, CreationTimestamp: metav1.NewTime(told.Add(began))},
		Spec: corev1.PodSpec{Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{
			Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{
				ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: rootCA}},
			}}},
		}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}},
		}}},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

// namespace returns a namespace that got the CAs an hour after its creation.
func namespace(name string, pem []byte) []runtime.Object { return namespaceOf(name, pem, time.Hour) }

func namespaceOf(name string, pem []byte, age time.Duration) []runtime.Object {
	at := metav1.NewTime(told)
	return []runtime.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: name, Name: rootCA, CreationTimestamp: metav1.NewTime(told.Add(-age)),
				ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kube-controller-manager", Time: &at}},
			},
			Data: map[string]string{rootCAKey: string(pem)},
		},
	}
}

// secret returns a service account's Secret that got the CAs at the same time as its namespace.
func secret(name string, pem []byte) *corev1.Secret {
	at := metav1.NewTime(told)
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "a", Name: name, CreationTimestamp: metav1.NewTime(told.Add(-time.Hour)),
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kube-controller-manager", Time: &at}},
		},
		Type: corev1.SecretTypeServiceAccountToken, Data: map[string][]byte{rootCAKey: pem},
	}
}

// reads makes a pod mount the Secret only.
func reads(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: name},
		}}}
	}
}

func TestPodsThatBeganTooEarlyAreNamed(t *testing.T) {
	t.Parallel()
	pem, keys := cas(t)
	one, _, _ := strings.Cut(string(pem), "E-----\n-")
	objects := append(namespace("a", pem), namespace("untold", []byte(one+"E-----\n"))...)
	untold := pod("new", time.Hour, time.Hour)
	untold.Namespace = "untold"
	waited := pod("waited", -time.Minute, 0) // for the CAs, which never changed in its namespace
	waited.Namespace = "fresh"
	objects = append(objects, namespaceOf("fresh", pem, 0)...)
	objects = append(objects, waited)
	objects = append(objects,
		pod("before", -time.Hour, -time.Hour),
		pod("with-it", 0, 0),
		pod("after", time.Second, time.Second),
		pod("restarted-at-once", -time.Hour, time.Minute), // its kubelet may not have updated the volume yet
		pod("restarted-later", -time.Hour, time.Hour),
		pod("not-yet-running", -time.Hour, 0, func(p *corev1.Pod) { p.Status.ContainerStatuses = nil }),
		pod("ended", -time.Hour, -time.Hour, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
		pod("no-token", -time.Hour, -time.Hour, func(p *corev1.Pod) { p.Spec.Volumes = nil }),
		pod("sidecar", -time.Hour, time.Hour, func(p *corev1.Pod) {
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
				Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(told.Add(-time.Hour))},
			}}}
		}),
		untold,
		secret("told", pem), secret("untold", []byte(one+"E-----\n")),
		pod("reads-secret", -time.Hour, -time.Hour, reads("told")),
		pod("read-secret-later", time.Minute, time.Minute, reads("told")),
		pod("reads-untold-secret", time.Minute, time.Minute, reads("untold")),
		pod("reads-another-secret", -time.Hour, -time.Hour, reads("password")),
	)
	got, err := (Publisher{fake.NewClientset(objects...)}).UnawarePods(t.Context(), keys)
	want := []string{
		"a/before", "a/not-yet-running", "a/reads-secret", "a/reads-untold-secret", "a/restarted-at-once", "a/sidecar",
		"a/with-it", "untold/new",
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestTheCAsAreAwaited(t *testing.T) {
	t.Parallel()
	pem, keys := cas(t)
	p := Publisher{fake.NewClientset(namespace("a", pem)...)}
	if err := p.AwaitRootCAs(t.Context(), keys); err != nil {
		t.Error(err)
	}
}
