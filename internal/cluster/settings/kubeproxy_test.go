package settings

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestKubeProxyIsRemoved(t *testing.T) {
	t.Parallel()
	m, d := proxy()
	kube := fake.NewClientset(m, d, &corev1.ServiceAccount{ObjectMeta: named("kube-proxy")},
		&corev1.ConfigMap{ObjectMeta: named("coredns")},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "kubeadm:node-proxier"}})
	for range 2 { // nothing is left for the second time
		if err := (Setter{Kubernetes: kube}).RemoveKubeProxy(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var left []string
	maps, err := kube.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range maps.Items {
		left = append(left, o.Name)
	}
	sets, err := kube.AppsV1().DaemonSets("").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(sets.Items) > 0 || len(left) != 1 || left[0] != "coredns" {
		t.Errorf("left: %v, DaemonSets %v, %v", left, sets, err)
	}
}
