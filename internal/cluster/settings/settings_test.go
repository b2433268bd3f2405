package settings

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"kubeone/internal/addons/system"
	"kubeone/internal/keys/authority"
	"kubeone/internal/model/observed"
	"kubeone/internal/testutil/authoritytest"
)

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceSystem, ResourceVersion: "17"}
}

func proxy() (*corev1.ConfigMap, *appsv1.DaemonSet) {
	return &corev1.ConfigMap{
		ObjectMeta: named("kube-proxy"),
		Data:       map[string]string{system.ProxyConfig: "old", system.ProxyKubeconfig: "k"},
	}, &appsv1.DaemonSet{ObjectMeta: named("kube-proxy")}
}

// become returns a Change that sets the configuration to a text.
func become(config string) Change {
	return func(_, kubeconfig string) (string, string, error) { return config, kubeconfig, nil }
}

// state returns the live configuration, its mark, and the change for which pods were last restarted.
func state(t *testing.T, s Setter) (config, mark, began string) {
	t.Helper()
	const name = "kube-proxy"
	m, err := s.Kubernetes.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d, err := s.Kubernetes.AppsV1().DaemonSets(metav1.NamespaceSystem).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return m.Data[system.ProxyConfig], m.Annotations[system.RestartAnnotation],
		d.Spec.Template.Annotations[ConfigAnnotation]
}

func TestPodsBeginAnewOnlyWhenTheConfigurationChanged(t *testing.T) {
	t.Parallel()
	m, d := proxy()
	s := Setter{Kubernetes: fake.NewClientset(m, d)}
	if err := s.SetKubeProxy(t.Context(), become("old")); err != nil {
		t.Fatal(err)
	}
	if config, mark, began := state(t, s); config != "old" || mark != "" || began != "" {
		t.Errorf("nothing was to change: %q, %q, %q", config, mark, began)
	}
	if err := s.SetKubeProxy(t.Context(), become("new")); err != nil {
		t.Fatal(err)
	}
	if config, mark, began := state(t, s); config != "new" || mark != "" || began != "17" {
		t.Errorf("%q, %q, %q", config, mark, began)
	}
}

// A program killed between any two requests leaves a marked ConfigMap, and the next one resumes.
func TestAnInterruptedChangeIsGoneOnWith(t *testing.T) {
	t.Parallel()
	for killedAt := range 3 {
		m, d := proxy()
		kube := fake.NewClientset(m, d)
		writes := 0
		ctx, kill := context.WithCancel(t.Context())
		kube.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
			if action.GetVerb() == "get" {
				return false, nil, nil
			}
			if writes == killedAt && ctx.Err() == nil {
				kill()
			}
			writes++
			if ctx.Err() != nil && writes == killedAt+1 {
				return true, nil, errors.New("killed")
			}
			return false, nil, nil
		})
		s := Setter{Kubernetes: kube}
		if err := s.SetKubeProxy(ctx, become("new")); err == nil {
			t.Fatalf("killed at %d: no error", killedAt)
		}
		config, mark, began := state(t, s)
		if config == "new" && mark == "" {
			t.Errorf("killed at %d: changed, and nobody sees that pods were not begun anew (%q)", killedAt, began)
		}
		if err := s.SetKubeProxy(t.Context(), become("new")); err != nil {
			t.Fatal(err)
		}
		if config, mark, began := state(t, s); config != "new" || mark != "" || began != "17" {
			t.Errorf("killed at %d, then run again: %q, %q, %q", killedAt, config, mark, began)
		}
	}
}

func TestWithoutPodsThereAreNoneToBeginAnew(t *testing.T) {
	t.Parallel()
	m, _ := proxy()
	kube := fake.NewClientset(m)
	if err := (Setter{Kubernetes: kube}).SetKubeProxy(t.Context(), become("new")); err != nil {
		t.Fatal(err)
	}
}

func TestAnEmptyConfigMapIsWritten(t *testing.T) {
	t.Parallel()
	m, d := proxy()
	m.Data = nil
	s := Setter{Kubernetes: fake.NewClientset(m, d)}
	if err := s.SetKubeProxy(t.Context(), become("new")); err != nil {
		t.Fatal(err)
	}
	if config, mark, _ := state(t, s); config != "new" || mark != "" {
		t.Errorf("%q, %q", config, mark)
	}
}

func TestWhatCannotBeReadIsNotWritten(t *testing.T) {
	t.Parallel()
	m, d := proxy()
	s := Setter{Kubernetes: fake.NewClientset(m, d)}
	wrong := errors.New("no YAML")
	err := s.SetKubeProxy(t.Context(), func(string, string) (string, string, error) { return "", "", wrong })
	if !errors.Is(err, wrong) {
		t.Errorf("got %v", err)
	}
	if config, mark, _ := state(t, s); config != "old" || mark != "" {
		t.Errorf("%q, %q", config, mark)
	}
}

func TestScaleDNS(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ have, want int32 }{{0, 2}, {2, 2}, {5, 3}} {
		kube := fake.NewClientset(&appsv1.Deployment{
			ObjectMeta: named("coredns"), Spec: appsv1.DeploymentSpec{Replicas: &c.have},
		})
		err := Setter{Kubernetes: kube}.ScaleDNS(t.Context(), func(have int32) int32 {
			if have != c.have {
				t.Errorf("asked with %d, have %d", have, c.have)
			}
			return c.want
		})
		if err != nil {
			t.Fatal(err)
		}
		d, err := kube.AppsV1().Deployments(metav1.NamespaceSystem).Get(t.Context(), "coredns", metav1.GetOptions{})
		if err != nil || *d.Spec.Replicas != c.want {
			t.Errorf("%v: %v, %v", c, *d.Spec.Replicas, err)
		}
	}
}

// API servers only add their CAs, so kubeone must remove CAs that are no longer trusted.
func TestOnlyTheCAsThatAreTrustedStay(t *testing.T) {
	t.Parallel()
	ca := func() authority.Pair {
		p, err := authority.New(time.Now(), []byte(authoritytest.CA))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	former, present := ca(), ca()
	const proxies, clients = "requestheader-client-ca-file", "client-ca-file"
	both := string(former.Public.With(present.Public).Text())
	m := &corev1.ConfigMap{
		ObjectMeta: named("extension-apiserver-authentication"),
		Data:       map[string]string{proxies: both, clients: both},
	}
	s := Setter{Kubernetes: fake.NewClientset(m)}
	for _, step := range []struct{ name, proxies, clients string }{
		{observed.FrontProxyCA, string(present.Public.Text()), both},
		{observed.FrontProxyCA, string(present.Public.Text()), both},
		{observed.ClusterCA, string(present.Public.Text()), string(present.Public.Text())},
	} {
		if err := s.TrimExtensionCAs(t.Context(), step.name, []string{"sha256:other", present.ID()}); err != nil {
			t.Fatal(err)
		}
		maps := s.Kubernetes.CoreV1().ConfigMaps(metav1.NamespaceSystem)
		got, err := maps.Get(t.Context(), m.Name, metav1.GetOptions{})
		if err != nil || got.Data[proxies] != step.proxies || got.Data[clients] != step.clients {
			t.Errorf("%s: %v, %v", step.name, got.Data, err)
		}
		told, err := s.ExtensionCAs(t.Context())
		want := map[string][]string{
			observed.FrontProxyCA: authority.Keys([]byte(step.proxies)),
			observed.ClusterCA:    authority.Keys([]byte(step.clients)),
		}
		if diff := cmp.Diff(want, told); err != nil || diff != "" {
			t.Errorf("%s: %v %s", step.name, err, diff)
		}
	}
	if err := s.TrimExtensionCAs(t.Context(), observed.FrontProxyCA, []string{former.ID()}); err == nil {
		t.Error("none is left")
	}
}
